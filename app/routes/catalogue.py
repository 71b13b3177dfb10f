"""`GET /v1/models`, `GET /v1/models/{model}` and `GET /v1/audio/voices`."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from app.auth import authorize_request
from app.openapi import ERROR_RESPONSES
from app.speech.command import check_model
from app.state import AppState, state_of

router = APIRouter(
    tags=["catalogue"], dependencies=[Depends(authorize_request)], responses=ERROR_RESPONSES
)


class Model(BaseModel):
    """A model as OpenAI's clients know it; `created` is in Unix seconds."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "antiphon"


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[Model]


class Voice(BaseModel):
    """A voice; a speech request may give its id or any of its aliases."""

    id: str
    object: Literal["audio.voice"] = "audio.voice"
    name: str
    description: str
    language: str
    aliases: list[str]


class VoiceList(BaseModel):
    """All voices, the default first."""

    object: Literal["list"] = "list"
    voices: list[Voice]


@router.get("/v1/models", summary="List the models")
async def list_models(state: Annotated[AppState, Depends(state_of)]) -> ModelList:
    """Lists the models of the pipeline; aliases of theirs are accepted but not listed."""
    models = state.lifecycle.engine.description.models
    return ModelList(data=[Model(id=model, created=state.created) for model in models])


@router.get("/v1/models/{model:path}", summary="Look up a model")
async def retrieve_model(model: str, state: Annotated[AppState, Depends(state_of)]) -> Model:
    """Tells whether a model or an alias is served."""
    check_model(model, state.lifecycle.engine.description, state.settings)
    return Model(id=model, created=state.created)


@router.get("/v1/audio/voices", summary="List the voices")
async def list_voices(state: Annotated[AppState, Depends(state_of)]) -> VoiceList:
    """Lists the voices."""
    return VoiceList(
        voices=[
            Voice(
                id=voice.name,
                name=voice.name,
                description=voice.description,
                language=voice.language,
                aliases=list(voice.aliases),
            )
            for voice in state.lifecycle.engine.description.voices
        ]
    )
