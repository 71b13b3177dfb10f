"""The model's side of things: a named graph of stages with the adapters between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from engine.adapter import Adapter
from engine.deploy_config import StageDeployment
from engine.errors import ConfigurationError
from engine.request import PipelineDescription, SpeechParameters, TextReport
from engine.stage import Replica

CLIENT = ""
"""The name of the client's place in the graph: it writes text and hears the last stage."""


class StageKind(StrEnum):
    """How a stage computes."""

    AUTOREGRESSIVE = "ar"
    GENERATION = "generation"
    DIFFUSION = "diffusion"


@dataclass(frozen=True, slots=True)
class StageConfig:
    """One stage of a pipeline.

    Attributes:
        name: Its name, unique in the pipeline.
        kind: How it computes.
        build: Loads one replica from the model's folder as the deployment says. Called on the
            host's engine thread.
    """

    name: str
    kind: StageKind
    build: Callable[[Path, StageDeployment], Replica]


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """The way from one stage to the next.

    Attributes:
        source: The producing stage, or CLIENT for the request's text.
        target: The consuming stage, or CLIENT for the request's output.
        adapter: Makes a request's conversion from the model's folder and the request's
            parameters; None at the client's end, where nothing is converted.
        capacity: The most that may be in flight, in units of `cost`.
        reserve: The largest cost of one chunk.
        cost: A payload's cost.
    """

    source: str
    target: str
    adapter: Callable[[Path, SpeechParameters], Adapter] | None
    capacity: int
    reserve: int
    cost: Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A named graph of stages.

    Attributes:
        name: The pipeline's name.
        stages: From upstream to downstream.
        edges: Every stage has one edge in; the graph starts and ends at CLIENT.
        describe: What clients may know, from the model's folder.
        resolve: The folder of a model; None means the default model.
        check: Raises InvalidRequestError for parameters that the pipeline cannot serve.
        inspect: A quick look at a text.
        warm_up_text: What is spoken before the engine calls itself ready.
        deploy: The deployment that is used when none is given.
    """

    name: str
    stages: tuple[StageConfig, ...]
    edges: tuple[EdgeConfig, ...]
    describe: Callable[[Path], PipelineDescription]
    resolve: Callable[[str | None], Path]
    check: Callable[[SpeechParameters], None]
    inspect: Callable[[str], TextReport]
    warm_up_text: str
    deploy: Path

    def __post_init__(self) -> None:
        """Checks that the graph is a graph.

        Raises:
            ConfigurationError: A name is unknown or twice, or a stage has no way in.
        """
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ConfigurationError(f"Pipeline {self.name!r} names a stage twice: {names}.")
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end != CLIENT and end not in names:
                    raise ConfigurationError(
                        f"Pipeline {self.name!r} has an edge to {end!r}, which is no stage."
                    )
        for name in names:
            ways_in = [edge for edge in self.edges if edge.target == name]
            if len(ways_in) != 1:
                raise ConfigurationError(
                    f"Stage {name!r} of pipeline {self.name!r} has {len(ways_in)} edges in; "
                    "it needs exactly one."
                )

    def edge_into(self, stage: str) -> EdgeConfig:
        """The one edge into a stage."""
        return next(edge for edge in self.edges if edge.target == stage)

    def edges_out_of(self, stage: str) -> list[EdgeConfig]:
        """The edges out of a stage, to the client included."""
        return [edge for edge in self.edges if edge.source == stage]


def load_pipeline(name: str) -> PipelineConfig:
    """Finds a pipeline by name among the installed ones.

    Packages offer pipelines as entry points of the group `antiphon.pipelines`.

    Raises:
        ConfigurationError: There is none of that name.
    """
    found = {entry.name: entry for entry in entry_points(group="antiphon.pipelines")}
    if name not in found:
        raise ConfigurationError(
            f"There is no pipeline {name!r}; installed are: {', '.join(sorted(found)) or 'none'}."
        )
    pipeline = found[name].load()
    if not isinstance(pipeline, PipelineConfig):
        raise ConfigurationError(f"The entry point of {name!r} is no PipelineConfig.")
    return pipeline
