from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine import ConfigurationError, InvalidRequestError, SpeechParameters
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    HearingConfig,
    PipelineConfig,
    load_pipeline,
)
from tests.toys import Toy

TOY = Toy().pipeline


def edge(source: str, target: str, **others: Any) -> EdgeConfig:
    return EdgeConfig(source, target, None, 10, 1, len, **others)


def with_edges(*edges: EdgeConfig) -> PipelineConfig:
    return replace(TOY, edges=edges)


def test_a_chain_is_a_pipeline() -> None:
    assert TOY.routes == ("speech",)
    assert TOY.stages_of("speech") == ["steps", "voice"]
    assert [edge.target for edge in TOY.edges_of("speech")] == ["steps", "voice", CLIENT]
    assert TOY.edges_of("nowhere") == []


def test_a_route_may_leave_stages_out_and_reach_the_client_twice() -> None:
    pipeline = with_edges(
        edge(CLIENT, "steps", routes=("speech", "text")),
        edge("steps", CLIENT, routes=("text",)),
        edge("steps", "voice"),
        edge("steps", CLIENT),
        edge("voice", CLIENT),
    )
    assert pipeline.routes == ("speech", "text")
    assert pipeline.stages_of("text") == ["steps"]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(CLIENT, "steps"), ("steps", "voice")], "ends 0 times at the client"),
        ([("steps", "voice"), ("voice", CLIENT)], "starts 0 times at the client"),
        ([(CLIENT, "steps"), (CLIENT, "voice"), ("voice", CLIENT)], "starts 2 times"),
        ([(CLIENT, "steps"), ("voice", CLIENT)], "'voice' has 0 edges in"),
        (
            [(CLIENT, "steps"), ("steps", "voice"), ("voice", "steps"), ("voice", CLIENT)],
            "'steps' has 2 edges in",
        ),
        ([(CLIENT, "steps"), ("steps", "vocie"), ("vocie", CLIENT)], "'vocie', which is no stage"),
    ],
)
def test_what_is_no_graph_is_refused(edges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        with_edges(*(edge(*ends) for ends in edges))


def test_a_name_cannot_be_used_twice() -> None:
    with pytest.raises(ConfigurationError, match="names a stage twice"):
        replace(TOY, stages=TOY.stages + TOY.stages[:1])


def test_what_hears_must_be_a_stage() -> None:
    hearing = HearingConfig("ears", lambda models, sound: None, lambda models, sound: ())
    with pytest.raises(ConfigurationError, match="hears with 'ears', which is no stage"):
        replace(TOY, hearing=hearing)


def test_a_pipeline_that_is_not_installed_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match=r"no pipeline 'larch'; installed are: .*lark"):
        load_pipeline("larch")
    assert load_pipeline("lark").name == "lark"


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (SpeechParameters(reference_audio=b"RIFF"), "ref_audio"),
        (SpeechParameters(reference_text="hello"), "ref_text"),
    ],
)
def test_reference_audio_is_refused_by_what_does_not_clone(
    parameters: SpeechParameters, name: str
) -> None:
    for pipeline in (TOY, load_pipeline("lark"), load_pipeline("qwen3_omni")):
        with pytest.raises(InvalidRequestError, match="clones none") as refusal:
            pipeline.check_parameters({}, parameters)
        assert refusal.value.parameter == name
    replace(TOY, clones=True).check_parameters({}, parameters)
