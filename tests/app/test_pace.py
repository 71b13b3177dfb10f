from __future__ import annotations

import asyncio
import time

import pytest

from app.pace import ClientPace, SlowClientError


class Clock:
    """A clock that a fake client moves by reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def blocked(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.mark.asyncio
async def test_a_client_that_reads_in_real_time_may_go_on_for_ever(clock: Clock) -> None:
    pace = ClientPace(10)
    for _ in range(1000):
        await pace.send(clock.blocked(0.5), seconds=0.5)
    assert pace.allowance == pytest.approx(10)


@pytest.mark.asyncio
async def test_a_player_that_took_much_at_once_may_rest(clock: Clock) -> None:
    pace = ClientPace(10)
    await pace.send(clock.blocked(0.0), seconds=100)
    assert pace.allowance == 110
    await pace.send(clock.blocked(90), seconds=1)
    assert pace.allowance == 21


@pytest.mark.asyncio
async def test_half_speed_uses_the_allowance_up(clock: Clock) -> None:
    pace = ClientPace(10)
    for _ in range(20):
        await pace.send(clock.blocked(1.0), seconds=0.5)
    assert pace.allowance == pytest.approx(0)
    with pytest.raises(SlowClientError):
        await pace.send(asyncio.sleep(1))


@pytest.mark.asyncio
async def test_a_client_that_stops_reading_is_ended_after_the_limit() -> None:
    pace = ClientPace(0.05)
    began = asyncio.get_running_loop().time()
    with pytest.raises(SlowClientError):
        await pace.send(asyncio.sleep(10))
    assert asyncio.get_running_loop().time() - began < 2


@pytest.mark.asyncio
async def test_a_slow_server_is_not_the_clients_fault(clock: Clock) -> None:
    pace = ClientPace(10)
    clock.now += 1000
    await pace.send(clock.blocked(0.01), seconds=1)
    assert pace.allowance == pytest.approx(11)


@pytest.mark.asyncio
async def test_what_was_played_long_ago_buys_no_time(clock: Clock) -> None:
    pace = ClientPace(10)
    for _ in range(3600):
        await pace.send(clock.blocked(0.0), seconds=1)
        clock.now += 1
    assert pace.allowance == pytest.approx(10)


@pytest.mark.asyncio
async def test_who_catches_up_is_forgiven(clock: Clock) -> None:
    pace = ClientPace(10)
    await pace.send(clock.blocked(8), seconds=0)
    assert pace.allowance == pytest.approx(2)
    for _ in range(6):
        await pace.send(clock.blocked(0.0), seconds=1)
        clock.now += 1
    assert pace.allowance == pytest.approx(8)
    clock.now += 100
    assert pace.allowance == pytest.approx(8)
