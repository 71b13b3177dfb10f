"""`GET /health`, `GET /ready` and `GET /metrics`: for supervisors and Prometheus."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from app.lifecycle import START_RETRY_SECONDS
from app.state import AppState, state_of

router = APIRouter(tags=["operation"])


class Health(BaseModel):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether requests are served, and what each stage is doing."""

    ready: bool
    status: str
    step: str
    stages: dict[str, str]
    running: int
    waiting: int


@router.get("/health", summary="Is the process up?")
async def health() -> Health:
    """Answers as long as the event loop runs, also while the engine starts."""
    return Health()


@router.get(
    "/ready",
    summary="Are requests served?",
    responses={HTTPStatus.SERVICE_UNAVAILABLE: {"model": Readiness, "description": "Not yet."}},
)
async def ready(response: Response, state: Annotated[AppState, Depends(state_of)]) -> Readiness:
    """Says 200 after a warm-up that really spoke, while every stage works; else 503."""
    lifecycle = state.lifecycle
    engine = lifecycle.peek()
    engine_health = engine.health() if engine is not None else None
    serves = lifecycle.ready
    if not serves:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        response.headers["Retry-After"] = str(int(START_RETRY_SECONDS))
    return Readiness(
        ready=serves,
        status=lifecycle.state,
        step=lifecycle.step,
        stages=dict(engine_health.stages) if engine_health else {},
        running=engine_health.running if engine_health else 0,
        waiting=engine_health.waiting if engine_health else 0,
    )


@router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics(state: Annotated[AppState, Depends(state_of)]) -> Response:
    """Shows this layer's metrics and the engine's in Prometheus' text format."""
    engine = state.lifecycle.peek()
    registry = engine.registry if engine is not None else None
    text = await state.codecs.run(lambda: state.metrics.render(registry))
    return Response(text, media_type=CONTENT_TYPE_LATEST)
