"""The model's side of things: a named graph of stages with the adapters between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.adapter import Adapter
from engine.deploy_config import DeployConfig, StageDeployment
from engine.errors import ConfigurationError, InvalidRequestError
from engine.request import (
    AudioContent,
    PictureContent,
    PipelineDescription,
    SpeechParameters,
    TextReport,
)
from engine.stage import Replica

if TYPE_CHECKING:
    from engine.multimodal import MediaItem

Models = Mapping[str, Path]
"""The folder of each stage's model, by stage name."""

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
        source: The producing stage, or CLIENT for the request's input.
        target: The consuming stage, or CLIENT for the request's output.
        adapter: Makes a request's conversion from the models' folders and the request's
            parameters; None where nothing is converted.
        capacity: The most that may be in flight, in units of `cost`.
        reserve: The largest cost of one chunk.
        cost: A payload's cost.
        routes: The routes that lead over this edge.
        carries: The types of payload that travel here; None: all that the source makes.
    """

    source: str
    target: str
    adapter: Callable[[Models, SpeechParameters], Adapter] | None
    capacity: int
    reserve: int
    cost: Callable[[Any], int]
    routes: tuple[str, ...] = ("speech",)
    carries: tuple[type, ...] | None = None


@dataclass(frozen=True, slots=True)
class HearingConfig:
    """How a pipeline's Thinker hears. Its functions are called on threads, not the engine's.

    Attributes:
        stage: The stage whose encoder takes sound; its replicas are `EncodingReplica`s.
        prepare: Makes what the adapters will need of a sound, which is kept while the sound lives;
            raises ValueError for one that cannot be heard.
        beginning: What can be encoded of a sound while more of it comes: items as they will stand
            in a prompt with the whole sound, if nothing follows that changes them.
    """

    stage: str
    prepare: Callable[[Models, AudioContent], None]
    beginning: Callable[[Models, AudioContent], Sequence[MediaItem]]


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A named graph of stages.

    Attributes:
        name: The pipeline's name.
        stages: From upstream to downstream.
        edges: On every route each stage has one edge in, and the route starts and ends at CLIENT.
        describe: What clients may know, from the models' folders.
        resolve: The folders of the stages' models, from what the operator named (None means the
            default) and the cache folder in which fetched models lie.
        check: Raises InvalidRequestError for parameters that the pipeline cannot serve.
        inspect: A quick look at a text.
        warm_up_text: What is spoken before the engine calls itself ready.
        deploy: The deployment that is used when none is given.
        check_models: Like `check`, for what depends on the models' folders; None: nothing does.
        clones: Whether it can speak with the voice of reference audio.
        hearing: How its Thinker hears; None: it does not.
        see: Makes what the adapters will need of a picture, which is kept while the picture lives;
            called on threads; raises InvalidRequestError for one that cannot be seen. None: it
            takes no pictures.
    """

    name: str
    stages: tuple[StageConfig, ...]
    edges: tuple[EdgeConfig, ...]
    describe: Callable[[Models], PipelineDescription]
    resolve: Callable[[str | None, Path], Models]
    check: Callable[[SpeechParameters], None]
    inspect: Callable[[str], TextReport]
    warm_up_text: str
    deploy: Path
    check_models: Callable[[Models, SpeechParameters], None] | None = None
    clones: bool = False
    hearing: HearingConfig | None = None
    see: Callable[[Models, PictureContent], None] | None = None

    def __post_init__(self) -> None:
        """Checks that the graph is a graph.

        Raises:
            ConfigurationError: A name is unknown or twice, or a stage has no way in.
        """
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ConfigurationError(f"Pipeline {self.name!r} names a stage twice: {names}.")
        if self.hearing is not None and self.hearing.stage not in names:
            raise ConfigurationError(
                f"Pipeline {self.name!r} hears with {self.hearing.stage!r}, which is no stage."
            )
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end != CLIENT and end not in names:
                    raise ConfigurationError(
                        f"Pipeline {self.name!r} has an edge to {end!r}, which is no stage."
                    )
        for route in self.routes:
            self._check_route(route)

    def _check_route(self, route: str) -> None:
        edges = self.edges_of(route)
        for end, place in (("source", "starts"), ("target", "ends")):
            at_client = [e for e in edges if (e.source if end == "source" else e.target) == CLIENT]
            if not at_client or (end == "source" and len(at_client) > 1):
                raise ConfigurationError(
                    f"Route {route!r} of pipeline {self.name!r} {place} {len(at_client)} times "
                    "at the client."
                )
        for stage in self.stages_of(route):
            ways_in = [edge for edge in edges if edge.target == stage]
            if len(ways_in) != 1:
                raise ConfigurationError(
                    f"Stage {stage!r} has {len(ways_in)} edges in on route {route!r} of pipeline "
                    f"{self.name!r}; it needs exactly one."
                )

    def check_parameters(self, models: Models, parameters: SpeechParameters) -> None:
        """Refuses what cannot be served with these models, rather than leaving it out silently.

        Raises:
            InvalidRequestError: A parameter asks for it; it is named.
        """
        given = {"ref_audio": parameters.reference_audio, "ref_text": parameters.reference_text}
        for name, value in given.items():
            if value is not None and not self.clones:
                raise InvalidRequestError(
                    name,
                    f"{name} was given, but {self.name} has its own voices and clones none; "
                    "leave it out.",
                )
        self.check(parameters)
        if self.check_models is not None:
            self.check_models(models, parameters)

    def check_deployment(self, deployment: DeployConfig) -> None:
        """Refuses what a stage's kind cannot do.

        Raises:
            ConfigurationError: A stage that vLLM does not run is to be quantised.
        """
        for stage in self.stages:
            asked = deployment.stage(stage.name).quantization
            if asked is not None and stage.kind is not StageKind.AUTOREGRESSIVE:
                raise ConfigurationError(
                    f"stages.{stage.name}.quantization is {asked!r}, but {stage.name} is a "
                    f"{stage.kind} stage: it computes in its dtype. Leave quantization out; "
                    "autoregressive stages can have it."
                )

    @property
    def routes(self) -> tuple[str, ...]:
        """The names of all routes, in the order of the edges that name them."""
        return tuple(dict.fromkeys(route for edge in self.edges for route in edge.routes))

    def edges_of(self, route: str) -> list[EdgeConfig]:
        """The edges of a route."""
        return [edge for edge in self.edges if route in edge.routes]

    def stages_of(self, route: str) -> list[str]:
        """The stages of a route, upstream first."""
        ends = {end for edge in self.edges_of(route) for end in (edge.source, edge.target)}
        return [stage.name for stage in self.stages if stage.name in ends]


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


def describe_pipeline(name: str, model: str | None, cache: Path) -> PipelineDescription:
    """What clients may know about an installed pipeline, without starting it.

    Args:
        name: The pipeline's name.
        model: What the operator named instead of its own model.
        cache: The folder in which fetched models lie.

    Raises:
        ConfigurationError: There is no such pipeline, or its model is not here.
    """
    config = load_pipeline(name)
    return config.describe(config.resolve(model, cache))
