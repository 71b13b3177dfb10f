"""The Thinker: vLLM's own model, and the adapter that makes its prompt of a conversation."""

from __future__ import annotations

import json

from engine import Chat, ChatMessage, Tool
from engine.multimodal import MediaItem
from engine.text_request import TextPrompt
from engine.tool_calls import CALL_BEGINS, call_rule
from pipelines.qwen3_omni.hearing import HeardSound, Hearing

MAXIMUM_TOKENS = 1024
"""Tokens of an answer, where the request names no limit; the reference's default."""


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
        tokenizer = hearing.processor.tokenizer
        self._call_token = tokenizer.encode(CALL_BEGINS, add_special_tokens=False)[0]
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
        calls = call_rule(chat)
        token_ids, media = prompt_of(chat, self._hearing)
        return TextPrompt(
            token_ids=token_ids,
            max_tokens=chat.max_tokens or MAXIMUM_TOKENS,
            temperature=0.0 if chat.temperature is None else chat.temperature,
            calls=calls,
            call_token=self._call_token,
            media=media,
            hidden_states=self._speaks,
        )

    @property
    def finished(self) -> bool:
        """Whether the input ended and the prompt was given."""
        return self._closed and self._chat is None


def prompt_of(chat: Chat, hearing: Hearing) -> tuple[tuple[int, ...], tuple[MediaItem, ...]]:
    """The token ids of a conversation with room for its sounds, and the sounds."""
    processor = hearing.processor
    messages = [_rendered(message) for message in _with_tools(chat)]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    sounds = [hearing.hear(sound) for message in chat.messages for sound in message.sounds]
    placeholder = processor.tokenizer.convert_tokens_to_ids(processor.audio_token)
    token_ids = processor.tokenizer.encode(str(text), add_special_tokens=False)
    return _expanded(token_ids, placeholder, sounds)


def _with_tools(chat: Chat) -> list[ChatMessage]:
    """The messages, with what may be called described in the system message."""
    messages = list(chat.messages)
    if not chat.tools or chat.tool_choice == "none":
        return messages
    described = "You can call these functions, with only a JSON object of name and arguments:"
    lines = [described, *(json.dumps(_described(tool)) for tool in chat.tools)]
    if messages and messages[0].role == "system":
        lines.insert(0, messages.pop(0).text)
    return [ChatMessage("system", "\n".join(lines)), *messages]


def _described(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def _rendered(message: ChatMessage) -> dict[str, object]:
    calls = [
        json.dumps({"name": call.name, "arguments": json.loads(call.arguments)})
        for call in message.tool_calls
    ]
    if not message.sounds:
        content = "\n".join(part for part in (message.text, *calls) if part)
        return {"role": message.role, "content": content}
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
        item = MediaItem("audio", len(expanded), sound.tokens, sound.identifier, sound.data)
        media.append(item)
        expanded.extend([placeholder] * sound.tokens)
    return tuple(expanded), tuple(media)
