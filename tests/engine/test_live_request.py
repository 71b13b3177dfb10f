"""A stage that ends before its input does not keep those before it waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import SpeechParameters
from engine.chunk import TextPayload
from engine.connector import InProcessConnector
from engine.live_request import LiveRequest, Submission, open_request
from engine.pipeline_config import CLIENT, EdgeConfig, PipelineConfig, StageConfig, StageKind
from engine.request import PipelineDescription, TextReport
from engine.timeline import RequestTimes

CAPACITY = 3


def pipeline() -> PipelineConfig:
    """Text, a writer, a speaker, client; three pieces fit between writer and speaker."""

    def never_built(*_: object) -> object:
        raise AssertionError("no stage runs here")

    def stage(name: str) -> StageConfig:
        return StageConfig(name, StageKind.GENERATION, never_built)  # type: ignore[arg-type]

    def edge(source: str, target: str, capacity: int) -> EdgeConfig:
        return EdgeConfig(source, target, None, capacity, 1, lambda payload: 1)

    return PipelineConfig(
        name="two",
        stages=(stage("writer"), stage("speaker")),
        edges=(
            edge(CLIENT, "writer", 100),
            edge("writer", "speaker", CAPACITY),
            edge("speaker", CLIENT, 100),
        ),
        describe=lambda models: PipelineDescription("two", (), (), 24_000, False),
        resolve=lambda model, cache: {},
        check=lambda parameters: None,
        inspect=lambda text: TextReport(True),
        warm_up_text="",
        deploy=Path("none.yaml"),
    )


@pytest.fixture
def read() -> list[int]:
    """How many characters were taken, piece by piece."""
    return []


@pytest.fixture
def live(read: list[int]) -> LiveRequest:
    submission = Submission(
        request_id="r",
        session=None,
        route="speech",
        parameters=SpeechParameters(),
        started=0.0,
        deadline_at=100.0,
        on_chunk=lambda: None,
        on_text_consumed=read.append,
        times=RequestTimes(),
    )
    return open_request(pipeline(), {}, InProcessConnector(), submission, 0, 0.0)


def write(live: LiveRequest, pieces: int) -> None:
    for _ in range(pieces):
        live.deliver("writer", TextPayload("word"), False, 1.0)


def test_what_is_written_for_a_stage_that_has_ended_is_dropped(live: LiveRequest) -> None:
    write(live, CAPACITY)
    assert not live.has_credit("writer")
    live.deliver("speaker", None, True, 2.0)
    for _ in range(4):
        live.drop_unwanted(3.0)
        assert live.has_credit("writer")
        write(live, CAPACITY)
    live.drop_unwanted(4.0)
    assert live.in_flight_of("writer") == 0
    assert live.unfinished == {"writer"}


def test_what_is_written_for_a_stage_at_work_stays(live: LiveRequest) -> None:
    write(live, CAPACITY)
    live.drop_unwanted(1.0)
    assert live.in_flight_of("writer") == CAPACITY
    assert not live.has_credit("writer")


def test_a_clients_text_that_is_dropped_counts_as_read(live: LiveRequest, read: list[int]) -> None:
    live.deliver("writer", None, True, 1.0)
    live.add_input([TextPayload("some"), TextPayload("words")], True, 2.0)
    live.drop_unwanted(3.0)
    assert read == [4, 5]
