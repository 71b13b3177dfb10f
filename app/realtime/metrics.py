"""What is counted about realtime sessions."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0)


class RealtimeMetrics:
    """The metrics of all sessions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Registers them."""
        self.sessions = Gauge("antiphon_realtime_sessions", "Realtime sessions.", registry=registry)
        self.responses = Counter(
            "antiphon_realtime_responses",
            "Responses that ended, by how.",
            ["outcome"],
            registry=registry,
        )
        self.errors = Counter(
            "antiphon_realtime_errors",
            "Events of clients that were refused, by why.",
            ["code"],
            registry=registry,
        )
        self.first_sound = Histogram(
            "antiphon_realtime_first_sound_seconds",
            "From the end of a turn, or the wish for a response, to its first sound.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.first_sound_share = Histogram(
            "antiphon_realtime_first_sound_share_seconds",
            "The part of that time which each has: the ear, the waiting line (admission), each "
            "stage, the way to the client (delivery).",
            ["part"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.noticed = Histogram(
            "antiphon_realtime_noticed_seconds",
            "From the arrival of the sound that makes a turn to what it brings about: the last "
            "sound of an answer has been sent before.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.words_known = Histogram(
            "antiphon_realtime_words_known_seconds",
            "From the end of a turn to its words.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.interruption = Histogram(
            "antiphon_realtime_interruption_seconds",
            "From the end of an interrupted response for its client to the engine's own end of it.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.dropped_sound = Counter(
            "antiphon_realtime_dropped_sound_seconds",
            "Sound of interrupted answers that was made and not sent.",
            registry=registry,
        )
