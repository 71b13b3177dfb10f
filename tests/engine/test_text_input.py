from __future__ import annotations

import asyncio

import pytest

from engine import InvalidRequestError, SpeechParameters, TextInput
from engine.chunk import TextPayload
from engine.request import LARGEST_SEED
from engine.text_input import MAXIMUM_PENDING_CHARACTERS


def test_a_whole_text_is_closed_and_taken_once() -> None:
    text = TextInput.whole("hello")
    assert text.closed
    assert text.take() == ([TextPayload("hello")], True)
    assert text.take() == ([], True)


def test_the_engine_is_woken_by_each_change() -> None:
    async def use() -> int:
        text = TextInput()
        woken = 0

        def wake() -> None:
            nonlocal woken
            woken += 1

        text.listen(wake)
        await text.write("a")
        text.flush()
        text.close()
        text.close()
        return woken

    assert asyncio.run(use()) == 3


def test_nothing_is_written_to_a_closed_text() -> None:
    async def use() -> None:
        text = TextInput()
        text.close()
        with pytest.raises(ValueError, match="closed"):
            await text.write("late")
        with pytest.raises(ValueError, match="closed"):
            text.flush()

    asyncio.run(use())


def test_flushes_and_empty_writes_that_change_nothing_pile_up_nothing() -> None:
    async def use() -> list[TextPayload]:
        text = TextInput()
        text.flush()
        for _ in range(1000):
            await text.write("")
        await text.write("a")
        for _ in range(1000):
            text.flush()
        await text.write("")
        text.flush()
        await text.write("b")
        text.flush()
        return text.take()[0]

    flush = TextPayload("", flush=True)
    assert asyncio.run(use()) == [TextPayload("a"), flush, TextPayload("b"), flush]


def test_a_fast_writer_waits_until_the_engine_has_read() -> None:
    async def use() -> None:
        text = TextInput()
        await text.write("x" * (MAXIMUM_PENDING_CHARACTERS + 1))
        writing = asyncio.ensure_future(text.write("y"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not writing.done()
        text.take()
        assert not writing.done()
        text.consumed(MAXIMUM_PENDING_CHARACTERS + 1)
        async with asyncio.timeout(5):
            await writing
        assert text.take() == ([TextPayload("y")], False)

    asyncio.run(use())


def test_a_waiting_writer_goes_on_when_nobody_will_read_any_more() -> None:
    async def use() -> None:
        text = TextInput()
        await text.write("x" * (MAXIMUM_PENDING_CHARACTERS + 1))
        writing = asyncio.ensure_future(text.write("y"))
        await asyncio.sleep(0)
        text.abandon()
        async with asyncio.timeout(5):
            await writing
        await text.write("z")
        text.flush()
        assert text.take() == ([], False)
        text.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("speed", 0.2),
        ("speed", float("nan")),
        ("speed", float("inf")),
        ("seed", -1),
        ("seed", LARGEST_SEED + 1),
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", float("nan")),
    ],
)
def test_parameters_that_no_stage_can_serve_are_refused(parameter: str, value: float) -> None:
    with pytest.raises(InvalidRequestError, match="must be") as refused:
        SpeechParameters(**{parameter: value})
    assert refused.value.parameter == parameter
