"""The adapters: text (and the voice of reference audio) to the Talker's rows, codes to frames."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from transformers import PreTrainedTokenizerFast

from engine.adapter import FeedRows, GenerationInput, StepOutput
from engine.chunk import TextPayload
from pipelines.qwen3_tts.code2wav import Frames
from pipelines.qwen3_tts.rows import RowMaker, Rows, TextTrack, VoicePrompt
from pipelines.qwen3_tts.text_stream import TokenStream, tokens_of


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """How a request is to be spoken.

    Attributes:
        maker: Makes rows for the checkpoint.
        role: Tokens that open the assistant's turn.
        instructions: Tokens of the user's turn; may be empty.
        language: The language's codec token; None: the model chooses.
        speaker: The built-in speaker's codec token, if there is one.
        clones: Whether a voice comes before the text, as a `VoicePrompt`.
        whole: Whether the whole text is read before the first step.
    """

    maker: RowMaker
    role: tuple[int, ...]
    instructions: tuple[int, ...]
    language: int | None
    speaker: int | None
    clones: bool
    whole: bool

    def prefix(self, voice: VoicePrompt | None) -> Rows:
        """The rows before the text."""
        return self.maker.prefix(self.role, self.instructions, self.language, voice or self.speaker)


@dataclass(slots=True)
class TextToRows:
    """One request's text as rows of the Talker.

    A reference's frames travel to the decoder as the tag of the prompt's last row.
    """

    plan: SpeechPlan
    tokens: TokenStream
    _track: TextTrack | None = None
    _voice: VoicePrompt | None = None
    _new: list[int] = field(default_factory=list)
    _closed: bool = False
    _ended: bool = False

    def push(self, payload: object) -> None:
        """Adds text, or the voice; what a Thinker sends beside text is not spoken."""
        if isinstance(payload, VoicePrompt):
            self._voice = payload
        if isinstance(payload, TextPayload):
            if payload.text:
                self._new += self.tokens.push(payload.text)
            if payload.flush:
                self._new += self.tokens.flush()

    def close(self) -> None:
        """Ends the text."""
        self._new += self.tokens.close()
        self._closed = True

    def hurry(self) -> None:
        """Speaks the last word, if it is whole; then the Talker waits."""
        self._new += self.tokens.flush()

    def pull(self) -> FeedRows | None:
        """The rows that are certain now."""
        waits_for_voice = self.plan.clones and self._voice is None and not self._closed
        if self._ended or waits_for_voice or not (self._new or self._closed):
            return None
        if self._track is None:
            prefix = self.plan.prefix(self._voice)
            self._track = TextTrack(self.plan.maker, prefix, self._voice, self.plan.whole)
        rows = self._take(self._track)
        if rows is not None and self._voice is not None and rows.prompt_rows > 1:
            rows = self._tagged(rows, self._voice)
        return rows

    def _take(self, track: TextTrack) -> FeedRows | None:
        new, self._new = self._new, []
        self._ended = self._closed
        return track.take(new, self._closed)

    @staticmethod
    def _tagged(rows: FeedRows, voice: VoicePrompt) -> FeedRows:
        if voice.codes is None:
            return rows
        tags: list[Frames | None] = [None] * len(rows.values)
        tags[rows.prompt_rows - 1] = Frames(voice.codes, silent=True)
        return replace(rows, tags=tuple(tags))

    @property
    def finished(self) -> bool:
        """Whether all text was read and every row given."""
        return self._ended


class CodesToFrames:
    """The Talker's codes as frames of Code2Wav."""

    def __init__(self) -> None:
        """Makes an adapter at the beginning of a response."""
        self._inputs: deque[GenerationInput] = deque()
        self._closed = False

    def push(self, payload: StepOutput) -> None:
        """Takes a step's codes, and with the first ones what the decoder should have heard."""
        if isinstance(payload.tag, Frames):
            # Nothing of it is heard: it counts as little towards the size of a chunk.
            self._inputs.append(GenerationInput(1, payload.tag))
        self._inputs.append(GenerationInput(1, Frames(payload.codes[None])))

    def close(self) -> None:
        """Ends the input."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> GenerationInput | None:
        """The oldest frame."""
        return self._inputs.popleft() if self._inputs else None

    @property
    def finished(self) -> bool:
        """Whether the input is closed and empty."""
        return self._closed and not self._inputs


def opening_tokens(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Tokens that open the assistant's turn."""
    return tuple(tokenizer("<|im_start|>assistant\n", add_special_tokens=False)["input_ids"])


def instruction_tokens(tokenizer: PreTrainedTokenizerFast, text: str | None) -> tuple[int, ...]:
    """Tokens of a user's turn that says how to speak; none without text."""
    if not text:
        return ()
    start = tokenizer("<|im_start|>user\n", add_special_tokens=False)["input_ids"]
    end = tokenizer("<|im_end|>\n", add_special_tokens=False)["input_ids"]
    return (*start, *tokens_of(tokenizer, text), *end)
