"""Who may come in, and how."""

from __future__ import annotations

import threading
import time

import httpx
import pytest
import websockets

from app.settings import Settings
from engine import ConfigurationError
from tests.app.realtime.conversing import talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import serving

pytestmark = pytest.mark.asyncio


async def test_session_created_holds_everything() -> None:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            session = talk.events[0]["session"]
    detection = session["audio"]["input"]["turn_detection"]
    assert detection == {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "idle_timeout_ms": None,
        "create_response": True,
        "interrupt_response": True,
    }
    assert session["audio"]["output"]["format"] == {"type": "audio/pcm", "rate": 24000}


async def test_keys() -> None:
    with serving(RoteEngine(), ear=False, api_keys="secret") as running:  # type: ignore[arg-type]
        url = running.websocket_url
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with talking(url):
                pass
        assert refused.value.response.status_code == 401
        async with talking(url, additional_headers={"Authorization": "Bearer secret"}):
            pass
        protocols = ["realtime", "openai-insecure-api-key.secret"]
        async with talking(url, subprotocols=protocols) as talk:
            assert talk.socket.subprotocol == "realtime"
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with talking(url, subprotocols=["realtime", "openai-insecure-api-key.no"]):
                pass
        assert refused.value.response.status_code == 401


async def test_a_client_secret_opens_a_session_with_its_own_settings() -> None:
    with serving(RoteEngine(), ear=False, api_keys="secret") as running:  # type: ignore[arg-type]
        async with httpx.AsyncClient(base_url=running.base_url) as http:
            made = await http.post(
                "/v1/realtime/client_secrets",
                headers={"Authorization": "Bearer secret"},
                json={
                    "expires_after": {"anchor": "created_at", "seconds": 60},
                    "session": {"type": "realtime", "instructions": "Be brief."},
                },
            )
            assert made.status_code == 200
            key = made.json()["value"]
            assert key.startswith("ek_")
            assert made.json()["session"]["instructions"] == "Be brief."
            assert made.json()["session"]["expires_at"] > time.time() + 3000
            refused = await http.post("/v1/realtime/client_secrets", json={})
            assert refused.status_code == 401
        protocols = ["realtime", f"openai-insecure-api-key.{key}"]
        async with talking(running.websocket_url, subprotocols=protocols) as talk:
            assert talk.events[0]["session"]["instructions"] == "Be brief."


async def test_a_request_for_a_client_secret_that_is_nested_too_deeply() -> None:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        url = f"{running.base_url}/v1/realtime/client_secrets"
        async with httpx.AsyncClient() as http:
            refused = await http.post(url, content=b"[" * 100_000)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid_json"


async def test_foreign_pages_are_refused() -> None:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with talking(running.websocket_url, origin="https://elsewhere.example"):
                pass
        assert refused.value.response.status_code == 403


async def test_unknown_models_and_full_servers_are_told() -> None:
    with serving(RoteEngine(), ear=False, realtime_sessions=1) as running:  # type: ignore[arg-type]
        url = running.websocket_url
        async with talking(url, query="model=nobody", created=False) as talk:
            assert (await talk.get())["error"]["code"] == "model_not_found"
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await talk.get()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
        async with talking(url, query="model=gpt-realtime"), talking(url, created=False) as talk:
            assert (await talk.get())["error"]["code"] == "too_many_sessions"
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await talk.get()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013


async def test_sessions_that_wait_for_the_ear_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    may_load = threading.Event()

    def load(_settings: Settings) -> None:
        may_load.wait(10)
        raise ConfigurationError("There is no ear.")

    monkeypatch.setattr("app.realtime.service._load_ear", load)
    with serving(RoteEngine(), ear=True, realtime_sessions=1) as running:  # type: ignore[arg-type]
        url = running.websocket_url
        async with talking(url, created=False) as one, talking(url, created=False) as other:
            may_load.set()
            told = {(await talk.get())["type"] for talk in (one, other)}
            assert told == {"session.created", "error"}
            assert running.realtime_sessions() == 1


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("intent=dictation", "intent"),
        ("item_id=a&audio_end_ms=soon", "audio_end_ms"),
        (f"item_id=a&audio_end_ms={'9' * 5000}", "audio_end_ms"),
    ],
)
async def test_mistakes_in_the_url_are_named(query: str, param: str) -> None:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url, query=query, created=False) as talk:
            assert (await talk.get())["error"]["param"] == param
        assert running.realtime_sessions() == 0


async def test_sessions_expire() -> None:
    with serving(RoteEngine(), ear=False, realtime_session_seconds=0.5) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            assert (await talk.until("error"))["error"]["code"] == "session_expired"
            with pytest.raises(websockets.ConnectionClosed):
                await talk.get()


async def test_the_voice_is_fixed_once_it_was_heard() -> None:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            await talk.say("hello")
            await talk.send("response.create")
            await talk.until("response.done")
            session = {"instructions": "x", "audio": {"output": {"voice": "nova"}}}
            await talk.send("session.update", session=session)
            assert (await talk.until("error"))["error"]["code"] == "cannot_update_voice"
            await talk.send("session.update", session={"audio": {"output": {"voice": "low"}}})
            updated = await talk.until("session.updated")
            assert updated["session"]["instructions"] == ""
