"""What one response is asked to be: the session's settings with the response's own over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.realtime.client_events import ResponseOptions
from app.realtime.items import Item
from app.realtime.session_config import SessionConfig, one_modality
from app.realtime.session_schema import FunctionTool, NamedFunction
from engine import Chat, ChatMessage, Tool


@dataclass(frozen=True, slots=True)
class ResponsePlan:
    """One response.

    Attributes:
        response_id: Its name.
        config: The settings that hold for it.
        conversation_id: The conversation that it belongs to; None for one beside it.
        metadata: What the client wants to have echoed.
        items: What is answered instead of the conversation; None: the conversation.
        turn: The user's turn that is answered, where nobody asked for the answer.
    """

    response_id: str
    config: SessionConfig
    conversation_id: str | None
    metadata: dict[str, str] | None = None
    items: tuple[Item, ...] | None = None
    turn: str | None = None

    @property
    def spoken(self) -> bool:
        """Whether the answer is heard."""
        return self.config.modality == "audio"

    def as_wire(self) -> dict[str, Any]:
        """The parts of the response object that do not change."""
        return {
            "object": "realtime.response",
            "id": self.response_id,
            "conversation_id": self.conversation_id,
            "output_modalities": [self.config.modality],
            "max_output_tokens": self.config.max_output_tokens,
            "audio": {"output": self.config.output_as_wire()},
            "metadata": self.metadata,
        }


def configured(config: SessionConfig, options: ResponseOptions) -> SessionConfig:
    """The session's settings with a response's own over them.

    Raises:
        EventError: The options contradict each other.
    """
    changed: dict[str, Any] = {}
    if options.output_modalities is not None:
        changed["modality"] = one_modality(options.output_modalities, "response.")
    if options.instructions is not None:
        changed["instructions"] = options.instructions
    if options.tools is not None:
        changed["tools"] = tuple(options.tools)
    if options.tool_choice is not None:
        changed["tool_choice"] = options.tool_choice
    if options.max_output_tokens is not None:
        changed["max_output_tokens"] = options.max_output_tokens
    result = replace(config, **changed)
    if options.audio is not None and options.audio.output is not None:
        result = result.with_output(options.audio.output)
    return result


def chat_of(config: SessionConfig, messages: Sequence[ChatMessage]) -> Chat:
    """What the Thinker is asked."""
    choice = config.tool_choice
    maximum = config.max_output_tokens
    return Chat(
        messages=tuple(messages),
        tools=tuple(_tool(tool) for tool in config.tools),
        tool_choice=choice.name if isinstance(choice, NamedFunction) else choice,
        max_tokens=None if maximum == "inf" else maximum,
    )


def _tool(tool: FunctionTool) -> Tool:
    return Tool(tool.name, tool.description, tool.parameters)
