"""The text-in WebSocket against the real engine."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from websockets.sync.client import connect

from tests.app.test_text_stream import PATH, Talk
from tests.clients.speaking import SENTENCE, is_idle
from tests.watching import until


@pytest.fixture
def talk(running_server: str) -> Generator[Talk]:
    with connect(running_server.replace("http", "ws") + PATH) as connection:
        opened = Talk(connection)
        opened.until("session.created")
        yield opened


def test_tokens_are_spoken_without_waiting_for_the_sentence(talk: Talk) -> None:
    talk.send("context.create", context_id="a", timestamps="word", seed=1)
    tokens = ["This", " sent", "ence", " is", " writ", "ten", " to", "ken", " by", " token", " and"]
    for token in tokens:
        talk.send("text.append", context_id="a", text=token)
    first = talk.until("audio.delta")
    assert first["context_id"] == "a"
    talk.send("text.append", context_id="a", text=" spoken at once.")
    talk.send("text.done", context_id="a")
    done = talk.until("context.done")
    assert done["seconds"] == pytest.approx(len(talk.audio("a")) / 48_000, abs=1e-3)
    words = [event["word"] for event in talk.seen if event["type"] == "word"]
    text = "".join(tokens) + " spoken at once."
    assert [word.strip(".") for word in words] == text.rstrip(".").split()


def test_a_flush_is_answered_while_the_context_stays_open(talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.append", context_id="a", text="Hello there")
    talk.send("text.flush", context_id="a", event_id="f")
    assert talk.until("context.flushed")["client_event_id"] == "f"
    assert len(talk.audio("a")) > 0.3 * 48_000
    talk.send("text.append", context_id="a", text=" and goodbye.")
    talk.send("text.done", context_id="a")
    talk.until("context.done")


def test_cancel_ends_one_context_and_the_other_goes_on(talk: Talk, running_server: str) -> None:
    for name in ("a", "b"):
        talk.send("context.create", context_id=name)
        talk.send("text.append", context_id=name, text=SENTENCE * 3)
    talk.until("audio.delta", context="a")
    talk.send("context.cancel", context_id="a")
    talk.until("context.cancelled", context="a")
    talk.send("text.done", context_id="b")
    talk.until("context.done", context="b")
    assert talk.of("a")[-1] == "context.cancelled"
    talk.send("session.close")
    talk.until("session.closed")
    assert until(lambda: is_idle(running_server))


def test_a_socket_that_closes_leaves_nothing_behind(running_server: str) -> None:
    for _ in range(5):
        with connect(running_server.replace("http", "ws") + PATH) as connection:
            talk = Talk(connection)
            for name in ("a", "b", "c"):
                talk.send("context.create", context_id=name)
                talk.send("text.append", context_id=name, text=SENTENCE * 3)
            talk.until("audio.delta")
    assert until(lambda: is_idle(running_server))
