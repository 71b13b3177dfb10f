from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path

import httpx
import pytest
from prometheus_client import Gauge

from app.application import create_application
from app.engine_port import EngineFactory
from app.lifecycle import EngineLifecycle, EngineState
from app.settings import Settings
from engine import ConfigurationError
from tests.app.doubles import HummingEngine
from tests.app.serving import Serving, serving

BODY = {"model": "tts-1", "input": "one two", "voice": "alloy"}


def test_models(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["hum", "hum-1"]
    assert set(listed["data"][0]) == {"id", "object", "created", "owned_by"}
    assert client.get("/v1/models/hum").json()["id"] == "hum"
    assert client.get("/v1/models/tts-1").json()["id"] == "tts-1"
    missing = client.get("/v1/models/some/other")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"


def test_voices(client: httpx.Client) -> None:
    voices = client.get("/v1/audio/voices").json()["voices"]
    assert [voice["id"] for voice in voices] == ["low", "high"]
    assert voices[0]["aliases"] == ["alloy", "ash", "marin"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("POST", "/nothing", 404),
        ("GET", "/v1/audio/speech", 405),
        ("DELETE", "/v1/models", 405),
    ],
)
def test_wrong_paths_and_methods(client: httpx.Client, method: str, path: str, status: int) -> None:
    response = client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert response.headers["x-request-id"]
    if status == 405:
        assert response.headers["allow"]


def test_health_ready_and_root(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    ready = client.get("/ready")
    assert ready.status_code == 200
    assert ready.json()["stages"] == {"hum": "ready"}
    assert client.get("/").json()["speech"] == "/v1/audio/speech"


def test_ready_says_no_when_a_stage_is_broken() -> None:
    engine = HummingEngine(healthy=False)
    with serving(engine) as running:
        response = httpx.get(f"{running.base_url}/ready")
        assert response.status_code == 503
        assert response.json()["stages"] == {"hum": "failed"}
        assert httpx.get(f"{running.base_url}/health").status_code == 200


def test_metrics_show_both_layers() -> None:
    engine = HummingEngine()
    Gauge("antiphon_test_gauge", "A gauge of the engine.", registry=engine.registry).set(3)
    with serving(engine) as running, httpx.Client(base_url=running.base_url) as client:
        client.post("/v1/audio/speech", json=BODY)
        client.post("/v1/audio/speech", json={**BODY, "speed": 9})
        text = client.get("/metrics").text
    assert "antiphon_test_gauge 3.0" in text
    assert 'antiphon_speech_requests_total{outcome="completed",transport="audio"} 1.0' in text
    assert 'antiphon_speech_requests_total{outcome="refused",transport="audio"} 1.0' in text
    assert 'antiphon_speech_active{transport="audio"} 0.0' in text
    assert 'antiphon_audio_sent_seconds_total{transport="audio"} 0.4' in text
    assert "antiphon_event_loop_lag_seconds_count" in text


def test_the_demo_is_served_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>demo</title>")
    (tmp_path / "player.js").write_text("export {};")
    with serving(static_folder=tmp_path) as running, httpx.Client() as client:
        assert "demo" in client.get(f"{running.base_url}/").text
        script = client.get(f"{running.base_url}/player.js")
        assert "javascript" in script.headers["content-type"]
        assert client.get(f"{running.base_url}/v1/audio/speech").status_code == 405
        missing = client.get(f"{running.base_url}/nothing.js")
        assert missing.json()["error"]["code"] == "unknown_url"


def test_documentation_tells_the_truth(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    speech = document["paths"]["/v1/audio/speech"]["post"]
    content = speech["responses"]["200"]["content"]
    assert {"audio/mpeg", "audio/ogg", "audio/pcm", "text/event-stream"} <= set(content)
    assert {"400", "401", "404", "413", "500", "503", "504"} <= set(speech["responses"])
    assert "422" not in str(document["paths"])
    posts = [methods["post"] for methods in document["paths"].values() if "post" in methods]
    assert len(posts) == 4
    assert all({"400", "401", "404", "413", "503"} <= set(post["responses"]) for post in posts)
    reference = speech["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rsplit("/", 1)[1]]
    assert schema["required"] == ["model", "input", "voice"]
    assert schema["properties"]["response_format"]["default"] == "mp3"
    for name in _references(document):
        assert name in document["components"]["schemas"], name
    assert client.get("/docs").status_code == 200


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        found = {str(node["$ref"]).rsplit("/", 1)[1]} if "$ref" in node else set()
        return found.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(value) for value in node))
    return set()


@pytest.fixture(scope="module")
def locked() -> Generator[Serving]:
    with serving(api_keys="first,second") as running:
        yield running


@pytest.fixture(scope="module")
def open_to_one() -> Generator[Serving]:
    with serving(cors_origins="https://a.example") as running:
        yield running


class TestKeys:
    @pytest.mark.parametrize("path", ["/v1/models", "/v1/audio/voices", "/v1/models/hum"])
    def test_a_key_is_needed(self, locked: Serving, path: str) -> None:
        response = httpx.get(f"{locked.base_url}{path}")
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "invalid_api_key"
        assert response.headers["www-authenticate"] == "Bearer"

    @pytest.mark.parametrize("header", ["Bearer wrong", "Basic first", "first", "Bearer"])
    def test_wrong_keys(self, locked: Serving, header: str) -> None:
        url = f"{locked.base_url}/v1/audio/speech"
        response = httpx.post(url, json=BODY, headers={"Authorization": header})
        assert response.status_code == 401

    def test_keys_are_tenants(self, locked: Serving) -> None:
        url = f"{locked.base_url}/v1/audio/speech"
        for key in ("first", "second"):
            response = httpx.post(url, json=BODY, headers={"Authorization": f"Bearer {key}"})
            assert response.status_code == 200
        first, second = (request.tenant for request in locked.engine.requests[-2:])
        assert first != second
        assert "first" not in first

    @pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/"])
    def test_supervisors_need_none(self, locked: Serving, path: str) -> None:
        assert httpx.get(f"{locked.base_url}{path}").status_code == 200


class TestOrigins:
    def test_a_listed_origin_may_call_and_read_our_headers(self, open_to_one: Serving) -> None:
        url = f"{open_to_one.base_url}/v1/audio/speech"
        response = httpx.post(url, json=BODY, headers={"Origin": "https://a.example"})
        assert response.headers["access-control-allow-origin"] == "https://a.example"
        exposed = response.headers["access-control-expose-headers"]
        for name in ("X-Request-Id", "X-Antiphon-Warning", "Server-Timing"):
            assert name in exposed
        assert "access-control-allow-credentials" not in response.headers

    def test_preflight(self, open_to_one: Serving) -> None:
        headers = {
            "Origin": "https://a.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
        }
        response = httpx.options(f"{open_to_one.base_url}/v1/audio/speech", headers=headers)
        assert response.status_code == 200

    def test_others_get_no_permission(self, open_to_one: Serving) -> None:
        url = f"{open_to_one.base_url}/v1/models"
        response = httpx.get(url, headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in response.headers


class TestStart:
    def _client(self, lifecycle: EngineLifecycle) -> httpx.AsyncClient:
        app = create_application(Settings(static_folder=Path("/nonexistent")), lifecycle)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    @pytest.mark.asyncio
    async def test_a_starting_server_is_healthy_but_not_ready(self) -> None:
        may_start = asyncio.Event()

        async def start(progress: Callable[[str], None]) -> HummingEngine:
            progress("Loading")
            await may_start.wait()
            return HummingEngine()

        factory: EngineFactory = start
        settled = asyncio.Event()
        lifecycle = EngineLifecycle(factory, settled=settled.set)
        async with self._client(lifecycle) as client:
            lifecycle.start()
            await asyncio.sleep(0)
            assert (await client.get("/health")).status_code == 200
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()["step"]) == (503, "Loading")
            speech = await client.post("/v1/audio/speech", json=BODY)
            assert speech.status_code == 503
            assert speech.json()["error"]["code"] == "starting"
            assert speech.headers["retry-after"]
            may_start.set()
            await asyncio.wait_for(settled.wait(), 5)
            assert (await client.get("/ready")).status_code == 200
            await lifecycle.close()
            assert (await client.get("/ready")).status_code == 503

    @pytest.mark.asyncio
    async def test_a_failed_start_is_told(self) -> None:
        async def start(_progress: Callable[[str], None]) -> HummingEngine:
            raise ConfigurationError("There is no such pipeline.")

        lifecycle = EngineLifecycle(start)
        lifecycle.start()
        await asyncio.sleep(0.01)
        assert lifecycle.state is EngineState.FAILED
        assert str(lifecycle.failure) == "There is no such pipeline."
        await lifecycle.close()

    @pytest.mark.asyncio
    async def test_closing_stops_a_start(self) -> None:
        async def start(_progress: Callable[[str], None]) -> HummingEngine:
            await asyncio.sleep(100)
            return HummingEngine()

        lifecycle = EngineLifecycle(start)
        lifecycle.start()
        await asyncio.sleep(0)
        await asyncio.wait_for(lifecycle.close(), 1)
        await lifecycle.close()
        assert lifecycle.state is EngineState.CLOSED
