"""What the documentation says about names, defaults and files is what the code says."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import typer
import yaml
from fastapi.routing import APIRoute, APIWebSocketRoute
from prometheus_client import CollectorRegistry

from app.application import create_application
from app.cli import cli
from app.commands.settings import _default
from app.ear.rules import _CONFIDENCE, _LONGEST_WAIT_MS
from app.lifecycle import EngineLifecycle
from app.metrics import AppMetrics, Outcome, Transport
from app.realtime.client_events import _EVENTS
from app.realtime.metrics import RealtimeMetrics
from app.settings import Settings
from app.speech.schema import SpeechRequest
from app.text_stream.events import _EVENT_TYPES, ContextCreate
from app.transcriptions import TextFormat
from engine import AbortReason, OmniRequest, TextInput
from engine.catalogue_file import CatalogueFile
from engine.deploy_config import (
    AdmissionDeployment,
    ChunkDeployment,
    DiffusionDeployment,
    StageDeployment,
    StepCacheDeployment,
    load_deploy_config,
)
from engine.engine import AsyncOmniEngine
from engine.host import Host
from engine.pipeline_config import PipelineConfig, load_pipeline
from pipelines.lark.pipeline import PIPELINE
from pipelines.lark.voices import VOICES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
SETTING = re.compile(r"\bANTIPHON_([A-Z_]*[A-Z])\b")
METRIC = re.compile(r"`(antiphon_[a-z_]+)`")

OTHERS = {"scrape_configs"}
"""First keys of YAML files that belong to other programs."""

PLATFORM_DEPENDENT_KEYS = ("device",)
"""Keys of a deployment whose defaults depend on the installation."""

PLATFORM_DEPENDENT = {"cache_folder", "static_folder"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str


def text_of(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def blocks(language: str, page: str | None = None) -> Iterator[Block]:
    for path in PAGES:
        if page in (None, path.name):
            text = path.read_text("utf-8")
            for match in FENCE.finditer(text):
                if match[1] == language:
                    line = text.count("\n", 0, match.start()) + 1
                    yield Block(path.name, line, match[1], match[2])


def each_block(language: str) -> pytest.MarkDecorator:
    found = [pytest.param(b, id=f"{b.page}:{b.line}") for b in blocks(language)]
    return pytest.mark.parametrize("block", found)


each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings have on GitHub."""
    text = FENCE.sub("", path.read_text("utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table."""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("| ---"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def first_column(text: str) -> set[str]:
    return {name for row in rows(text) for name in named(row[0])}


@each_page
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", path.read_text("utf-8"))):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name} leads to {link}, which is not there"
        assert target.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(target), f"{path.name} leads to {link}; no such heading"


def test_every_page_is_on_the_map() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall(text_of("index.md"))}
    assert {path.name for path in DOCS.glob("*.md")} - {"index.md"} <= linked


@each_page
def test_only_settings_that_exist_are_named(path: Path) -> None:
    named_here = {name.lower() for name in SETTING.findall(path.read_text("utf-8"))}
    assert named_here <= set(Settings.model_fields)


def test_every_setting_is_documented_with_its_default() -> None:
    documented = {
        SETTING.fullmatch(row[0].strip("`")): row
        for row in rows(text_of("configuration.md"))
        if row[0].startswith("`ANTIPHON_")
    }
    by_name = {match[1].lower(): row for match, row in documented.items() if match is not None}
    assert set(by_name) == set(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        if name not in PLATFORM_DEPENDENT:
            assert ", ".join(named(by_name[name][1]) or ["none"]) == _default(field), name
        assert by_name[name][2].replace("\\", "") == field.description


def test_every_key_of_a_deployment_is_documented_with_its_default() -> None:
    by_name = {
        named(row[0])[0]: row[1] for row in rows(text_of("configuration.md")) if named(row[0])
    }
    parts: list[tuple[str, Any]] = [
        ("", StageDeployment),
        ("chunk.", ChunkDeployment),
        ("diffusion.", DiffusionDeployment),
        ("diffusion.cache.", StepCacheDeployment),
        ("", AdmissionDeployment),
    ]
    for prefix, model in parts:
        for name, field in model.model_fields.items():
            if prefix + name not in ("chunk", "diffusion", *PLATFORM_DEPENDENT_KEYS):
                default = field.get_default(call_default_factory=True)
                said = by_name[prefix + name].strip("`")
                assert said == ("null" if default is None else str(default)), name


def exposed(registry: CollectorRegistry) -> set[str]:
    """The names of our metrics as Prometheus sees them."""
    return {
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in registry.collect()
        if metric.name.startswith("antiphon_")
    }


def composed(pipeline: PipelineConfig, host: Host) -> AsyncOmniEngine:
    """An engine whose stages are never started."""
    models = {stage.name: ROOT for stage in pipeline.stages}
    deployment = load_deploy_config(pipeline.deploy, [stage.name for stage in pipeline.stages])
    return AsyncOmniEngine(pipeline, deployment, models, host)


@pytest.mark.asyncio
async def test_every_metric_is_documented_and_no_other() -> None:
    app_metrics = AppMetrics()
    RealtimeMetrics(app_metrics.registry)
    engine = composed(PIPELINE, Host("never started"))
    there = exposed(app_metrics.registry) | exposed(engine.registry)
    text = text_of("metrics.md")
    documented = {name for name in first_column(text) if name.startswith("antiphon_")}
    assert documented == there
    assert set(METRIC.findall(text)) == there
    types = {named(row[0])[0]: row[1] for row in rows(text) if row[0].startswith("`antiphon_")}
    for registry in (app_metrics.registry, engine.registry):
        for metric in registry.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            if name in types:
                assert types[name] == metric.type, name
    for word in (*Transport, *Outcome, *AbortReason):
        assert f"`{word}`" in text


@each_block("json")
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@each_block("toml")
def test_toml_is_toml(block: Block) -> None:
    tomllib.loads(block.text)


@each_block("python")
def test_python_is_python(block: Block) -> None:
    ast.parse(block.text)


STAGES_OF = {"extending.md": ["oscillator"], "checkpoints.md": ["thinker", "talker"]}
"""The stages that a page's deployments are for; elsewhere those of lark."""


@each_block("yaml")
def test_yaml_is_what_it_should_be(block: Block, tmp_path: Path) -> None:
    content = yaml.safe_load(block.text)
    if "models" in content:
        CatalogueFile.model_validate(content)
    elif not OTHERS & set(content):
        stages = STAGES_OF.get(block.page, ["talker", "code2wav"])
        path = tmp_path / "deploy.yaml"
        path.write_text(block.text, "utf-8")
        load_deploy_config(path, stages)


def test_there_are_examples_to_be_checked() -> None:
    for language in ("json", "python", "yaml", "toml"):
        assert list(blocks(language))


def test_every_endpoint_is_on_the_map() -> None:
    lifecycle = mock.Mock(spec=EngineLifecycle)
    app = create_application(Settings(), lifecycle)
    text = text_of("index.md")
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods:
                path = route.path.replace("{model:path}", "{model}")
                assert f"`{method} {path}`" in text, route.path
        elif isinstance(route, APIWebSocketRoute):
            assert f"WebSocket `{route.path}`" in text


def options() -> Iterator[tuple[str, str]]:
    """Every command with each of its long options."""
    # Typer brings its own copy of click, so that what is a group shows by what it has.
    commands: dict[str, Any] = vars(typer.main.get_command(cli))["commands"]
    for name, found in commands.items():
        for member, leaf in vars(found).get("commands", {"": found}).items():
            command = f"antiphon {name} {member}".strip()
            yield command, ""
            for parameter in leaf.params:
                for option in parameter.opts:
                    if option.startswith("--") and option != "--help":
                        yield command, option


def test_every_command_and_option_is_documented() -> None:
    text = text_of("running.md")
    for command, option in options():
        assert f"`{command}" in text or f"\n{command} " in text, command
        assert option in text, f"{command} {option}"


def test_only_options_that_exist_are_used() -> None:
    known = {option for _, option in options()}
    for block in blocks("sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            _, found, arguments = line.partition("antiphon ")
            if found and "docker" not in line:
                assert set(re.findall(r"--[a-z-]+", arguments)) <= known, line


def test_every_field_of_a_speech_request_is_documented() -> None:
    assert set(SpeechRequest.model_fields) <= first_column(text_of("speech-api.md"))


def test_every_event_of_the_text_stream_is_documented() -> None:
    text = text_of("text-stream.md")
    documented = first_column(text)
    assert set(_EVENT_TYPES) <= documented
    assert set(ContextCreate.model_fields) - {"type", "event_id"} <= documented
    sources = (ROOT / "app/text_stream").glob("*.py")
    code = "".join(path.read_text("utf-8") for path in sources)
    sent = re.findall(r'(?:server_event|_put|_session_event)\(\s*"([a-z.]+)"', code)
    assert sent
    assert set(sent) <= documented


def test_every_realtime_event_is_documented() -> None:
    text = text_of("realtime.md")
    assert set(_EVENTS) - {"output_audio_buffer.clear"} <= first_column(text)
    sources = (ROOT / "app/realtime").glob("*.py")
    code = "".join(path.read_text("utf-8") for path in sources)
    groups = "session|conversation|input_audio_buffer|response"
    for name in re.findall(rf'(?:send|"type":|_event)\(?\s*"((?:{groups})\.[a-z_.]+)"', code):
        assert f"`{name}`" in text or name.endswith(".done"), name
    for word in TextFormat:
        assert f"`{word}`" in text


def test_eagerness_is_documented_as_it_is() -> None:
    found = {
        name: (float(row[1]), int(row[2].removesuffix(" s")) * 1000)
        for row in rows(text_of("realtime.md"))
        for name in named(row[0])
        if name in _CONFIDENCE
    }
    assert found == {name: (_CONFIDENCE[name], _LONGEST_WAIT_MS[name]) for name in _CONFIDENCE}


def test_every_voice_and_alias_is_documented() -> None:
    documented = {
        named(row[0])[0]: tuple(named(row[2]))
        for row in rows(text_of("voices.md"))
        if len(row) == 3 and named(row[0])
    }
    assert documented == {v.description.name: v.description.aliases for v in VOICES}


def test_every_installed_pipeline_is_named() -> None:
    for name in ("lark", "conversation"):
        assert load_pipeline(name).name == name
        assert f"`{name}`" in text_of("index.md")


def written_down(folder: Path) -> ModuleType:
    """The smallest pipeline of `extending.md` as a module of its own."""
    page = "extending.md"
    source = next(block for block in blocks("python", page) if "PIPELINE =" in block.text)
    deployment = next(block for block in blocks("yaml", page) if "oscillator" in block.text)
    (folder / "beep.yaml").write_text(deployment.text, "utf-8")
    path = folder / "beep.py"
    path.write_text(source.text, "utf-8")
    spec = importlib.util.spec_from_file_location("beep", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.asyncio
async def test_the_smallest_pipeline_speaks(tmp_path: Path) -> None:
    beep = written_down(tmp_path)
    with mock.patch("engine.engine.load_pipeline", return_value=beep.PIPELINE):
        engine = await AsyncOmniEngine.start(
            pipeline="beep", cache_folder=tmp_path, compile_ahead=False
        )
    try:
        async with asyncio.timeout(60):
            assert await _length(engine, "Hello, world!") == 10 * beep.TONE_UNITS * beep.UNIT
    finally:
        await engine.close()


async def _length(engine: AsyncOmniEngine, text: str) -> int:
    length = 0
    request = OmniRequest("one", TextInput.whole(text))
    async with aclosing(engine.generate(request)) as chunks:
        async for chunk in chunks:
            assert chunk.error is None
            if chunk.payload is not None:
                length += len(chunk.payload.samples)
    return length
