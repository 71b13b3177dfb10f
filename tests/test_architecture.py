"""The rules that the architecture page sets, held by looking at the source."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "engine", "pipelines")

OF_ENGINE_FOR_APP = {"engine", "engine.engine", "engine.catalogue", "engine.locate"}
"""What of the engine is public."""

FORBIDDEN = {
    "app": {"torch", "vllm", "pipelines", "transformers", "safetensors", "torchaudio"},
    "engine": {"app", "pipelines"},
    "pipelines": {"app"},
}

OTHER_CODE = ("benchmarks", "recipes", "scripts")
LONGEST_MODULE, LONGEST_FUNCTION = 300, 60
"""Lines. A function fits a screen."""

MODEL_NAMES = re.compile(r"qwen|smollm|whisper|hibari|kokoro|\blark\b|silero", re.IGNORECASE)

READS_THE_ENVIRONMENT = {"environ", "getenv", "environb", "putenv"}
MAY_READ_THE_ENVIRONMENT = {Path("app/settings.py")}


BOUNDARIES = {
    Path("app/lifecycle.py"): "whatever keeps the engine from starting is told and ends the server",
    Path("app/request_context.py"): "a fault that nobody foresaw is logged and answered with a 500",
    Path("engine/host.py"): "what an action raises belongs to whoever asked for its result",
}
"""The only places that may catch everything, with what they do about it."""


def modules(*packages: str) -> list[Path]:
    return sorted(
        path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py")
    )


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text("utf-8"), str(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that is imported anywhere in a file, with its line."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            yield node.lineno, node.module or ""


def each(*packages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", modules(*packages), ids=str)


@each(*PACKAGES, *OTHER_CODE)
def test_modules_and_functions_are_short(path: Path) -> None:
    lines = len((ROOT / path).read_text("utf-8").splitlines())
    assert lines < LONGEST_MODULE, f"{path} has {lines} lines; part it by what it is about"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{path}:{node.lineno}: {node.name} has {lines} lines"


@each(*PACKAGES)
def test_packages_import_only_what_they_may(path: Path) -> None:
    package = path.parts[0]
    for line, name in imported(path):
        assert name.split(".")[0] not in FORBIDDEN[package], f"{path}:{line}: imports {name}"


@each("app")
def test_the_app_uses_only_the_engines_public_names(path: Path) -> None:
    for line, name in imported(path):
        if name.split(".")[0] == "engine":
            assert name in OF_ENGINE_FOR_APP, f"{path}:{line}: {name} is not public"


@each("engine")
def test_the_engine_names_no_model(path: Path) -> None:
    for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), 1):
        assert not MODEL_NAMES.search(line), f"{path}:{number}: {line.strip()}"


@each(*PACKAGES)
def test_only_the_settings_read_the_process_environment(path: Path) -> None:
    if path in MAY_READ_THE_ENVIRONMENT:
        return
    for node in ast.walk(parsed(path)):
        names = {
            ast.Attribute: lambda n: {n.attr},
            ast.ImportFrom: lambda n: {a.name for a in n.names} if n.module == "os" else set(),
        }.get(type(node), lambda _: set())(node)
        found = names & READS_THE_ENVIRONMENT
        assert not found, f"{path}:{node.lineno}: reads the environment with {found}"  # type: ignore[attr-defined]


@each(*PACKAGES)
def test_nothing_swallows_exceptions_it_does_not_know(path: Path) -> None:
    if path in BOUNDARIES:
        return
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for kind in caught:
            name = kind.id if isinstance(kind, ast.Name) else None
            broad = kind is None or name in {"Exception", "BaseException"}
            assert not broad or _raises_again(node), f"{path}:{node.lineno}: catches too much"


@each(*PACKAGES)
def test_attributes_are_named_and_not_guessed_at(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        literal = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
        guessed = node.func.id in {"getattr", "hasattr", "setattr"} and literal
        assert not guessed, f"{path}:{node.lineno}: {node.func.id} with a literal name"


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether a handler passes on what it caught, at its end."""
    return isinstance(handler.body[-1], ast.Raise)
