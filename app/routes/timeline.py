"""`GET /v1/requests/{request_id}/timeline`: where one request's time went."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel

from app.auth import authorize_request
from app.errors import ApiError
from app.openapi import TIMELINE_RESPONSES
from app.state import AppState, state_of

router = APIRouter(tags=["operation"])


class StageTimeline(BaseModel):
    """One stage's part: moments from the request's arrival on, and durations, in milliseconds."""

    stage: str
    first_input_at_ms: float | None
    first_step_at_ms: float | None
    first_output_at_ms: float | None
    ended_at_ms: float | None
    queue_ms: float
    compute_ms: float
    transfer_ms: float
    starved_ms: float
    held_ms: float
    waited_ms: float
    steps: int


class RequestTimeline(BaseModel):
    """Where a request's time went; what has not happened yet is null."""

    object: str
    id: str
    endpoint: str
    status: str
    received_at: float
    admitted_at_ms: float | None
    opened_at_ms: float | None
    first_audio_at_ms: float | None
    first_sent_at_ms: float | None
    engine_ended_at_ms: float | None
    ended_at_ms: float | None
    encode_ms: float
    send_blocked_ms: float
    audio_seconds: float
    underruns: int
    stages: list[StageTimeline]


@router.get(
    "/v1/requests/{request_id}/timeline",
    summary="Where did a request's time go?",
    response_model=RequestTimeline,
    responses=TIMELINE_RESPONSES,
)
async def timeline(
    request_id: Annotated[
        str,
        Path(
            description="The X-Request-Id of an HTTP response, the id of a realtime response, or "
            "the request_id of a context."
        ),
    ],
    tenant: Annotated[str, Depends(authorize_request)],
    state: Annotated[AppState, Depends(state_of)],
) -> dict[str, Any]:
    """Tells the times of one of the last requests, also while it runs."""
    record = state.timelines.find(request_id, tenant)
    if record is None:
        raise ApiError(
            404,
            f"There is no request {request_id!r} among the last "
            f"{state.settings.timeline_requests} of yours.",
            param="request_id",
            code="request_not_found",
        )
    return record.as_json()
