"""The composition root of the app: settings and an engine in, an ASGI application out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from app import openapi
from app.audio.worker import CodecPool
from app.exception_handlers import install_exception_handlers
from app.lifecycle import EngineLifecycle
from app.loop_lag import measure_loop_lag
from app.metrics import AppMetrics
from app.realtime.service import RealtimeService
from app.recordings import Recordings
from app.request_context import REQUEST_ID_HEADER, RequestContextMiddleware
from app.routes import (
    catalogue,
    chat,
    documentation,
    health,
    live,
    realtime,
    speech,
    text_stream,
    timeline,
    transcriptions,
)
from app.routes.root import install_root
from app.settings import Settings
from app.speech.warning import WARNING_HEADER
from app.state import AppState
from app.timeline import Timelines, Tracer

EXPOSED_HEADERS = [REQUEST_ID_HEADER, WARNING_HEADER, "Server-Timing", "Retry-After"]
"""What scripts of other origins may read of a response."""


def application_version() -> str:
    """The installed version, or a word that says there is none."""
    try:
        return version("antiphon")
    except PackageNotFoundError:
        return "0+source"


def _tracer(settings: Settings) -> Tracer | None:
    if settings.otlp_endpoint is None:
        return None
    # Only who wants traces pays for the library.
    from app.tracing import OpenTelemetryTracer

    return OpenTelemetryTracer.to_collector(
        settings.otlp_endpoint, version=application_version(), pipeline=settings.pipeline
    )


def _state_of(settings: Settings, lifecycle: EngineLifecycle) -> AppState:
    metrics = AppMetrics()
    codecs = CodecPool(settings.codec_threads)
    timelines = Timelines(settings.timeline_requests, _tracer(settings))
    return AppState(
        settings=settings,
        lifecycle=lifecycle,
        metrics=metrics,
        timelines=timelines,
        codecs=codecs,
        recordings=Recordings(settings),
        realtime=RealtimeService(settings, lifecycle, codecs, timelines, metrics.registry),
        key_digests=settings.key_digests(),
    )


@asynccontextmanager
async def _running(state: AppState) -> AsyncGenerator[None]:
    """Starts what runs as long as the server does, and closes it in order."""
    lag = asyncio.create_task(measure_loop_lag(state.metrics.loop_lag.observe))
    state.lifecycle.start()
    state.realtime.start()
    try:
        yield
    finally:
        lag.cancel()
        await asyncio.gather(lag, return_exceptions=True)
        await state.realtime.close()
        await state.lifecycle.close()
        state.codecs.close()
        state.recordings.close()
        await asyncio.to_thread(state.timelines.shut_down)


def create_application(settings: Settings, lifecycle: EngineLifecycle) -> FastAPI:
    """Builds the application.

    Args:
        settings: Every limit.
        lifecycle: The engine; it begins to start when the server does and is closed with it.
    """
    state = _state_of(settings, lifecycle)
    app = FastAPI(
        title="Antiphon",
        version=application_version(),
        summary="Text in, speech out while it is being made.",
        description=documentation.TEXT_STREAM,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _app: _running(state),
    )
    app.state.antiphon = state
    install_exception_handlers(app)
    for module in (
        speech,
        text_stream,
        realtime,
        live,
        transcriptions,
        chat,
        catalogue,
        health,
        timeline,
        documentation,
    ):
        app.include_router(module.router)
    install_root(app, settings.static_folder)
    app.add_middleware(RequestContextMiddleware)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    return app
