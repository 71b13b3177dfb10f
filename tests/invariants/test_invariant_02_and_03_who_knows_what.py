"""2: stage data passes through adapters. 3: workers and hosts never route."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from engine.adapter import FeedRows, GenerationInput
from engine.engine import AsyncOmniEngine
from engine.stage import Replica
from tests.toys import CharactersToUnits, TextToCharacters, Toy, collect, request

ROOT = Path(__file__).parents[2]

TOPOLOGY = {
    "engine.orchestrator",
    "engine.live_request",
    "engine.pipeline_config",
    "engine.connector",
    "engine.transfer",
    "engine.client_stream",
    "engine.engine",
}
"""Who knows edges, routes or other stages."""

WORKERS = [
    "adapter",
    "autoregressive",
    "conditioned_model",
    "feed",
    "generation",
    "runner",
    "scheduler",
    "stage",
]
"""What computes, schedules inside a stage or keeps replicas."""


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return names


@pytest.mark.parametrize("name", WORKERS)
def test_invariant_03_what_computes_does_not_know_the_topology(name: str) -> None:
    assert not imports(ROOT / "engine" / f"{name}.py") & TOPOLOGY


def test_invariant_03_a_host_knows_who_chooses_its_steps_and_no_stage() -> None:
    assert {n for n in imports(ROOT / "engine" / "host.py") if n.startswith("engine")} == {
        "engine.encoding_ahead",
        "engine.orchestrator",
    }


@pytest.mark.parametrize("name", ["connector", "transfer"])
def test_invariant_03_the_data_plane_knows_only_its_own_two_ends(name: str) -> None:
    found = {n for n in imports(ROOT / "engine" / f"{name}.py") if n.startswith("engine")}
    assert found <= {"engine.chunk", "engine.connector", "engine.errors"}


def test_invariant_03_a_replica_is_never_told_where_its_output_goes() -> None:
    allowed = {"self", "request_id", "parameters", "payload", "has_credit", "slacks", "return"}
    for name, method in inspect.getmembers(Replica, inspect.isfunction):
        if not name.startswith("_"):
            assert (
                set(method.__annotations__) | set(inspect.signature(method).parameters) <= allowed
            ), name


@pytest.mark.parametrize("name", ["autoregressive", "generation"])
def test_invariant_03_replicas_name_no_stage_and_no_client(name: str) -> None:
    tree = ast.parse((ROOT / "engine" / f"{name}.py").read_text("utf-8"))
    identifiers = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    identifiers |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    assert not identifiers & {"CLIENT", "EdgeKey", "edges", "live", "route"}


def test_invariant_02_schedulers_do_not_touch_stage_data() -> None:
    """What conditions a step lives in feeds and inputs, not in a scheduler's requests."""
    source = (ROOT / "engine" / "scheduler.py").read_text("utf-8")
    found = imports(ROOT / "engine" / "scheduler.py")
    assert {name for name in found if name.startswith("engine")} == set()
    for word in ("feed", "codes", "payload", "samples", "chunk"):
        assert word not in source.lower().replace("chunked prefill", "")


@pytest.mark.asyncio
async def test_invariant_02_every_payload_goes_through_its_edges_adapter(
    engine: AsyncOmniEngine, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[str] = []
    pulled: list[object] = []
    offered: list[object] = []

    def watch(kind: type, name: str, into: list, result: bool) -> None:
        original = getattr(kind, name)

        def call(self: object, *arguments: object) -> object:
            value = original(self, *arguments)
            seen = value if result else arguments[-1]
            if seen is not None:
                into.append(seen)
            return value

        monkeypatch.setattr(kind, name, call)

    from engine.generation import GenerationReplica
    from tests.toys import StepReplica

    watch(CharactersToUnits, "push", pushed, result=False)
    watch(TextToCharacters, "pull", pulled, result=True)
    watch(CharactersToUnits, "pull", pulled, result=True)
    watch(StepReplica, "offer", offered, result=False)
    watch(GenerationReplica, "offer", offered, result=False)
    await collect(engine, request("a", "every one of them"))
    assert "".join(pushed) == "every one of them"
    assert len(offered) == 2 * len("every one of them")
    assert all(any(one is other for other in pulled) for one in offered)


def test_invariant_02_what_enters_a_stage_has_one_of_two_plain_shapes() -> None:
    rows = {"values", "tags", "prompt_rows", "padding", "vectors", "places"}
    assert set(FeedRows.__slots__) == rows
    assert set(GenerationInput.__slots__) == {"units", "data", "words"}
