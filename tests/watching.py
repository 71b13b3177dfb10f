"""Waiting for what a server does in the background, and reading what it counts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


async def comes_true(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Like `until`, for tests on an event loop."""
    return await asyncio.to_thread(until, condition, seconds)


def metric(base_url: str, name: str) -> float:
    """The sum of all samples of a metric."""
    return sum(sample.value for sample in _samples(base_url) if sample.name == name)


def outcomes(base_url: str) -> dict[str, float]:
    """How many speech requests ended in which way."""
    counts: Counter[str] = Counter()
    for sample in _samples(base_url):
        if sample.name == "antiphon_speech_requests_total":
            counts[sample.labels["outcome"]] += sample.value
    return dict(counts)


def _samples(base_url: str) -> Iterator[Sample]:
    text = httpx.get(f"{base_url}/metrics", timeout=20).text
    families: Iterator[Metric] = text_string_to_metric_families(text)
    return (sample for family in families for sample in family.samples)
