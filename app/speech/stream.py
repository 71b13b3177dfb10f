"""One spoken request as a stream of encoded pieces."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

from app.audio.worker import StreamEncoder
from app.engine_port import SpeechEngine
from app.errors import ApiError, from_engine_error, from_stage_error, internal_error
from app.metrics import Outcome
from app.timeline import RequestRecord
from engine import (
    AbortReason,
    AudioPayload,
    Chunk,
    EngineError,
    OmniRequest,
    WordTiming,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """What came of one chunk.

    Attributes:
        data: Encoded bytes that follow those of the piece before; may be empty.
        words: Words whose sound begins in the chunk.
        seconds: Duration of the chunk's audio.
    """

    data: bytes
    words: tuple[WordTiming, ...] = ()
    seconds: float = 0.0


class SpeechFailedError(Exception):
    """The request ended without being spoken to its end.

    Attributes:
        error: What the client is told.
        outcome: How it is counted.
    """

    def __init__(self, error: ApiError, outcome: Outcome) -> None:
        """Wraps what the client is told."""
        super().__init__(error.message)
        self.error = error
        self.outcome = outcome


class SpokenStream:
    """Speaks one request.

    Attributes:
        seconds: Duration of the audio that was made so far.
    """

    def __init__(
        self,
        engine: SpeechEngine,
        request: OmniRequest,
        encoder: StreamEncoder,
        record: RequestRecord,
        *,
        may_be_silent: bool = False,
    ) -> None:
        """Nothing happens before the pieces are asked for.

        Args:
            engine: Who speaks.
            request: What to speak.
            encoder: What makes bytes of it.
            record: Where the time that takes is noted.
            may_be_silent: Whether no sound at all is a good end too, as for a text that was
                ended before anything was written.
        """
        self.seconds = 0.0
        self._engine = engine
        self._request = request
        self._encoder = encoder
        self._record = record
        self._may_be_silent = may_be_silent

    @property
    def kept(self) -> int:
        """Encoded bytes that come with the last piece only."""
        return self._encoder.kept

    async def pieces(self) -> AsyncGenerator[Piece]:
        """Yields the pieces in order; closing the generator aborts the request.

        The engine makes the next chunk only when it is asked for, within the edge's capacity: a
        consumer that waits makes the engine wait.

        Raises:
            SpeechFailedError: The engine refused the request or failed while speaking.
        """
        try:
            async with aclosing(self._engine.generate(self._request)) as chunks:
                async for chunk in chunks:
                    yield await self._encode(chunk)
                    if chunk.final:
                        break
                else:
                    raise RuntimeError("The engine's stream ended without a final chunk.")
            if self.seconds == 0.0 and not self._may_be_silent:
                raise SpeechFailedError(_no_sound(), Outcome.FAILED)
            with self._record.encoding():
                rest = await self._encoder.finish()
            yield Piece(rest)
        except EngineError as failure:
            raise SpeechFailedError(
                from_engine_error(failure), Outcome.of_error(failure.error.code)
            ) from failure
        except (SpeechFailedError, GeneratorExit):
            raise
        except Exception as failure:
            logger.exception("Request %s failed.", self._request.request_id)
            raise SpeechFailedError(internal_error(), Outcome.FAILED) from failure
        finally:
            self._encoder.discard()

    async def give_up(self) -> None:
        """Ends the request in the engine, since its client is too slow."""
        await self._engine.abort(self._request.request_id, AbortReason.SLOW_CLIENT)

    async def _encode(self, chunk: Chunk[AudioPayload]) -> Piece:
        if chunk.error is not None:
            raise SpeechFailedError(
                from_stage_error(chunk.error), Outcome.of_error(chunk.error.code)
            )
        payload = chunk.payload
        if payload is None:
            return Piece(b"")
        with self._record.encoding():
            data = await self._encoder.encode(payload.samples)
        self.seconds += payload.seconds
        return Piece(data, payload.words, payload.seconds)


def _no_sound() -> ApiError:
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "The voice made no sound of this input.", code="no_audio"
    )
