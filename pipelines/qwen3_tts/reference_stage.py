"""The stage before the Talker: hands the text on, and the voice of reference audio before it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine import SpeechParameters
from pipelines.qwen3_tts.reference_voice import VoiceEncoder
from pipelines.qwen3_tts.rows import VoicePrompt

KEPT_VOICES = 32
"""Voices that are not encoded again when a request brings the same audio and text."""


@dataclass(slots=True)
class ReferenceRequest:
    """What the stage keeps of one request."""

    parameters: SpeechParameters
    payloads: deque[Any] = field(default_factory=deque)
    encoded: bool = False
    closed: bool = False
    has_credit: bool = True


@dataclass(frozen=True, slots=True)
class ReferenceOutput:
    """What a step gave one request."""

    request_id: str
    output: Any | None
    finished: bool


@dataclass(slots=True)
class ReferenceReplica:
    """Encodes a request's reference audio in its first step; text passes through.

    Attributes:
        encoder: Of a Base checkpoint; None: there is no reference audio to hear.
        input_limit: How many pieces of text a request may hold here.
    """

    encoder: VoiceEncoder | None
    input_limit: int
    requests: dict[str, ReferenceRequest] = field(default_factory=dict)
    voices: OrderedDict[str, VoicePrompt] = field(default_factory=OrderedDict)

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request."""
        if request_id in self.requests:
            raise ValueError(f"Request {request_id!r} is open already.")
        silent = self.encoder is None or parameters.reference_audio is None
        self.requests[request_id] = ReferenceRequest(parameters, encoded=silent)

    def wants_input(self, request_id: str) -> bool:
        """Whether more text should be given before the next step."""
        return len(self.requests[request_id].payloads) < self.input_limit

    def offer(self, request_id: str, payload: Any) -> None:
        """Queues text."""
        self.requests[request_id].payloads.append(payload)

    def close_input(self, request_id: str) -> None:
        """Ends a request's text."""
        self.requests[request_id].closed = True

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether the request's output may grow."""
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that have something to hand on."""
        del slacks
        return [
            name
            for name, request in self.requests.items()
            if request.has_credit and (request.payloads or request.closed or not request.encoded)
        ]

    @property
    def needs_cleaning(self) -> bool:
        """Nothing of an aborted request is left behind."""
        return False

    def step(self, slacks: Mapping[str, float]) -> list[ReferenceOutput]:
        """One payload of each ready request; audio is encoded for one request a step."""
        outputs = []
        has_encoded = False
        for name in self.ready(slacks):
            request = self.requests[name]
            if not request.encoded:
                if has_encoded:
                    continue
                has_encoded = request.encoded = True
                outputs.append(ReferenceOutput(name, self._voice(request.parameters), False))
                continue
            payload = request.payloads.popleft() if request.payloads else None
            finished = request.closed and not request.payloads
            if finished:
                del self.requests[name]
            outputs.append(ReferenceOutput(name, payload, finished))
        return outputs

    def _voice(self, parameters: SpeechParameters) -> VoicePrompt:
        audio, text = parameters.reference_audio, parameters.reference_text or ""
        if self.encoder is None or audio is None:
            raise ValueError("There is no reference audio to encode.")
        key = hashlib.sha256(text.encode() + b"\0" + audio).hexdigest()
        if key not in self.voices:
            self.voices[key] = self.encoder.encode(audio, text)
        self.voices.move_to_end(key)
        while len(self.voices) > KEPT_VOICES:
            self.voices.popitem(last=False)
        return self.voices[key]

    def abort(self, request_id: str) -> None:
        """Forgets a request; idempotent."""
        self.requests.pop(request_id, None)

    def close(self) -> None:
        """Forgets everything."""
        self.requests.clear()
        self.voices.clear()
