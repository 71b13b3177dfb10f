"""Checks, once the stages are loaded, that what they make fits the edges it goes over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.chunk import AudioPayload
from engine.errors import ConfigurationError
from engine.generation import GenerationReplica
from engine.pipeline_config import EdgeConfig, PipelineConfig
from engine.stage import StageRuntime


def check_largest_chunks(pipeline: PipelineConfig, runtimes: Sequence[StageRuntime]) -> None:
    """A stage with credit may send one chunk: its largest must fit the edge's reserve.

    Raises:
        ConfigurationError: A deployment's `chunk.maximum_units` is too large; the message names
            the largest value that fits.
    """
    for runtime in runtimes:
        edges = [edge for edge in pipeline.edges if edge.source == runtime.name]
        for slot in runtime.slots:
            if isinstance(slot.replica, GenerationReplica):
                for edge in edges:
                    _check(runtime.name, slot.replica, edge)


def _check(stage: str, replica: GenerationReplica, edge: EdgeConfig) -> None:
    module, units = replica.module, replica.scheduler.policy.maximum_units
    samples = np.zeros(units * module.unit_samples, np.float32)
    cost = edge.cost(AudioPayload(samples, module.sample_rate))
    if cost <= edge.reserve:
        return
    most = edge.reserve * units // cost
    raise ConfigurationError(
        f"stages.{stage}.chunk.maximum_units is {units}: a chunk of so many units costs {cost} "
        f"where the edge from {stage!r} to {edge.target or 'the client'!r} reserves "
        f"{edge.reserve} for one; set it to at most {most}."
    )
