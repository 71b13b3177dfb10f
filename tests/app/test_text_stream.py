"""The text-in WebSocket on a real socket."""

from __future__ import annotations

import base64
import json
import logging
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from app.text_stream.context import MOST_FLUSHES
from tests.app.doubles import WORD_SAMPLES, HummingEngine
from tests.app.serving import Serving, serving
from tests.watching import metric, until

PATH = "/v1/audio/speech/stream"


class Talk:
    """One side of the conversation."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[dict[str, Any]] = []

    def send(self, event_type: str, **fields: object) -> None:
        self.socket.send(json.dumps({"type": event_type, **fields}))

    def receive(self) -> dict[str, Any]:
        message = self.socket.recv(timeout=10)
        event = {"type": "binary", "data": message} if isinstance(message, bytes) else {}
        event = event or json.loads(message)
        self.seen.append(event)
        return event

    def until(self, *event_types: str, context: str | None = None) -> dict[str, Any]:
        while True:
            event = self.receive()
            if event["type"] in event_types and context in (None, event.get("context_id")):
                return event

    def of(self, context: str) -> list[str]:
        return [event["type"] for event in self.seen if event.get("context_id") == context]

    def audio(self, context: str) -> bytes:
        return b"".join(
            base64.b64decode(event["audio"], validate=True)
            for event in self.seen
            if event["type"] == "audio.delta" and event["context_id"] == context
        )


@contextmanager
def _talk(running: Serving, **options: Any) -> Generator[Talk]:
    with connect(running.websocket_url + PATH, **options) as connection:
        talk = Talk(connection)
        assert talk.receive()["type"] == "session.created"
        yield talk


@pytest.fixture(scope="module")
def running() -> Generator[Serving]:
    with serving(HummingEngine(pace=0.005)) as started:
        yield started


@pytest.fixture
def talk(running: Serving) -> Generator[Talk]:
    with _talk(running) as opened:
        yield opened


def test_speech_begins_before_the_text_ends(talk: Talk) -> None:
    talk.send("context.create", context_id="a", voice="nova", timestamps="word")
    created = talk.until("context.created")
    assert (created["voice"], created["response_format"]) == ("high", "pcm")
    talk.send("text.append", context_id="a", text="One two")
    talk.send("text.append", context_id="a", text=" thr")
    word = talk.until("word")
    assert word["word"] == "One"
    talk.until("audio.delta")
    talk.send("text.append", context_id="a", text="ee")
    talk.send("text.done", context_id="a")
    done = talk.until("context.done")
    assert [event["word"] for event in talk.seen if event["type"] == "word"] == [
        "One",
        "two",
        "three",
    ]
    assert len(talk.audio("a")) == 3 * 2 * WORD_SAMPLES
    assert done["seconds"] == 0.6
    assert done["usage"] == {"input_tokens": 13, "output_tokens": 12, "total_tokens": 25}
    assert "left_out" not in done


def test_a_flush_is_answered_behind_its_sound(talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.append", context_id="a", text="One two")
    talk.send("text.flush", context_id="a", event_id="flush-1")
    flushed = talk.until("context.flushed")
    assert flushed["client_event_id"] == "flush-1"
    assert len(talk.audio("a")) == 2 * 2 * WORD_SAMPLES
    talk.send("text.append", context_id="a", text=" three")
    talk.send("text.done", context_id="a")
    talk.until("context.done")
    assert len(talk.audio("a")) == 3 * 2 * WORD_SAMPLES


def test_what_was_left_out_is_told_at_the_end(talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.append", context_id="a", text="Hello 世")
    talk.send("text.done", context_id="a")
    assert talk.until("context.done")["left_out"] == ["世"]


def test_a_context_that_is_cancelled_before_it_begins_has_its_end_too(talk: Talk) -> None:
    created = {"type": "context.create", "context_id": "a", "voice": "low"}
    cancelled = {"type": "context.cancel", "context_id": "a"}
    protocol = talk.socket.protocol
    for event in (created, cancelled):
        protocol.send_text(json.dumps(event).encode())
    # In one piece, so that the server reads both before anything else happens.
    talk.socket.socket.sendall(b"".join(protocol.data_to_send()))
    talk.until("context.cancelled")
    assert talk.of("a") == ["context.created", "context.cancelled"]


def test_cancelling_is_acknowledged_and_nothing_follows(running: Serving, talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.append", context_id="a", text="x " * 500)
    talk.until("audio.delta")
    talk.send("context.cancel", context_id="a")
    talk.until("context.cancelled")
    assert not running.engine.live
    talk.send("context.create", context_id="b")
    talk.send("text.append", context_id="b", text="One two")
    talk.send("text.done", context_id="b")
    talk.until("context.done", context="b")
    assert talk.of("a")[-1] == "context.cancelled"
    assert talk.of("a").count("context.cancelled") == 1


def test_a_text_without_words_ends_well_and_silently(talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.done", context_id="a")
    assert talk.until("context.done")["seconds"] == 0
    assert talk.audio("a") == b""


def test_a_name_can_be_used_again_after_its_end(talk: Talk) -> None:
    for _ in range(3):
        talk.send("context.create", context_id="a")
        talk.send("text.append", context_id="a", text="One")
        talk.send("text.done", context_id="a")
        talk.until("context.done")


def test_several_contexts_speak_at_once(talk: Talk) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        talk.send("context.create", context_id=name)
    for word in range(5):
        for name in names:
            talk.send("text.append", context_id=name, text=f" word{word}")
    for name in names:
        talk.send("text.done", context_id=name)
    for _ in names:
        talk.until("context.done")
    for name in names:
        assert len(talk.audio(name)) == 5 * 2 * WORD_SAMPLES


def test_one_contexts_failure_is_its_own(talk: Talk) -> None:
    talk.send("context.create", context_id="good")
    talk.send("context.create", context_id="bad")
    talk.send("context.create", context_id="worse")
    talk.send("text.append", context_id="good", text="One two three")
    talk.send("text.append", context_id="bad", text="One FAIL two")
    talk.send("text.append", context_id="worse", text="BROKEN now")
    failed = talk.until("context.failed", context="bad")
    assert failed["error"]["code"] == "stage_failed"
    talk.send("text.done", context_id="good")
    talk.until("context.done", context="good")
    assert len(talk.audio("good")) == 3 * 2 * WORD_SAMPLES
    assert talk.of("bad")[-1] == "context.failed"
    assert talk.of("worse")[-1] == "context.failed"


@pytest.mark.parametrize("audio_format", ["mp3", "opus", "wav"])
def test_other_formats_are_one_stream_a_context(talk: Talk, audio_format: str) -> None:
    talk.send("context.create", context_id="a", response_format=audio_format)
    talk.send("text.append", context_id="a", text="One two three")
    talk.send("text.done", context_id="a")
    talk.until("context.done")
    magic = {"mp3": b"\xff", "opus": b"OggS", "wav": b"RIFF"}[audio_format]
    assert talk.audio("a").startswith(magic)


def test_binary_frames_on_request(talk: Talk) -> None:
    talk.send("session.update", session={"audio": "binary"})
    assert talk.until("session.updated")["session"]["audio"] == "binary"
    talk.send("context.create", context_id="ctx")
    talk.send("text.append", context_id="ctx", text="One two")
    talk.send("text.done", context_id="ctx")
    talk.until("context.done")
    frames = [event["data"] for event in talk.seen if event["type"] == "binary"]
    assert all(frame.startswith(b"\x03ctx") for frame in frames)
    assert sum(len(frame) - 4 for frame in frames) == 2 * 2 * WORD_SAMPLES


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ("{", "invalid_json", None),
        (b"\x00\x01", "invalid_event", None),
        ('{"type":"nonsense","event_id":"e"}', "invalid_value", "type"),
        ('{"type":"text.append","context_id":"zz","text":"a"}', "context_not_active", "context_id"),
        ('{"type":"context.cancel","context_id":"zz"}', "context_not_active", "context_id"),
        ('{"type":"context.create","voice":"nobody"}', "invalid_value", "voice"),
        ('{"type":"context.create","model":"nothing"}', "model_not_found", "model"),
        ('{"type":"context.create","context_id":"live"}', "context_exists", "context_id"),
        ('{"type":"text.append","context_id":"live","text":"%s"}', "event_too_large", None),
    ],
)
def test_mistakes_are_answered_and_the_socket_stays(
    talk: Talk, event: str | bytes, code: str, param: str | None
) -> None:
    talk.send("context.create", context_id="live")
    talk.socket.send(event.replace("%s", "x" * 300_000) if isinstance(event, str) else event)
    error = talk.until("error")["error"]
    assert (error["code"], error["param"]) == (code, param)
    talk.send("text.append", context_id="live", text="One")
    talk.send("text.done", context_id="live")
    talk.until("context.done", context="live")


def test_text_after_the_end_of_text_is_refused(talk: Talk) -> None:
    talk.send("context.create", context_id="a")
    talk.send("text.append", context_id="a", text="x " * 50)
    talk.send("text.done", context_id="a")
    talk.send("text.append", context_id="a", text="more", event_id="late")
    error = talk.until("error")["error"]
    assert (error["code"], error["event_id"]) == ("context_not_active", "late")
    talk.until("context.done")


def test_flushes_that_wait_are_limited() -> None:
    with serving(HummingEngine(pace=1)) as running, _talk(running) as talk:
        talk.send("context.create", context_id="a")
        talk.send("text.append", context_id="a", text="One two three ")
        for _ in range(MOST_FLUSHES + 1):
            talk.send("text.flush", context_id="a")
        error = talk.until("error")["error"]
        assert (error["code"], error["param"]) == ("too_many_flushes", "context_id")


def test_contexts_and_their_text_are_limited() -> None:
    with (
        serving(websocket_contexts=2, websocket_context_characters=10) as running,
        _talk(running) as talk,
    ):
        for name in ("a", "b", "c"):
            talk.send("context.create", context_id=name)
        assert talk.until("error")["error"]["code"] == "too_many_contexts"
        talk.send("text.append", context_id="a", text="12345 789")
        talk.send("text.append", context_id="a", text="xx")
        assert talk.until("error")["error"]["code"] == "string_above_max_length"
        talk.send("text.done", context_id="a")
        talk.until("context.done", context="a")


def test_closing_cancels_everything_and_says_goodbye(running: Serving) -> None:
    with _talk(running) as talk:
        for name in ("a", "b"):
            talk.send("context.create", context_id=name)
            talk.send("text.append", context_id=name, text="x " * 500)
        talk.until("audio.delta")
        talk.send("session.close")
        talk.until("session.closed")
        with pytest.raises(ConnectionClosed) as raised:
            talk.receive()
        assert raised.value.rcvd is not None
        assert raised.value.rcvd.code == 1000
        assert talk.of("a")[-1] == talk.of("b")[-1] == "context.cancelled"
        assert not running.engine.live


@pytest.mark.parametrize("politely", [True, False])
def test_a_client_that_leaves_takes_its_contexts_along(running: Serving, politely: bool) -> None:
    with _talk(running) as talk:
        for name in ("a", "b"):
            talk.send("context.create", context_id=name)
            talk.send("text.append", context_id=name, text="x " * 500)
        talk.until("audio.delta")
        if politely:
            talk.socket.close()
        else:
            talk.socket.socket.shutdown(socket.SHUT_RDWR)
        assert until(lambda: not running.engine.live)
    assert until(lambda: metric(running.base_url, "antiphon_websocket_connections") == 0)
    assert metric(running.base_url, "antiphon_speech_active") == 0


def test_an_idle_socket_is_closed_with_a_word() -> None:
    with serving(websocket_idle_seconds=0.3) as running, _talk(running) as talk:
        talk.send("context.create", context_id="waits-for-text")
        assert talk.until("error")["error"]["code"] == "idle_timeout"
        with pytest.raises(ConnectionClosed):
            talk.until("never")
        assert until(lambda: not running.engine.live)


def test_a_socket_that_only_listens_is_not_idle() -> None:
    engine = HummingEngine(pace=0.05)
    with serving(engine, websocket_idle_seconds=0.4) as running, _talk(running) as talk:
        talk.send("context.create", context_id="a")
        talk.send("text.append", context_id="a", text="x " * 20)
        talk.send("text.done", context_id="a")
        talk.until("context.done")


def test_a_client_that_stops_reading_is_cut_off() -> None:
    engine = HummingEngine()
    with serving(
        engine,
        slow_client_seconds=0.4,
        socket_send_buffer_bytes=8192,
        write_buffer_bytes=8192,
        websocket_queue_bytes=20_000,
    ) as running:
        raw = socket.create_connection(("127.0.0.1", int(running.base_url.rpartition(":")[2])))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with _talk(running, sock=raw, max_queue=1) as talk:
            talk.send("context.create", context_id="a")
            talk.send("text.append", context_id="a", text="x " * 20_000)
            assert until(lambda: engine.live)
            time.sleep(0.3)
            assert engine.made < 300, "the engine is made to wait"
            assert until(lambda: not engine.live)
            assert until(lambda: metric(running.base_url, "antiphon_websocket_connections") == 0)
            raw.close()


def test_cancelling_does_not_wait_behind_audio_that_nobody_took() -> None:
    engine = HummingEngine()
    with (
        serving(engine, websocket_queue_bytes=2_000_000) as running,
        _talk(running, max_queue=2) as talk,
    ):
        talk.send("context.create", context_id="a")
        talk.send("text.append", context_id="a", text="x " * 5000)
        assert until(lambda: engine.made > 100)
        talk.send("context.cancel", context_id="a")
        assert until(lambda: not engine.live)
        talk.until("context.cancelled")
        assert len(talk.audio("a")) < engine.made * 2 * WORD_SAMPLES


class TestAccess:
    def test_a_refused_upgrade_is_no_error_of_the_servers(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with serving(api_keys="first") as running:
            for path in (PATH, "/v1/realtime", "/v1/live/sessions"):
                with pytest.raises(InvalidStatus) as raised:
                    connect(running.websocket_url + path)
                assert raised.value.response.status_code == 401
            assert httpx.get(f"{running.base_url}/health").status_code == 200
        assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []

    def test_keys_in_header_or_subprotocol(self) -> None:
        with serving(api_keys="first") as running:
            with pytest.raises(InvalidStatus) as raised, _talk(running):
                pass
            assert raised.value.response.status_code == 401
            assert json.loads(raised.value.response.body)["error"]["code"] == "invalid_api_key"
            with _talk(running, additional_headers={"Authorization": "Bearer first"}):
                pass
            protocols = ["realtime", "openai-insecure-api-key.first"]
            with _talk(running, subprotocols=protocols) as talk:
                assert talk.socket.subprotocol == "realtime"

    def test_pages_of_other_origins_need_permission(self) -> None:
        with serving(cors_origins="https://a.example") as running:
            with _talk(running, origin="https://a.example"):
                pass
            with _talk(running, origin=running.base_url):
                pass
            with (
                pytest.raises(InvalidStatus) as raised,
                _talk(running, origin="https://b.example"),
            ):
                pass
            assert raised.value.response.status_code == 403

    def test_nothing_offered_nothing_chosen(self, running: Serving) -> None:
        with _talk(running) as talk:
            assert talk.socket.subprotocol is None


def test_a_server_that_ends_closes_its_sockets_and_contexts() -> None:
    engine = HummingEngine(pace=0.05)
    with serving(engine) as running, _talk(running) as talk:
        talk.send("context.create", context_id="a")
        talk.send("text.append", context_id="a", text="x " * 500)
        talk.until("audio.delta")
        running.server.stop()
        with pytest.raises(ConnectionClosed) as raised:
            talk.until("never")
        assert raised.value.rcvd is not None
        assert raised.value.rcvd.code == 1012, "clients come back after a restart"
        assert until(lambda: not engine.live)
        assert until(lambda: engine.closed)
