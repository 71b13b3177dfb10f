"""Turns that the client writes, on a real socket."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.app.realtime.conversing import sound_of, talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving
from tests.watching import comes_true

pytestmark = pytest.mark.asyncio

SPOKEN_ORDER = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


async def test_a_spoken_answer_comes_in_the_documented_order(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.say("hello there", event_id="e1")
        await talk.send("response.create", response={"metadata": {"k": "v"}})
        done = await talk.until("response.done")
        kinds = talk.kinds(1)
        assert kinds[:2] == ["conversation.item.added", "conversation.item.done"]
        assert list(dict.fromkeys(kinds[2:])) == SPOKEN_ORDER
        response = done["response"]
        assert response["status"] == "completed"
        assert response["metadata"] == {"k": "v"}
        item = response["output"][0]
        assert item["content"] == [{"type": "output_audio", "transcript": "You said: hello there"}]
        assert len(sound_of(talk.events)) == 4 * 4800 * 2
        usage = response["usage"]
        assert usage["output_token_details"]["audio_tokens"] == 16
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


async def test_a_written_answer(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.send(
            "session.update", session={"type": "realtime", "output_modalities": ["text"]}
        )
        updated = await talk.until("session.updated")
        assert updated["session"]["output_modalities"] == ["text"]
        await talk.say("hello")
        await talk.send("response.create")
        done = await talk.until("response.done")
        part = done["response"]["output"][0]["content"][0]
        assert part == {"type": "output_text", "text": "You said: hello"}
        assert sound_of(talk.events) == b""


async def test_a_response_beside_the_conversation(slow_rote: Serving) -> None:
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("one two three")
        await talk.send("response.create")
        own = [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "apart"}],
            }
        ]
        await talk.send(
            "response.create",
            response={
                "conversation": "none",
                "input": own,
                "output_modalities": ["text"],
                "metadata": {"which": "beside"},
            },
        )
        ends = [await talk.until("response.done"), await talk.until("response.done")]
        beside = next(e for e in ends if e["response"]["metadata"] == {"which": "beside"})
        assert beside["response"]["conversation_id"] is None
        assert beside["response"]["output"][0]["content"][0]["text"] == "You said: apart"
        item_id = beside["response"]["output"][0]["id"]
        in_conversation = [
            e["item"]["id"] for e in talk.events if e["type"].startswith("conversation.item.")
        ]
        assert item_id not in in_conversation


async def test_a_second_response_is_refused_while_one_is_active(slow_rote: Serving) -> None:
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("LONG")
        await talk.send("response.create")
        await talk.until("response.created")
        await talk.send("response.create", event_id="second")
        error = await talk.until("error")
        assert error["error"]["code"] == "conversation_already_has_active_response"
        assert error["error"]["event_id"] == "second"


async def test_cancelling(slow_rote: Serving) -> None:
    engine = slow_rote.engine
    assert isinstance(engine, RoteEngine)
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("LONG")
        await talk.send("response.create")
        await talk.until("response.output_audio.delta")
        await talk.send("response.cancel")
        done = await talk.until("response.done")
        assert done["response"]["status"] == "cancelled"
        assert done["response"]["status_details"]["reason"] == "client_cancelled"
        assert done["response"]["output"][0]["status"] == "incomplete"
        assert talk.kinds()[-6:] == SPOKEN_ORDER[6:]
        assert [e for e in await talk.rest() if e["type"].startswith("response.")] == []
        assert done["response"]["id"] in engine.aborted
        await talk.send("response.cancel", event_id="late")
        error = await talk.until("error")
        assert error["error"]["code"] == "response_cancel_not_active"
        assert error["error"]["event_id"] == "late"


async def test_cancelling_before_the_first_delta_and_asking_again(slow_rote: Serving) -> None:
    engine = slow_rote.engine
    assert isinstance(engine, RoteEngine)
    engine.most_live = 0
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("hello")
        for _ in range(3):
            await talk.send("response.create")
            await talk.send("response.cancel")
        await talk.send("response.create")
        ends = [(await talk.until("response.done"))["response"] for _ in range(4)]
        assert [end["status"] for end in ends] == ["cancelled"] * 3 + ["completed"]
        created = [e["response"]["id"] for e in talk.events if e["type"] == "response.created"]
        assert created == [end["id"] for end in ends]
        assert engine.most_live == 1
        assert engine.replaced >= 1, "the engine is told which answer takes another one's place"


async def test_an_answers_times_can_be_looked_up(slow_rote: Serving) -> None:
    async with talking(slow_rote.websocket_url) as talk, httpx.AsyncClient() as http:
        await talk.say("hello you")
        await talk.send("response.create")
        done = await talk.until("response.done")
        url = f"{slow_rote.base_url}/v1/requests/{done['response']['id']}/timeline"
        # The engine lets go of it a little later than the client is told of its end.
        async with asyncio.timeout(5):
            while (told := (await http.get(url)).json())["status"] == "running":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (told["endpoint"], told["status"]) == ("realtime", "completed")
        assert 0 < told["first_sent_at_ms"] < told["ended_at_ms"]


async def test_what_was_not_heard_leaves_the_history(slow_rote: Serving) -> None:
    engine = slow_rote.engine
    assert isinstance(engine, RoteEngine)
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("one two three four five six")
        await talk.send("response.create")
        done = await talk.until("response.done")
        item = done["response"]["output"][0]["id"]
        await talk.send(
            "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=640
        )
        truncated = await talk.until("conversation.item.truncated")
        assert truncated["audio_end_ms"] == 640
        await talk.send("conversation.item.retrieve", item_id=item)
        retrieved = await talk.until("conversation.item.retrieved")
        assert retrieved["item"]["content"][0]["transcript"] == "You said: one"
        await talk.say("again")
        await talk.send("response.create")
        await talk.until("response.done")
        chat = engine.requests[-1].chat
        assert chat is not None
        assert [m.text for m in chat.messages] == [
            "one two three four five six",
            "You said: one",
            "again",
        ]


async def test_truncating_behind_the_end_is_clamped(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.say("hello")
        await talk.send("response.create")
        done = await talk.until("response.done")
        item = done["response"]["output"][0]["id"]
        await talk.send("conversation.item.truncate", item_id=item, audio_end_ms=99_999)
        await talk.until("conversation.item.truncated")
        await talk.send("conversation.item.retrieve", item_id=item)
        retrieved = await talk.until("conversation.item.retrieved")
        assert retrieved["item"]["content"][0]["transcript"] == "You said: hello"


async def test_a_tool_call_and_its_result(rote: Serving) -> None:
    tool = {
        "type": "function",
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    }
    async with talking(rote.websocket_url) as talk:
        await talk.say("weather please")
        await talk.send("response.create", response={"tools": [tool], "tool_choice": "required"})
        done = await talk.until("response.done")
        kinds = talk.kinds(3)
        assert kinds == [
            "response.created",
            "response.output_item.added",
            "conversation.item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "conversation.item.done",
            "response.done",
        ]
        call = done["response"]["output"][0]
        assert call["name"] == "weather"
        result = {
            "type": "function_call_output",
            "call_id": call["call_id"],
            "output": "sunny",
        }
        await talk.send("conversation.item.create", item=result)
        await talk.send("response.create")
        done = await talk.until("response.done")
        assert done["response"]["output"][0]["content"][0]["transcript"] == "You said: sunny"


async def test_an_engine_that_fails_ends_the_response_and_not_the_session(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.say("please FAIL now")
        await talk.send("response.create")
        done = await talk.until("response.done")
        assert done["response"]["status"] == "failed"
        assert done["response"]["status_details"]["error"]["code"] == "stage_failed"
        await talk.say("hello")
        await talk.send("response.create")
        done = await talk.until("response.done")
        assert done["response"]["status"] == "completed"


async def test_the_token_limit_makes_an_answer_incomplete(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.say("one two three")
        await talk.send("response.create", response={"max_output_tokens": 3})
        done = await talk.until("response.done")
        assert done["response"]["status"] == "incomplete"
        assert done["response"]["status_details"]["reason"] == "max_output_tokens"


@pytest.mark.parametrize(("audio_format", "size"), [("audio/pcmu", 1600), ("audio/pcma", 1600)])
async def test_g711_out(rote: Serving, audio_format: str, size: int) -> None:
    async with talking(rote.websocket_url) as talk:
        output = {"format": {"type": audio_format}}
        await talk.send("session.update", session={"type": "realtime", "audio": {"output": output}})
        await talk.until("session.updated")
        await talk.say("hello")
        await talk.send("response.create")
        await talk.until("response.done")
        assert abs(len(sound_of(talk.events)) - 3 * size) <= 2


async def test_nothing_is_left_of_sessions_that_are_cut(slow_rote: Serving) -> None:
    engine = slow_rote.engine
    assert isinstance(engine, RoteEngine)
    for _ in range(5):
        async with talking(slow_rote.websocket_url) as talk:
            await talk.say("LONG")
            await talk.send("response.create")
            await talk.until("response.output_audio.delta")
            talk.socket.transport.abort()
    assert await comes_true(lambda: not engine.live)
    assert engine.live == set()


@pytest.mark.parametrize("count", range(1, 16))
async def test_a_socket_may_be_cut_anywhere(slow_rote: Serving, count: int) -> None:
    engine = slow_rote.engine
    assert isinstance(engine, RoteEngine)
    async with talking(slow_rote.websocket_url) as talk:
        await talk.say("one two three")
        await talk.send("response.create")
        while len(talk.events) < count:
            await talk.get()
        talk.socket.transport.abort()
    assert await comes_true(lambda: not slow_rote.realtime_sessions())
    assert slow_rote.realtime_sessions() == 0
    assert engine.live == set()


async def test_words_that_were_never_voiced_leave_the_history(rote: Serving) -> None:
    engine = rote.engine
    assert isinstance(engine, RoteEngine)
    async with talking(rote.websocket_url) as talk:
        await talk.say("please FAIL now")
        await talk.send("response.create")
        done = await talk.until("response.done")
        part = done["response"]["output"][0]["content"][0]
        assert part["transcript"] == "You said: please"
