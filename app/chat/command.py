"""From what a client wrote to what the engine is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.audio.pcm import FloatSamples
from app.chat.schema import AudioPart, ChatRequest, ChosenTool, ImagePart, Message
from app.errors import invalid, retry_later
from app.pictures import check_together, decode_picture
from app.speech.command import check_model, resolve_voice
from app.state import AppState
from engine import (
    AudioContent,
    Chat,
    ChatMessage,
    OmniRequest,
    PictureContent,
    PipelineDescription,
    SpeechParameters,
    TextInput,
    Tool,
    ToolCall,
)

if TYPE_CHECKING:
    from app.ear.ear import Ear

SPOKEN_ROUTE = "chat"
WRITTEN_ROUTE = "chat_text"


async def engine_request(
    request: ChatRequest, state: AppState, request_id: str, tenant: str
) -> OmniRequest:
    """Checks a request against this pipeline; recordings in it are written down.

    Raises:
        ApiError: 400 or 404 that names the field at fault; 503, nothing listens here.
    """
    description = state.lifecycle.engine.description
    if request.model not in state.settings.realtime_model_aliases:
        check_model(request.model, description, state.settings)
    route = SPOKEN_ROUTE if request.spoken else WRITTEN_ROUTE
    _check_route(route, description)
    messages = [
        await _message(message, state, f"messages[{number}]")
        for number, message in enumerate(request.messages)
    ]
    check_together((seen for message in messages for seen in message.pictures), "messages")
    choice = request.tool_choice
    chat = Chat(
        messages=tuple(messages),
        tools=tuple(
            Tool(t.function.name, t.function.description, t.function.parameters)
            for t in request.tools
        ),
        tool_choice=choice.function.name if isinstance(choice, ChosenTool) else choice,
        max_tokens=request.max_completion_tokens or request.max_tokens,
        temperature=request.temperature,
    )
    voice = None
    if request.audio is not None:
        voice = resolve_voice(request.audio.voice, description, "audio.voice")
    return OmniRequest(
        request_id=request_id,
        text=TextInput.whole(""),
        parameters=SpeechParameters(voice=voice, seed=request.seed),
        tenant=tenant,
        deadline=state.settings.request_deadline_seconds,
        route=route,
        chat=chat,
    )


def _check_route(route: str, description: PipelineDescription) -> None:
    if route not in description.routes:
        raise invalid(
            "model",
            f"The pipeline {description.name!r} only speaks; its operator can start one that "
            "answers, such as 'conversation'.",
            "model_not_found",
        )


async def _message(message: Message, state: AppState, where: str) -> ChatMessage:
    content = message.content
    sounds: list[AudioContent] = []
    pictures: list[PictureContent] = []
    if isinstance(content, str):
        text = content
    else:
        texts = []
        for number, part in enumerate(content):
            if isinstance(part, AudioPart):
                param = f"{where}.content[{number}].input_audio.data"
                if state.lifecycle.engine.description.hears:
                    sounds.append(AudioContent(await _decoded(part, state, param)))
                else:
                    texts.append(await _written_down(part, state, param))
            elif isinstance(part, ImagePart):
                param = f"{where}.content[{number}].image_url.url"
                pictures.append(await seen_picture(part.image_url.url, state, param))
            else:
                texts.append(part.text)
        text = "\n".join(texts)
    return ChatMessage(
        role="system" if message.role == "developer" else message.role,
        text=text,
        tool_calls=tuple(
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls
        ),
        tool_call_id=message.tool_call_id,
        sounds=tuple(sounds),
        pictures=tuple(pictures),
    )


async def seen_picture(url: str, state: AppState, param: str) -> PictureContent:
    """A picture for a Thinker that sees.

    Raises:
        ApiError: 400; nothing sees here, or it is no picture that can be.
    """
    description = state.lifecycle.engine.description
    if not description.sees:
        raise invalid(
            param,
            f"The pipeline {description.name!r} takes no pictures; leave them out.",
            "invalid_value",
        )
    return await state.codecs.run(lambda: decode_picture(url, param))


async def _written_down(part: AudioPart, state: AppState, param: str) -> str:
    ear: Ear | None = await state.realtime.ear()
    if ear is None:
        message = "This server does not listen; its operator can fetch the models it needs."
        raise retry_later(message, "ear_unavailable", 60)
    return await ear.recognize(await _decoded(part, state, param))


async def _decoded(part: AudioPart, state: AppState, param: str) -> FloatSamples:
    """A recording as 16 kHz samples."""
    return await state.recordings.decode(part.input_audio.data, param)
