"""What the engine is doing at the moment somebody asks, as Prometheus gauges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.connector import InProcessConnector
from engine.encoding_ahead import EncodingAhead
from engine.live_request import LiveRequest
from engine.metrics import EngineMetrics
from engine.stage import StageRuntime
from engine.turns import Turns


def add_gauges(
    metrics: EngineMetrics,
    turns: Turns,
    connector: InProcessConnector,
    runtimes: Sequence[StageRuntime],
    live: Mapping[str, LiveRequest],
    ahead: EncodingAhead,
) -> None:
    """Adds the gauges; each reads its value when it is asked for, from any thread."""
    metrics.gauge("antiphon_requests_running", "Requests at work.", lambda: turns.running)
    metrics.gauge("antiphon_requests_waiting", "Requests in line.", lambda: turns.waiting)
    metrics.gauge("antiphon_requests_live", "Requests inside the stages.", lambda: len(live))
    metrics.gauge("antiphon_edges_open", "Open channels.", lambda: len(connector))
    metrics.gauge(
        "antiphon_credits_in_use",
        "What is in flight on all edges, in the edges' units.",
        lambda: sum(request.credits_in_use for request in list(live.values())),
    )
    metrics.gauge(
        "antiphon_encodings_waiting",
        "Windows of sound that are to be encoded before their turn has ended.",
        lambda: ahead.waiting,
    )
    stages = {runtime.name: runtime for runtime in runtimes}
    metrics.stage_gauge(
        "antiphon_stage_queue_depth",
        "Requests that could take part in a stage's next step.",
        stages,
        lambda stage: stages[stage].ready,
    )
    metrics.stage_gauge(
        "antiphon_stage_requests",
        "Requests inside a stage.",
        stages,
        lambda stage: stages[stage].requests,
    )
    metrics.stage_gauge(
        "antiphon_stage_credits_in_use",
        "What a stage made and nobody took yet, in the units of its edges.",
        stages,
        lambda stage: sum(request.in_flight_of(stage) for request in list(live.values())),
    )
