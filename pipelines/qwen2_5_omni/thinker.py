"""The Thinker's prompts: a conversation to be answered, or a text to be spoken as it is."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig, Qwen2_5OmniConfig

from engine import Chat, ChatMessage
from engine.chunk import TextPayload
from engine.multimodal import MediaItem
from engine.text_request import TextPrompt
from pipelines.qwen2_5_omni.hearing import HeardSound, Hearing

ARCHITECTURE = "Qwen2_5OmniModel"
"""vLLM's name for its model of the Thinker; checkpoints have several."""

SYSTEM_PROMPT = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of "
    "perceiving auditory and visual inputs, as well as generating text and speech."
)
"""Opens a conversation that brings no system message: the Talker was trained with this one."""

READ_ALOUD = "Read this text aloud, word for word: "

MAXIMUM_TOKENS = 1024
"""Tokens of an answer, where the request names no limit; the reference's default."""


def configure(config: PretrainedConfig) -> PretrainedConfig:
    """The checkpoint's configuration with vLLM's name for the Thinker.

    vLLM also tries this with an empty configuration, which is left as it is.
    """
    if not isinstance(config, Qwen2_5OmniConfig):
        return config
    config.architectures = [ARCHITECTURE]
    return config


class ChatToPrompt:
    """One request's conversation, given once, as the Thinker's prompt."""

    def __init__(self, hearing: Hearing, *, speaks: bool) -> None:
        """Makes an adapter that waits for its conversation.

        Args:
            hearing: Makes the features of sounds; has the tokenizer and the chat template.
            speaks: Whether the answer is spoken, so that its hidden states are wanted.
        """
        self._hearing = hearing
        self._speaks = speaks
        self._chat: Chat | None = None
        self._closed = False

    def push(self, payload: Chat) -> None:
        """Takes the conversation."""
        self._chat = payload

    def close(self) -> None:
        """Ends the input."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> TextPrompt | None:
        """The prompt, once."""
        chat, self._chat = self._chat, None
        if chat is None:
            return None
        token_ids, media = prompt_of(chat.messages, self._hearing, answered=False)
        return TextPrompt(
            token_ids=token_ids,
            max_tokens=chat.max_tokens or MAXIMUM_TOKENS,
            temperature=0.0 if chat.temperature is None else chat.temperature,
            media=media,
            hidden_states=self._speaks,
        )

    @property
    def finished(self) -> bool:
        """Whether the input ended and the prompt was given."""
        return self._closed and self._chat is None


class TextToPrompt:
    """One request's text as an answer that the Thinker is taken to have given.

    The Thinker reads the text as its own answer, so that its states are those from which the
    Talker speaks; the one token that it then has to write is not wanted.
    """

    def __init__(self, hearing: Hearing) -> None:
        """Makes an adapter that waits for the end of its text."""
        self._hearing = hearing
        self._parts: list[str] = []
        self._closed = False
        self._given = False

    def push(self, payload: TextPayload) -> None:
        """Takes a piece of text."""
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
        token_ids, _ = prompt_of(messages, self._hearing, answered=True)
        return TextPrompt(token_ids=token_ids, max_tokens=1, hidden_states=True)

    @property
    def finished(self) -> bool:
        """Whether the text ended and the prompt was given."""
        return self._closed and self._given


def prompt_of(
    messages: tuple[ChatMessage, ...], hearing: Hearing, *, answered: bool
) -> tuple[tuple[int, ...], tuple[MediaItem, ...]]:
    """The token ids of a conversation with room for its sounds, and the sounds.

    Args:
        messages: The conversation.
        hearing: Makes the features.
        answered: Whether the last message is the answer.
    """
    if not messages or messages[0].role != "system":
        messages = (ChatMessage("system", SYSTEM_PROMPT), *messages)
    processor: Any = hearing.processor
    text = processor.apply_chat_template(
        [_rendered(message) for message in messages],
        add_generation_prompt=not answered,
        tokenize=False,
    )
    sounds = [hearing.hear(sound) for message in messages for sound in message.sounds]
    placeholder = processor.tokenizer.convert_tokens_to_ids(processor.audio_token)
    token_ids = processor.tokenizer.encode(str(text), add_special_tokens=False)
    return _expanded(token_ids, placeholder, sounds)


def _rendered(message: ChatMessage) -> dict[str, object]:
    if not message.sounds:
        return {"role": message.role, "content": message.text}
    parts: list[dict[str, object]] = [{"type": "audio", "audio": None} for _ in message.sounds]
    if message.text:
        parts.append({"type": "text", "text": message.text})
    return {"role": message.role, "content": parts}


def _expanded(
    token_ids: list[int], placeholder: int, sounds: list[HeardSound]
) -> tuple[tuple[int, ...], tuple[MediaItem, ...]]:
    """Each placeholder as often as its sound has embeddings."""
    if token_ids.count(placeholder) != len(sounds):
        raise ValueError(
            f"The conversation has {len(sounds)} sounds, but {token_ids.count(placeholder)} "
            "placeholders for sound; its text must not contain the placeholder."
        )
    expanded: list[int] = []
    media: list[MediaItem] = []
    remaining = iter(sounds)
    for token in token_ids:
        if token != placeholder:
            expanded.append(token)
            continue
        sound = next(remaining)
        media.append(MediaItem("audio", len(expanded), sound.tokens, sound.identifier, sound.data))
        expanded.extend([placeholder] * sound.tokens)
    return tuple(expanded), tuple(media)
