"""The prompt of a Thinker that hears: a conversation, with room for its sounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine import Chat, ChatMessage, InvalidRequestError, Tool
from engine.multimodal import MediaItem
from engine.text_request import TextPrompt
from engine.tool_calls import CALL_BEGINS, call_rule
from pipelines.control_tokens import encode_rendered
from pipelines.qwen.hearing import Hearing

MAXIMUM_TOKENS = 1024
"""Tokens of an answer, where the request names no limit; the reference's default."""


class ChatToPrompt:
    """One request's conversation, given once, as the Thinker's prompt."""

    def __init__(self, hearing: Hearing, *, speaks: bool, system: str | None = None) -> None:
        """Makes an adapter that waits for its conversation.

        Args:
            hearing: Makes the features of sounds; has the tokenizer and the chat template.
            speaks: Whether the answer is spoken, so that its hidden states are wanted.
            system: Opens a conversation that brings no system message.
        """
        self._hearing = hearing
        self._system = system
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
        token_ids, media = prompt_of(chat, self._hearing, self._system)
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


Prompt = tuple[tuple[int, ...], tuple[MediaItem, ...]]
"""Token ids with room for sounds and pictures, and these."""


def prompt_of(chat: Chat, hearing: Hearing, system: str | None = None) -> Prompt:
    """The prompt that asks for an answer to a conversation.

    Raises:
        InvalidRequestError: There is nothing in it.
    """
    if not chat.messages:
        raise InvalidRequestError(
            "messages", "The conversation is empty, so that there is nothing to answer; add to it."
        )
    messages = with_system(chat.messages, system)
    return rendered_prompt(_with_tools(chat, messages), hearing, answered=False)


def with_system(messages: Sequence[ChatMessage], system: str | None) -> list[ChatMessage]:
    """The messages, opened by a system message if they bring none and there is one."""
    if system is None or (messages and messages[0].role == "system"):
        return list(messages)
    return [ChatMessage("system", system), *messages]


def rendered_prompt(messages: Sequence[ChatMessage], hearing: Hearing, *, answered: bool) -> Prompt:
    """The prompt of messages, of which the last is the answer or an answer is asked for."""
    processor: Any = hearing.processor

    def render(rendered: list[dict[str, object]]) -> str:
        return str(
            processor.apply_chat_template(
                rendered, add_generation_prompt=not answered, tokenize=False
            )
        )

    tokenizer = processor.tokenizer
    token_ids = encode_rendered(tokenizer, [rendered_message(m) for m in messages], render)
    token = tokenizer.convert_tokens_to_ids
    sounds, pictures = token(processor.audio_token), token(processor.image_token)
    media: dict[int, list[tuple[MediaItem, ...]]] = {sounds: [], pictures: []}
    for message in messages:
        media[sounds] += [hearing.hear(sound) for sound in message.sounds]
        media[pictures] += [(hearing.seeing.see(picture),) for picture in message.pictures]
    return _expanded(token_ids, media)


def _with_tools(chat: Chat, messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages, with what may be called described in the system message."""
    if not chat.tools or chat.tool_choice == "none":
        return messages
    described = "You can call these functions, with only a JSON object of name and arguments:"
    lines = [described, *(json.dumps(_described(tool)) for tool in chat.tools)]
    if messages and messages[0].role == "system":
        lines.insert(0, messages[0].text)
        messages = messages[1:]
    return [ChatMessage("system", "\n".join(lines)), *messages]


def _described(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def rendered_message(message: ChatMessage) -> dict[str, object]:
    """A message as the chat template takes it."""
    calls = [
        json.dumps({"name": call.name, "arguments": json.loads(call.arguments)})
        for call in message.tool_calls
    ]
    if not message.sounds and not message.pictures:
        content = "\n".join(part for part in (message.text, *calls) if part)
        return {"role": message.role, "content": content}
    parts: list[dict[str, object]] = [{"type": "image", "image": None} for _ in message.pictures]
    parts += [{"type": "audio", "audio": None} for _ in message.sounds]
    if message.text:
        parts.append({"type": "text", "text": message.text})
    return {"role": message.role, "content": parts}


def _expanded(token_ids: list[int], media: Mapping[int, list[tuple[MediaItem, ...]]]) -> Prompt:
    """Each placeholder as often as its sound's windows, or its picture, have embeddings.

    Args:
        token_ids: The rendered conversation.
        media: By placeholder, what it stands for in order.
    """
    for placeholder, items in media.items():
        if token_ids.count(placeholder) != len(items):
            raise ValueError(
                f"The conversation has {len(items)} sounds or pictures, but "
                f"{token_ids.count(placeholder)} placeholders for them; the checkpoint's chat "
                "template is another model's."
            )
    expanded: list[int] = []
    placed: list[MediaItem] = []
    remaining = {placeholder: iter(items) for placeholder, items in media.items()}
    for token in token_ids:
        if token not in remaining:
            expanded.append(token)
            continue
        for item in next(remaining[token]):
            placed.append(replace(item, offset=len(expanded)))
            expanded.extend([token] * item.length)
    return tuple(expanded), tuple(placed)
