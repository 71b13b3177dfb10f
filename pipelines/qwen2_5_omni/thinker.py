"""The Thinker's prompts: a conversation to be answered, or a text to be spoken as it is."""

from __future__ import annotations

from transformers import PretrainedConfig, Qwen2_5OmniConfig

from engine import ChatMessage, InvalidRequestError
from engine.chunk import TextPayload
from engine.text_request import TextPrompt
from pipelines.qwen.hearing import Hearing
from pipelines.qwen.prompts import rendered_prompt, with_system
from pipelines.qwen.quantised import hand_on

ARCHITECTURE = "Qwen2_5OmniModel"
"""vLLM's name for its model of the Thinker; checkpoints have several."""

SYSTEM_PROMPT = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of "
    "perceiving auditory and visual inputs, as well as generating text and speech."
)
"""Opens a conversation that brings no system message: the Talker was trained with this one."""

LONGEST_TEXT = 100_000
"""Characters of a text to be spoken, which is kept until it ends; contexts are shorter by far."""

READ_ALOUD = "Read this text aloud, word for word: "


def configure(config: PretrainedConfig) -> PretrainedConfig:
    """The checkpoint's configuration with vLLM's name for the Thinker.

    vLLM also tries this with an empty configuration, which is left as it is.
    """
    if not isinstance(config, Qwen2_5OmniConfig):
        return config
    config.architectures = [ARCHITECTURE]
    hand_on(config, "thinker_config", config)
    return config


class TextToPrompt:
    """One request's text as an answer that the Thinker is taken to have given.

    The Thinker reads the text as its own answer, so that its states are those from which the
    Talker speaks; the one token that it then has to write is not wanted.
    """

    def __init__(self, hearing: Hearing) -> None:
        """Makes an adapter that waits for the end of its text."""
        self._hearing = hearing
        self._parts: list[str] = []
        self._length = 0
        self._closed = False
        self._given = False

    def push(self, payload: TextPayload) -> None:
        """Takes a piece of text.

        Raises:
            InvalidRequestError: The text is longer than `LONGEST_TEXT`.
        """
        self._length += len(payload.text)
        if self._length > LONGEST_TEXT:
            self._parts.clear()
            raise InvalidRequestError(
                "text",
                f"The text is longer than {LONGEST_TEXT} characters; this model reads a text whole "
                "before it speaks. Send it in parts.",
            )
        self._parts.append(payload.text)

    def close(self) -> None:
        """Ends the text."""
        self._closed = True

    def hurry(self) -> None:
        """The Thinker reads the whole text or none of it."""

    def pull(self) -> TextPrompt | None:
        """The prompt, once the text has ended."""
        if not self._closed or self._given:
            return None
        self._given = True
        text = "".join(self._parts).strip()
        if not text:
            return None
        messages = (ChatMessage("user", READ_ALOUD + text), ChatMessage("assistant", text))
        opened = with_system(messages, SYSTEM_PROMPT)
        token_ids, _ = rendered_prompt(opened, self._hearing, answered=True)
        return TextPrompt(token_ids=token_ids, max_tokens=1, parameter="text", hidden_states=True)

    @property
    def finished(self) -> bool:
        """Whether the text ended and the prompt was given."""
        return self._closed and self._given
