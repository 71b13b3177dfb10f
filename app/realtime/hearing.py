"""A session's ear: hands sound on, and turns what was heard into events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.audio.wire_formats import TICKS_PER_SECOND, WireFormat
from app.ear import SAMPLE_RATE
from app.ear.findings import (
    NO_HINTS,
    EarFinding,
    Guessed,
    Heard,
    HearingRules,
    Hints,
    NothingHeard,
    NotRecognized,
    Recognized,
    SaidSoFar,
    TurnBegan,
    TurnEnded,
    prompt_of,
)
from app.ear.listener import Listener
from app.ear.rules import EarSensitivity
from app.engine_port import SpeechEngine
from app.identifiers import new_identifier
from app.realtime.failure import EventError
from app.realtime.hearing_ahead import HearingAhead
from app.realtime.inbox import EarFound, Told
from app.realtime.items import Message, PartKind
from app.realtime.machine_events import SoundDropped, SpeechStarted, SpeechStopped, TextSettled
from app.realtime.session_config import SessionConfig
from app.realtime.session_schema import SemanticDetection, ServerDetection, Transcription
from app.settings import Settings
from engine import AudioContent, PipelineDescription

if TYPE_CHECKING:
    from app.realtime.session import Session


def sensitivity_of(settings: Settings) -> EarSensitivity:
    """What the operator set."""
    return EarSensitivity(
        speech_ms=settings.ear_speech_ms,
        interruption_ms=settings.ear_interruption_ms,
        interruption_threshold=settings.ear_interruption_threshold,
        pause_ms=settings.ear_pause_ms,
    )


def stretch_of(pipeline: PipelineDescription, config: SessionConfig) -> int | None:
    """Samples of a turn after which more of it can be encoded; None: it is not before its end."""
    if not pipeline.hears or pipeline.sound_window is None or config.kind == "transcription":
        return None
    return round(pipeline.sound_window * SAMPLE_RATE)


def hearing_rules(config: SessionConfig) -> HearingRules:
    """How turns are found under a session's settings."""
    hints = _hints(config.transcription)
    match config.detection:
        case ServerDetection() as silence:
            return HearingRules(
                "silence",
                threshold=silence.threshold,
                prefix_padding_ms=silence.prefix_padding_ms,
                silence_duration_ms=silence.silence_duration_ms,
                hints=hints,
            )
        case SemanticDetection() as semantic:
            return HearingRules("semantic", eagerness=semantic.eagerness, hints=hints)
        case None:
            return HearingRules("none", hints=hints)


def _hints(wanted: Transcription | None) -> Hints:
    """What the client says about the words that will come."""
    if wanted is None:
        return NO_HINTS
    language = wanted.language
    if language is None and wanted.languages is not None and len(wanted.languages) == 1:
        language = wanted.languages[0]
    return Hints(language, prompt_of(wanted.prompt, wanted.keywords or ()))


class Hearing:
    """A session's ear; the actor alone calls it."""

    def __init__(
        self,
        listener: Listener | None,
        settings: Settings,
        engine: SpeechEngine,
        tell: Callable[[Told], None],
    ) -> None:
        """`listener` is None where nothing listens."""
        self._listener = listener
        self._ahead = HearingAhead(engine)
        self._settings = settings
        self._tell = tell
        self._rules: HearingRules | None = None
        self._since: dict[str, float] = {}

    async def room(self) -> None:
        """Waits while too much sound waits to be heard."""
        if self._listener is not None:
            await self._listener.room()

    def configure(self, config: SessionConfig) -> None:
        """From here on, turns are found as the settings say."""
        rules = hearing_rules(config)
        if self._listener is not None and rules != self._rules:
            self._rules = rules
            self._listener.configure(rules)

    def append(self, data: bytes, audio_format: WireFormat, *, guarded: bool) -> None:
        """More sound of the user.

        Raises:
            EventError: Nothing listens here.
        """
        self._need_listener().append(data, audio_format, guarded=guarded)

    def check(self) -> None:
        """Makes sure that something listens.

        Raises:
            EventError: Nothing listens here.
        """
        self._need_listener()

    def restart(self, hearing: int, start: int) -> None:
        """Forgets everything before a tick and any turn."""
        self._ahead.stop()
        if self._listener is not None:
            self._listener.restart(hearing, start)

    def commit(self, item_id: str, start: int, end: int) -> None:
        """A stretch of sound is an item whose words are wanted."""
        self._since[item_id] = time.perf_counter()
        if self._listener is None or start == end:
            seconds = (end - start) / TICKS_PER_SECOND
            self._tell(EarFound(Recognized(item_id, "", seconds)))
        else:
            self._listener.commit(item_id, start, end)

    def recognize(self, item_id: str, data: bytes, audio_format: WireFormat) -> None:
        """Finds out the words of a recording.

        Raises:
            EventError: Nothing listens here.
        """
        self._since[item_id] = time.perf_counter()
        self._need_listener().recognize(item_id, data, audio_format)

    def follow(self, session: Session, finding: EarFinding) -> None:
        """Follows what the ear found."""
        match finding:
            case TurnBegan():
                item_id = new_identifier("item")
                session.step(SpeechStarted(finding.hearing, item_id, finding.start))
                session.services.metrics.noticed.observe(time.monotonic() - finding.arrived)
            case TurnEnded():
                response_id = new_identifier("resp")
                session.step(SpeechStopped(finding.hearing, finding.end, response_id))
            case NothingHeard():
                session.step(SoundDropped(finding.hearing, finding.before))
            case SaidSoFar():
                if finding.hearing == session.state.hearing:
                    self._ahead.hear(finding.samples)
            case Guessed():
                if session.state.turn is not None and session.state.rules.create_response:
                    session.responder.read_ahead(session.config, finding.text)
            case Heard():
                self._keep(session, finding)
            case Recognized() | NotRecognized():
                self._settle(session, finding)

    def _keep(self, session: Session, finding: Heard) -> None:
        """Keeps an item's sound, where the Thinker hears it itself and need not wait for words."""
        item = session.stage.conversation.find(finding.item_id)
        if not session.services.engine.description.hears or not isinstance(item, Message):
            return
        self._ahead.stop()
        spoken = [part for part in item.parts if part.kind is PartKind.INPUT_AUDIO]
        silent = [part for part in spoken if part.said is None and part.text is None]
        if silent:
            silent[0].said = AudioContent(finding.samples)
        if len(silent) <= 1:
            session.step(TextSettled(finding.item_id))

    def _settle(self, session: Session, finding: Recognized | NotRecognized) -> None:
        """The words of an item are known, or never will be: tells the client and goes on."""
        item_id = finding.item_id
        since = self._since.pop(item_id, None)
        if since is not None:
            session.services.metrics.words_known.observe(time.perf_counter() - since)
        item = session.stage.conversation.find(item_id)
        if isinstance(finding, Recognized) and isinstance(item, Message):
            for part in item.parts:
                if part.kind is PartKind.INPUT_AUDIO and part.text is None:
                    part.text = finding.text
                    break
        if session.config.transcription is not None:
            self._tell_client(session, finding)
        session.step(TextSettled(item_id))
        nothing = session.responder.nothing_said(item_id)
        if nothing is not None:
            session.step(nothing)

    def _tell_client(self, session: Session, finding: Recognized | NotRecognized) -> None:
        kind = "conversation.item.input_audio_transcription"
        where = {"item_id": finding.item_id, "content_index": 0}
        if isinstance(finding, NotRecognized):
            error = {
                "type": "server_error",
                "code": "transcription_failed",
                "message": finding.message,
            }
            session.send(f"{kind}.failed", **where, error=error)
            return
        if finding.text:
            session.send(f"{kind}.delta", **where, delta=finding.text)
        usage = {"type": "duration", "seconds": round(finding.seconds, 3)}
        session.send(f"{kind}.completed", **where, transcript=finding.text, usage=usage)

    async def close(self) -> None:
        """Stops listening."""
        await self._ahead.join()
        if self._listener is not None:
            await self._listener.close()

    def _need_listener(self) -> Listener:
        if self._listener is None:
            raise EventError(
                "This server does not listen: its ear is switched off, or its models are missing "
                "(antiphon models fetch --for conversation).",
                "ear_unavailable",
                "audio",
                kind="server_error",
            )
        return self._listener
