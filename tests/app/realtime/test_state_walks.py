"""Random walks through the session's state machine: what must hold whatever happens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from app.realtime.machine_events import (
    AudioAppended,
    CancelAsked,
    ClearAsked,
    CloseResponse,
    Commit,
    CommitAsked,
    Effect,
    Event,
    NothingSaid,
    OpenResponse,
    Outcome,
    Refuse,
    ResponseAsked,
    RestartHearing,
    Rules,
    RulesChanged,
    SessionClosed,
    SilenceElapsed,
    SoundDropped,
    SpeechStarted,
    SpeechStopped,
    StartWork,
    StopWork,
    TellCleared,
    TellSpeechStarted,
    TellSpeechStopped,
    TextSettled,
    WorkEnded,
    WorkJoined,
)
from app.realtime.machine_state import Phase
from app.realtime.state import State, next_state

RULES = [
    Rules(detection, create, interrupt)
    for detection, create, interrupt in itertools.product([True, False], repeat=3)
]

ACTIONS = st.sampled_from(
    [
        *["append"] * 4,
        *["start", "stop"] * 3,
        "commit",
        "clear",
        "ask",
        "ask beside",
        "cancel",
        "cancel named",
        "settle",
        "settle",
        "nothing said",
        "end",
        "end",
        "join",
        "join",
        "rules",
        "silence",
        "drop",
        "stale ear",
    ]
)


@dataclass
class World:
    """A client, an ear and an engine that follow the machine and check what it says."""

    state: State = field(default_factory=State)
    names: itertools.count[int] = field(default_factory=itertools.count)
    opened: list[str] = field(default_factory=list)
    in_conversation: set[str] = field(default_factory=set)
    closed: list[str] = field(default_factory=list)
    working: set[str] = field(default_factory=set)
    """What the engine is at work on, or has not let go of yet."""
    ended: set[str] = field(default_factory=set)
    unheard: set[str] = field(default_factory=set)
    speaking: str | None = None
    claims: list[tuple[int, int]] = field(default_factory=list)

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.names)}"

    def tell(self, event: Event) -> list[Effect]:
        before = self.state
        self.state, effects = next_state(before, event)
        for effect in effects:
            self.check(effect)
        self.check_state()
        return effects

    def check(self, effect: Effect) -> None:
        match effect:
            case OpenResponse():
                if effect.in_conversation:
                    live = [r for r in self.in_conversation if r not in self.closed]
                    assert not live, "two responses in one conversation"
                    self.in_conversation.add(effect.response_id)
                assert effect.response_id not in self.opened
                self.opened.append(effect.response_id)
            case StartWork():
                assert effect.response_id in self.opened
                assert effect.response_id not in self.closed, "work after the end"
                others = {r for r in self.working if r in self.in_conversation}
                if effect.response_id in self.in_conversation:
                    # The engine fences those that it has not let go of yet.
                    assert others <= set(self.closed), "work began before the older one's end"
                    assert not self.unheard, "work began before the words were known"
                self.working.add(effect.response_id)
            case StopWork():
                assert effect.response_id in self.working
                assert effect.response_id in self.closed, "stopped before its end was told"
            case CloseResponse():
                assert effect.response_id in self.opened
                assert effect.response_id not in self.closed, "two ends"
                self.closed.append(effect.response_id)
            case TellSpeechStarted():
                assert self.speaking is None
                self.speaking = effect.item_id
            case TellSpeechStopped():
                assert self.speaking == effect.item_id
                self.speaking = None
            case Commit():
                assert self.speaking is None
                assert effect.start <= effect.end <= self.state.appended
                self.claims.append((effect.start, effect.end))
                self.unheard.add(effect.item_id)
            case RestartHearing():
                assert effect.start <= self.state.appended

    def check_state(self) -> None:
        assert (self.state.turn.item_id if self.state.turn else None) == self.speaking
        live = [r for r in self.opened if r not in self.closed]
        known = set(self.state.beside)
        if self.state.active:
            known.add(self.state.active.response_id)
        assert set(live) == known
        assert self.state.taken <= self.state.appended
        for (_, end), (start, _) in itertools.pairwise(self.claims):
            assert end <= start, "sound used twice"

    def act(self, action: str, number: int) -> None:
        match action:
            case "append":
                self.tell(AudioAppended(number * 100))
            case "start":
                start = max(0, self.state.appended - number * 60)
                self.tell(SpeechStarted(self.state.hearing, self.name("item"), start))
            case "stop":
                end = max(0, self.state.appended - number * 20)
                self.tell(SpeechStopped(self.state.hearing, end, self.name("resp")))
            case "stale ear":
                was_silent = self.speaking
                self.tell(SpeechStarted(self.state.hearing - 1, self.name("item"), 0))
                self.tell(SpeechStopped(self.state.hearing - 1, 0, self.name("resp")))
                assert self.speaking == was_silent
            case "commit":
                self.tell(CommitAsked(self.name("item")))
            case "clear":
                effects = self.tell(ClearAsked())
                assert isinstance(effects[-1], TellCleared)
                assert self.state.turn is None
                assert self.state.taken == self.state.appended
            case "ask" | "ask beside":
                self.ask(in_conversation=action == "ask")
            case "cancel" | "cancel named":
                self.cancel(number, named=action == "cancel named")
            case "rules":
                self.tell(RulesChanged(RULES[number % len(RULES)]))
            case "silence":
                self.tell(SilenceElapsed(self.name("item"), self.name("resp")))
            case "nothing said":
                self.nothing_said(number)
            case "drop":
                self.tell(SoundDropped(self.state.hearing, number * 50))
            case _:
                self.act_engine(action, number)

    def ask(self, *, in_conversation: bool) -> None:
        busy = self.state.active is not None
        response_id = self.name("resp")
        effects = self.tell(ResponseAsked(response_id, in_conversation, "event"))
        if in_conversation and busy:
            assert isinstance(effects[0], Refuse)
            assert effects[0].code == "conversation_already_has_active_response"
            assert effects[0].event_id == "event"
        else:
            assert isinstance(effects[0], OpenResponse)

    def cancel(self, number: int, *, named: bool) -> None:
        live = [r for r in self.opened if r not in self.closed]
        wanted = live[number % len(live)] if named and live else None
        effects = self.tell(CancelAsked(wanted, "event"))
        if wanted is not None:
            assert wanted in self.closed
        elif not any(r in self.in_conversation for r in live):
            assert isinstance(effects[0], Refuse)
            assert effects[0].code == "response_cancel_not_active"

    def nothing_said(self, number: int) -> None:
        """The turn of some response, perhaps one that is over, had no words."""
        if not self.opened:
            return
        response = self.opened[number % len(self.opened)]
        running = self.state.active and self.state.active.phase is Phase.RUNNING
        concerned = running and self.state.active.response_id == response
        effects = self.tell(NothingSaid(response, begun=number % 2 == 0))
        closed = [e for e in effects if isinstance(e, CloseResponse)]
        if not concerned:
            assert closed == []
            return
        (close,) = closed
        outcome = Outcome.CANCELLED if number % 2 == 0 else Outcome.COMPLETED
        assert (close.response_id, close.outcome) == (response, outcome)
        assert StopWork(response) in effects

    def act_engine(self, action: str, number: int) -> None:
        if action == "settle" and self.unheard:
            self.unheard.discard(item := sorted(self.unheard)[number % len(self.unheard)])
            self.tell(TextSettled(item))
        elif action == "end" and self.working - self.ended:
            at_work = sorted(self.working - self.ended)
            self.ended.add(response := at_work[number % len(at_work)])
            self.tell(WorkEnded(response, Outcome.COMPLETED))
            assert response in self.closed
        elif action == "join":
            leaving = sorted(r for r in self.working if r in self.closed)
            if leaving:
                self.working.discard(response := leaving[number % len(leaving)])
                self.ended.add(response)
                self.tell(WorkJoined(response))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 9)), max_size=80))
def test_what_must_hold_holds_on_every_way(steps: list[tuple[str, int]]) -> None:
    world = World()
    for action, number in steps:
        world.act(action, number)
    world.tell(SessionClosed())
    assert sorted(world.opened) == sorted(world.closed), "each response ends exactly once"
    assert world.speaking is None
    state = world.state
    assert world.tell(SessionClosed()) == [], "closing twice is harmless"
    assert world.state == state


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 9)), max_size=60))
def test_nothing_waits_for_ever(steps: list[tuple[str, int]]) -> None:
    world = World()
    for action, number in steps:
        world.act(action, number)
    for _ in range(200):
        for action in ("settle", "end", "join"):
            world.act(action, 0)
    assert world.state.active is None or world.state.active.phase is Phase.RUNNING
    assert world.state.owed is None
    assert not world.state.draining
    assert sorted(world.opened) == sorted(world.closed)
