"""Where the pipeline sees, clients' pictures reach the engine; elsewhere they are refused."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.app.realtime.conversing import talking
from tests.app.realtime.doubles import DESCRIPTION, RoteEngine
from tests.app.serving import serving

SEES = replace(DESCRIPTION, sees=True)
PIXELS = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def url() -> str:
    buffer = io.BytesIO()
    Image.fromarray(PIXELS).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def asked(picture: str) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": "What is"},
        {"type": "image_url", "image_url": {"url": picture, "detail": "low"}},
        {"type": "text", "text": "this?"},
    ]
    return {"model": "rote", "messages": [{"role": "user", "content": parts}]}


def post(base_url: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{base_url}/v1/chat/completions", json=body)


def test_a_chats_picture_reaches_the_engine_as_its_pixels() -> None:
    engine = RoteEngine(description=SEES)
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        answer = post(running.base_url, asked(url()))
        assert answer.status_code == 200, answer.text
        for wrong, words in (("https://x.example/a.png", "nothing is fetched"), ("data:,", "read")):
            refused = post(running.base_url, asked(wrong))
            assert refused.status_code == 400
            error = refused.json()["error"]
            assert error["param"] == "messages[0].content[1].image_url.url"
            assert words in error["message"]
    (request,) = engine.requests
    assert request.chat is not None
    (message,) = request.chat.messages
    assert message.text == "What is\nthis?"
    (picture,) = message.pictures
    assert np.array_equal(picture.pixels, PIXELS)


def test_a_pipeline_that_does_not_see_says_so() -> None:
    engine = RoteEngine()
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        refused = post(running.base_url, asked(url()))
    assert refused.status_code == 400
    assert "takes no pictures" in refused.json()["error"]["message"]
    assert engine.requests == []


def test_pictures_that_fill_the_memory_together_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.pictures.MOST_PIXELS_TOGETHER", 3 * 40 * 60)
    engine = RoteEngine(description=SEES)
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        body = asked(url())
        content = body["messages"][0]["content"]
        content += [content[1]] * 2
        assert post(running.base_url, body).status_code == 200
        content.append(content[1])
        refused = post(running.base_url, body)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "messages"
    assert "7200 pixels" in refused.json()["error"]["message"]


@pytest.mark.asyncio
async def test_a_pictures_item_is_seen_by_the_answers_of_its_conversation() -> None:
    engine = RoteEngine(description=SEES)
    content = [
        {"type": "input_image", "image_url": url()},
        {"type": "input_text", "text": "And this?"},
    ]
    item = {"type": "message", "role": "user", "content": content}
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        async with talking(running.base_url.replace("http", "ws")) as talk:
            await talk.send("session.update", session={"type": "realtime"} | WRITTEN)
            await talk.send("conversation.item.create", item=item)
            added = await talk.until("conversation.item.added")
            # Its bytes are not sent back: they would fill frames that nobody reads.
            assert added["item"]["content"][0] == {"type": "input_image"}
            await talk.send("response.create")
            await talk.until("response.done")
            await talk.send("response.create", response={"input": [item], "conversation": "none"})
            await talk.until("response.done")
            content[0]["image_url"] = "http://x.example/a.png"
            await talk.send("conversation.item.create", item=item, event_id="mine")
            error = (await talk.until("error"))["error"]
            assert error["param"] == "item.content[0].image_url"
            assert error["event_id"] == "mine"
            assert "nothing is fetched" in error["message"]
            await talk.send("response.create", response={"input": [item], "conversation": "none"})
            error = (await talk.until("error"))["error"]
            assert error["param"] == "response.input[0].content[0].image_url"
    assert len(engine.requests) == 2
    for request in engine.requests:
        assert request.chat is not None
        (picture,) = request.chat.messages[-1].pictures
        assert np.array_equal(picture.pixels, PIXELS)
        assert request.chat.messages[-1].text == "And this?"


WRITTEN = {"output_modalities": ["text"]}
