from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.host import Host
from tests.toys import Toy, started


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host("host of a test")
    host.start()
    yield host
    host.close(5)
    assert not host.alive


def test_calls_run_in_order_on_the_one_thread(host: Host) -> None:
    order: list[int] = []
    futures = [host.call(lambda index=index: order.append(index)) for index in range(100)]
    for future in futures:
        future.result(5)
    assert order == list(range(100))
    assert host.call(threading.current_thread).result(5).name == "host of a test"


def test_what_a_call_raises_belongs_to_its_caller(host: Host) -> None:
    with pytest.raises(ZeroDivisionError):
        host.call(lambda: 1 / 0).result(5)
    with pytest.raises(SystemExit):
        host.call(exit).result(5)
    assert host.alive


def test_a_call_whose_caller_is_gone_still_runs_and_ends_nothing(host: Host) -> None:
    entered, gate = threading.Event(), threading.Event()
    done: list[str] = []
    host.post(lambda: (entered.set(), gate.wait(5)))
    assert entered.wait(5)
    abandoned = host.call(lambda: done.append("abandoned"))
    failing = host.call(lambda: 1 / 0)
    assert abandoned.cancel()
    assert failing.cancel()
    gate.set()
    host.call(lambda: done.append("after")).result(5)
    assert done == ["abandoned", "after"]
    assert host.alive


def test_an_awaiting_task_may_be_cancelled(host: Host) -> None:
    async def use() -> None:
        gate = threading.Event()
        host.post(lambda: gate.wait(5))
        waiting = asyncio.ensure_future(asyncio.wrap_future(host.call(lambda: 1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        assert await asyncio.wrap_future(host.call(lambda: 2)) == 2

    asyncio.run(use())
    assert host.alive


def test_what_is_posted_after_the_end_still_runs() -> None:
    host = Host("closed")
    host.start()
    host.close(5)
    host.close(5)
    assert host.call(lambda: 3).result(5) == 3


def test_a_stop_that_is_met_between_two_steps_ends_the_thread_at_once(tmp_path: Path) -> None:
    """The stop is found by the turn's first look into the inbox, not by its sleep."""

    async def use() -> None:
        async with started(Toy().pipeline, tmp_path) as engine:
            host = engine._host
            host.post(lambda: host.post(host._stop))
            await asyncio.to_thread(host._thread.join, 5)
            assert not host._thread.is_alive()

    asyncio.run(use())


def test_many_posters_lose_nothing(host: Host) -> None:
    count = [0]

    def add() -> None:
        count[0] += 1

    posters = [
        threading.Thread(target=lambda: [host.post(add) for _ in range(500)]) for _ in range(4)
    ]
    for poster in posters:
        poster.start()
    for poster in posters:
        poster.join(5)
    assert host.call(lambda: count[0]).result(5) == 2000
