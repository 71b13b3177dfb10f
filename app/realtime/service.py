"""All realtime sessions of one server, and the ear that they share."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from app.audio.worker import CodecPool
from app.errors import ApiError, retry_later
from app.lifecycle import EngineLifecycle
from app.realtime.client_secrets import ClientSecrets
from app.realtime.inbox import CloseAsked
from app.realtime.metrics import RealtimeMetrics
from app.realtime.outbox import Closing
from app.realtime.services import Services
from app.realtime.session import Session
from app.realtime.session_config import SessionConfig
from app.settings import Settings
from app.timeline import Timelines
from engine import ConfigurationError
from engine.catalogue import Catalogue
from engine.locate import locate

if TYPE_CHECKING:
    from app.ear.ear import Ear

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""When a client for whom there was no room should try again."""


class RealtimeService:
    """All realtime sessions of one server.

    Attributes:
        secrets: The short-lived keys of browsers.
        metrics: What is counted.
    """

    def __init__(
        self,
        settings: Settings,
        lifecycle: EngineLifecycle,
        codecs: CodecPool,
        timelines: Timelines,
        registry: CollectorRegistry,
    ) -> None:
        """Loads nothing before `start`."""
        self.secrets = ClientSecrets()
        self.metrics = RealtimeMetrics(registry)
        self._settings = settings
        self._lifecycle = lifecycle
        self._codecs = codecs
        self._timelines = timelines
        self._ear: Ear | None = None
        self._loading: asyncio.Task[None] | None = None
        self._sessions: dict[str, tuple[Session, asyncio.Task[None]]] = {}
        self._closed = False

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def start(self) -> None:
        """Begins to load the ear in the background."""
        if self._settings.ear:
            self._loading = asyncio.create_task(self._load(), name="load ear")
            self._loading.add_done_callback(_note_failure)

    async def ear(self) -> Ear | None:
        """The ear, as soon as it is loaded; None where it is switched off or its models miss."""
        if self._loading is not None:
            await asyncio.wait({self._loading})
        return self._ear

    async def _load(self) -> None:
        try:
            self._ear = await asyncio.to_thread(_load_ear, self._settings)
        except ConfigurationError as failure:
            logger.warning("The server will not listen: %s", failure)

    async def open(self, config: SessionConfig, tenant: str) -> Session:
        """Begins a session.

        Raises:
            ApiError: 503, the engine is not ready, or there are as many sessions as may be.
        """
        engine = self._lifecycle.engine
        # Nothing may be waited for between the look at how many there are and the new one's place.
        ear = await self.ear()
        if self._closed or len(self._sessions) >= self._settings.realtime_sessions:
            message = f"At most {self._settings.realtime_sessions} realtime sessions are served."
            raise retry_later(message, "too_many_sessions", RETRY_SECONDS)
        services = Services(
            self._settings, engine, self._codecs, self.metrics, self._timelines, ear
        )
        session = Session(services, config, tenant)
        task = asyncio.create_task(session.run(), name=session.id)
        self._sessions[session.id] = (session, task)
        task.add_done_callback(lambda ended: self._ended(session, ended))
        return session

    def find(self, resume_token: str, tenant: str) -> Session:
        """The session that a client comes back to.

        Raises:
            ApiError: 404, there is none for this token.
        """
        for session, _ in self._sessions.values():
            known = session.resume_token
            if known is None or session.tenant != tenant:
                continue
            if hmac.compare_digest(known.encode(), resume_token.encode()):
                return session
        raise ApiError(
            404, "There is no session to be resumed with this token.", code="session_not_found"
        )

    async def ended(self, session: Session) -> None:
        """Waits until nothing is left of a session."""
        entry = self._sessions.get(session.id)
        if entry is not None:
            await asyncio.wait({entry[1]})

    async def close(self) -> None:
        """Ends all sessions and frees the ear."""
        self._closed = True
        closing = CloseAsked(Closing(1001, "the server is shutting down"))
        for session, _ in self._sessions.values():
            session.tell(closing)
        tasks = [task for _, task in self._sessions.values()]
        if tasks:
            await asyncio.wait(tasks)
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self._ear is not None:
            self._ear.close()

    def _ended(self, session: Session, task: asyncio.Task[None]) -> None:
        self._sessions.pop(session.id, None)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("Session %s raised.", session.id, exc_info=failure)


def _note_failure(loading: asyncio.Task[None]) -> None:
    """Whatever else a model's library raises: the server goes on without an ear, and says why."""
    if not loading.cancelled() and (fault := loading.exception()) is not None:
        logger.error("The server will not listen: its ear could not be loaded.", exc_info=fault)


def _load_ear(settings: Settings) -> Ear:
    # Only who listens pays for the libraries of the models.
    from app.ear.ear import Ear, EarFolders

    catalogue = Catalogue.installed(settings.cache_folder)
    folders = EarFolders(
        activity=locate(catalogue, settings.ear_activity_model),
        turn_end=locate(catalogue, settings.ear_turn_end_model),
        recognizer=locate(catalogue, settings.ear_recognizer_model),
    )
    return Ear(
        folders,
        hearing_threads=settings.ear_hearing_threads,
        recognizers=settings.ear_recognizers,
    )
