from __future__ import annotations

import asyncio

import pytest

from app.text_stream.flushes import FlushTracker
from app.text_stream.outbox import Outbox
from engine import WordTiming


def _word(text: str, start_character: int, start: float, end: float) -> WordTiming:
    return WordTiming(text, start_character, start_character + len(text), start, end)


def test_a_flush_is_over_when_its_last_word_was_heard_to_the_end() -> None:
    tracker = FlushTracker()
    tracker.add_text("Hello world. ")
    tracker.add_flush("f")
    assert tracker.advance((_word("Hello", 0, 0.0, 0.3),), 0.3) == []
    assert tracker.advance((_word("world.", 6, 0.3, 0.8),), 0.5) == []
    (flush,) = tracker.advance((), 0.8)
    assert flush.client_event_id == "f"
    assert tracker.advance((), 5.0) == []


def test_a_word_behind_the_flush_shows_that_it_is_over() -> None:
    tracker = FlushTracker()
    tracker.add_text("你好 ")  # letters that are never spoken
    tracker.add_flush("f")
    tracker.add_text("Then")
    assert tracker.advance((), 1.0) == []
    assert len(tracker.advance((_word("Then", 3, 1.0, 1.2),), 1.1)) == 1


def test_a_flush_without_new_words_is_over_with_the_words_before_it() -> None:
    tracker = FlushTracker()
    tracker.add_flush("nothing yet")
    assert [flush.client_event_id for flush in tracker.advance((), 0.0)] == ["nothing yet"]
    tracker.add_text("Yes.")
    tracker.add_flush("a")
    tracker.add_text(" … ")
    tracker.add_flush("b")
    assert tracker.advance((_word("Yes.", 0, 0.0, 0.4),), 0.2) == []
    assert [flush.client_event_id for flush in tracker.advance((), 0.4)] == ["a", "b"]


def test_the_end_of_the_text_ends_every_flush() -> None:
    tracker = FlushTracker()
    tracker.add_text("Hello")
    tracker.add_flush("a")
    tracker.add_flush("b")
    assert [flush.client_event_id for flush in tracker.finish()] == ["a", "b"]
    assert tracker.finish() == []


@pytest.mark.asyncio
async def test_audio_waits_for_room_and_answers_do_not() -> None:
    outbox = Outbox(audio_bytes=10)
    await outbox.put_audio("a", "0123456789")
    waiting = asyncio.create_task(outbox.put_audio("a", "more"))
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.put(None, "answer")
    first, second = await outbox.take(), await outbox.take()
    assert first is not None
    assert second is not None
    assert (first.data, second.data) == ("0123456789", "answer")
    await asyncio.wait_for(waiting, 1)


@pytest.mark.asyncio
async def test_many_writers_do_not_overrun_the_bound_together() -> None:
    outbox = Outbox(audio_bytes=10)
    await outbox.put_audio("a", "0123456789")
    writers = [asyncio.create_task(outbox.put_audio(str(n), "0123456789")) for n in range(5)]
    await asyncio.sleep(0)
    await outbox.take()
    await asyncio.sleep(0.01)
    assert sum(writer.done() for writer in writers) == 1
    for writer in writers:
        writer.cancel()


@pytest.mark.asyncio
async def test_a_purge_takes_back_one_context_and_makes_room() -> None:
    outbox = Outbox(audio_bytes=4)
    outbox.put("a", "created a")
    await outbox.put_audio("a", "aaaa")
    waiting = asyncio.create_task(outbox.put_audio("b", "bbbb"))
    await asyncio.sleep(0)
    outbox.purge("a")
    outbox.put("a", "cancelled a")
    await asyncio.wait_for(waiting, 1)
    outbox.finish()
    sent = []
    while (frame := await outbox.take()) is not None:
        sent.append(frame.data)
    assert sent == ["cancelled a", "bbbb"]


@pytest.mark.asyncio
async def test_the_reader_waits_when_nobody_reads_the_answers() -> None:
    outbox = Outbox(audio_bytes=4, control_frames=2)
    outbox.put(None, "1")
    await asyncio.wait_for(outbox.control_room(), 1)
    outbox.put(None, "2")
    waiting = asyncio.create_task(outbox.control_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.take()
    await asyncio.wait_for(waiting, 1)
