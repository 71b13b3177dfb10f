"""Random clients against a whole session: its actor, its responses and an engine by rote."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from app.audio.worker import CodecPool
from app.ear.findings import SaidSoFar, TurnBegan, TurnEnded
from app.realtime.client_events import AudioAppend, parse_client_event
from app.realtime.failure import EventError
from app.realtime.inbox import (
    ClientErred,
    ClientSaid,
    CloseAsked,
    EarFound,
    SocketLost,
    SocketOpened,
)
from app.realtime.metrics import RealtimeMetrics
from app.realtime.outbox import Closing, Outbox
from app.realtime.services import Services
from app.realtime.session import Session
from app.realtime.session_config import SessionConfig
from app.settings import Settings
from app.timeline import Timelines
from tests.app.realtime.conversing import check
from tests.app.realtime.doubles import RoteEngine

TOOL = {"type": "function", "name": "look", "parameters": {}}


def said(text: str, **fields: Any) -> dict[str, Any]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"type": "conversation.item.create", "item": {**item, **fields}}


EVENTS: list[dict[str, Any]] = [
    said("hello"),
    said("LONG"),
    said("please FAIL now"),
    said("twin", id="twin"),
    {"type": "response.create"},
    {"type": "response.create"},
    {"type": "response.create", "response": {"output_modalities": ["text"]}},
    {"type": "response.create", "response": {"tools": [TOOL], "tool_choice": "required"}},
    {"type": "response.create", "response": {"conversation": "none", "metadata": {"a": "b"}}},
    {"type": "response.create", "response": {"max_output_tokens": 2}},
    {"type": "response.cancel"},
    {"type": "response.cancel"},
    {"type": "conversation.item.delete", "item_id": "twin"},
    {"type": "conversation.item.retrieve", "item_id": "twin"},
    {"type": "input_audio_buffer.append", "audio": "AAAA"},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    {"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}},
    {"type": "session.update", "session": {"instructions": "x"}},
    {"type": "nonsense"},
    {"type": "the user begins to speak"},
    {"type": "the user begins to speak"},
    {"type": "the user goes on speaking"},
    {"type": "the user has finished"},
    {"type": "the user has finished"},
    {"type": "truncate the answer"},
    {"type": "delete the answer"},
]

STEPS = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3)), min_size=1, max_size=25)


class Walk:
    """One session, told things at random."""

    def __init__(self) -> None:
        self.engine = RoteEngine(pace=0.0005)
        services = Services(
            Settings(),
            self.engine,
            CodecPool(1),
            RealtimeMetrics(CollectorRegistry()),
            Timelines(8),
            ear=None,
        )
        self.session = Session(services, SessionConfig("rote", "low"), "")
        self.outbox: Outbox = self.session.new_outbox()
        self.events: list[dict[str, Any]] = []

    async def walk(self, steps: list[tuple[dict[str, Any], int]]) -> None:
        before = asyncio.all_tasks()
        actor = asyncio.create_task(self.session.run())
        self.session.tell(SocketOpened(self.outbox))
        reading = asyncio.create_task(self.read())
        for event, pause in steps:
            await self.say(event)
            await asyncio.sleep(0.001 * pause)
        closing = CloseAsked(Closing(1000, "done"))
        for _ in range(2):
            self.session.tell(closing)
        await actor
        self.session.tell(SocketLost(self.outbox))
        await reading
        assert self.engine.live == set()
        assert asyncio.all_tasks() == before, "a task outlived its session"

    async def read(self) -> None:
        while (frame := await self.outbox.take()) is not None:
            self.events.append(json.loads(frame.text))

    async def say(self, event: dict[str, Any]) -> None:
        hearing, now = self.session.state.hearing, self.session.state.appended
        if event["type"] == "the user begins to speak":
            self.session.tell(EarFound(TurnBegan(hearing, now, 0.0)))
            return
        if event["type"] == "the user goes on speaking":
            self.session.tell(EarFound(SaidSoFar(hearing, np.zeros(16_000, np.float32))))
            return
        if event["type"] == "the user has finished":
            self.session.tell(EarFound(TurnEnded(hearing, now)))
            return
        answers = [e for e in self.events if e["type"] == "response.output_audio.delta"]
        if event["type"] == "truncate the answer":
            item = answers[-1]["item_id"] if answers else "none"
            event = {"type": "conversation.item.truncate", "item_id": item, "audio_end_ms": 300}
        elif event["type"] == "delete the answer":
            item = answers[-1]["item_id"] if answers else "none"
            event = {"type": "conversation.item.delete", "item_id": item}
        try:
            parsed = parse_client_event(json.dumps(event))
        except EventError as refusal:
            await self.session.tell_from_client(ClientErred(self.outbox, refusal))
        else:
            sounds = (b"\0\0\0",) if isinstance(parsed, AudioAppend) else ()
            await self.session.tell_from_client(ClientSaid(self.outbox, parsed, sounds))


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_clients_see_is_well_formed(steps: list[tuple[dict[str, Any], int]]) -> None:
    async def walk() -> list[dict[str, Any]]:
        world = Walk()
        await world.walk(steps)
        return world.events

    events = asyncio.run(walk())
    for event in events:
        check(event)
    _each_response_ends_once(events)
    _each_added_has_its_done(events)
    _deltas_make_the_whole(events)
    _nothing_stale_is_heard(events)


def _each_response_ends_once(events: list[dict[str, Any]]) -> None:
    live: dict[str, str | None] = {}
    ended: set[str] = set()
    for event in events:
        kind = event["type"]
        if kind == "response.created":
            response = event["response"]
            conversation = response["conversation_id"]
            assert conversation is None or conversation not in live.values()
            live[response["id"]] = conversation
        elif kind == "response.done":
            assert event["response"]["id"] in live
            del live[event["response"]["id"]]
            ended.add(event["response"]["id"])
        elif kind.startswith("response."):
            assert event["response_id"] in live, f"{kind} outside of its response"
    assert live == {}


def _each_added_has_its_done(events: list[dict[str, Any]]) -> None:
    for name, key in [
        ("response.output_item", lambda e: e["item"]["id"]),
        ("conversation.item", lambda e: e["item"]["id"]),
        ("response.content_part", lambda e: (e["item_id"], e["content_index"])),
    ]:
        added = [key(e) for e in events if e["type"] == f"{name}.added"]
        done = [key(e) for e in events if e["type"] == f"{name}.done"]
        assert sorted(added) == sorted(done)


def _nothing_stale_is_heard(events: list[dict[str, Any]]) -> None:
    """After the user begins to speak, no sound of an older answer of the conversation follows."""
    older: set[str] = set()
    beside = {
        e["response"]["id"]
        for e in events
        if e["type"] == "response.created" and e["response"]["conversation_id"] is None
    }
    answers: set[str] = set()
    for event in events:
        if event["type"] == "input_audio_buffer.speech_started":
            older |= answers
        elif event["type"] == "response.created":
            answers.add(event["response"]["id"])
        elif event["type"] == "response.output_audio.delta":
            assert event["response_id"] not in older - beside


def _deltas_make_the_whole(events: list[dict[str, Any]]) -> None:
    for done in events:
        if done["type"] == "response.output_text.done":
            deltas = [
                e["delta"]
                for e in events
                if e["type"] == "response.output_text.delta" and e["item_id"] == done["item_id"]
            ]
            assert "".join(deltas) == done["text"]
        elif done["type"] == "response.output_audio_transcript.done":
            deltas = [
                e["delta"]
                for e in events
                if e["type"] == "response.output_audio_transcript.delta"
                and e["item_id"] == done["item_id"]
            ]
            assert "".join(deltas).startswith(done["transcript"])


def test_a_turn_without_words_is_not_answered() -> None:
    async def walk() -> tuple[list[dict[str, Any]], RoteEngine]:
        world = Walk()
        steps = [
            ({"type": "the user begins to speak"}, 1),
            ({"type": "the user has finished"}, 500),
        ]
        await world.walk(steps)
        return world.events, world.engine

    events, engine = asyncio.run(walk())
    done = next(e for e in events if e["type"] == "response.done")
    assert done["response"]["status"] == "completed"
    assert done["response"]["output"] == []
    assert engine.requests == []


def test_a_question_that_was_cut_short_by_a_noise_is_answered_again() -> None:
    async def walk() -> tuple[list[dict[str, Any]], RoteEngine]:
        world = Walk()
        steps = [
            (said("LONG"), 0),
            ({"type": "response.create"}, 10),
            ({"type": "the user begins to speak"}, 50),
            ({"type": "the user has finished"}, 2000),
        ]
        await world.walk(steps)
        return world.events, world.engine

    events, engine = asyncio.run(walk())
    ends = [e["response"]["status"] for e in events if e["type"] == "response.done"]
    assert ends == ["cancelled", "completed"]
    assert len(engine.requests) == 2
