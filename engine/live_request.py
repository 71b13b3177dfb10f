"""The cross-stage state of one live request, kept by the Orchestrator on the engine thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.adapter import Adapter, IdentityAdapter
from engine.chunk import AudioPayload, Chunk, TextPayload
from engine.connector import EdgeKey, OmniConnector
from engine.errors import ErrorCode, StageError
from engine.listener import Listener
from engine.pipeline_config import CLIENT, EdgeConfig, Models, PipelineConfig
from engine.request import SpeechParameters
from engine.stage import Replica
from engine.timeline import RequestTimes, StageTimes
from engine.transfer import ChunkTransferAdapter


@dataclass(slots=True)
class Intake:
    """The consuming end of an edge: what arrives, its conversion, and whether it has ended.

    Attributes:
        transfer: The edge.
        adapter: The conversion of what arrives.
        times: The times of the stage behind it.
        closed: Whether the stage has all its input.
        hurried: Whether the adapter was told to hold nothing back since something arrived.
        sent: When each chunk that is under way was sent, the oldest first.
    """

    transfer: ChunkTransferAdapter
    adapter: Adapter
    times: StageTimes
    closed: bool = False
    hurried: bool = False
    sent: deque[float] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Submission:
    """A request as the event loop hands it to the engine thread.

    Attributes:
        request_id: Its identifier.
        session: The duplex session it belongs to, if any.
        route: The pipeline's way for it.
        parameters: How to speak.
        started: When it was submitted, on the monotonic clock.
        deadline_at: When it is ended, on the monotonic clock.
        on_chunk: Called on the engine thread when the client has something to take.
        on_text_consumed: Called on the engine thread with the characters that were read.
        times: Where its time goes.
    """

    request_id: str
    session: str | None
    route: str
    parameters: SpeechParameters
    started: float
    deadline_at: float
    on_chunk: Callable[[], None]
    on_text_consumed: Callable[[int], None]
    times: RequestTimes


@dataclass(slots=True)
class LiveRequest:
    """One request between submission and its end.

    Attributes:
        submission: What was asked.
        epoch: The generation number of its session's output.
        intakes: By stage, the end of the edge into it.
        outputs: By stage, the beginnings of the edges out of it.
        client: The edges that end at the client.
        entry: The edge that brings the client's input.
        listener: The simulated player.
        unfinished: Stages that have not ended yet.
    """

    submission: Submission
    epoch: int
    intakes: dict[str, Intake]
    outputs: dict[str, list[ChunkTransferAdapter]]
    client: list[ChunkTransferAdapter]
    entry: ChunkTransferAdapter
    listener: Listener
    unfinished: set[str]

    @property
    def request_id(self) -> str:
        """The request's identifier."""
        return self.submission.request_id

    @property
    def times(self) -> RequestTimes:
        """Where its time goes."""
        return self.submission.times

    def add_input(self, payloads: Sequence[Any], closed: bool, now: float) -> None:
        """Takes input of the client in."""
        stage = self.entry.key.target
        for payload in payloads:
            self._send(self.entry, stage, payload, now)
        if closed:
            self._send(self.entry, stage, None, now, final=True)

    def _send(
        self,
        transfer: ChunkTransferAdapter,
        stage: str,
        payload: Any | None,
        now: float,
        *,
        final: bool = False,
    ) -> None:
        transfer.send(payload, final=final)
        intake = self.intakes.get(stage)
        if intake is not None:
            intake.sent.append(now)

    def pump(self, stage: str, replica: Replica, now: float) -> None:
        """Moves what has arrived for a stage into its replica, as far as it wants input."""
        intake = self.intakes[stage]
        while not intake.closed and replica.wants_input(self.request_id):
            payload = intake.adapter.pull()
            if payload is not None:
                replica.offer(self.request_id, payload)
                intake.times.offer(now)
            elif intake.adapter.finished:
                intake.closed = True
                replica.close_input(self.request_id)
            elif not self._receive(intake, now):
                return

    def _receive(self, intake: Intake, now: float) -> bool:
        chunk = self._take(intake, now)
        if chunk is None:
            return False
        intake.hurried = False
        if chunk.payload is not None:
            intake.adapter.push(chunk.payload)
        if chunk.final:
            intake.adapter.close()
        return True

    def _take(self, intake: Intake, now: float) -> Chunk[Any] | None:
        chunk = intake.transfer.receive()
        if chunk is None:
            return None
        if intake.sent:
            intake.times.take(intake.sent.popleft(), now)
        if intake.transfer is self.entry and isinstance(chunk.payload, TextPayload):
            self.submission.on_text_consumed(len(chunk.payload.text))
        return chunk

    def drop_unwanted(self, now: float) -> None:
        """Takes what still arrives for stages that have ended, and drops it.

        A Talker may end before its text does; whoever writes that text must not wait for it.
        """
        for stage, intake in self.intakes.items():
            if stage not in self.unfinished:
                while self._take(intake, now) is not None:
                    pass

    def has_credit(self, stage: str) -> bool:
        """Whether every edge out of a stage can take one more chunk."""
        return all([transfer.check_credit() for transfer in self.outputs[stage]])

    def hurry(self) -> bool:
        """Tells every adapter that waits for input to hold nothing back; False: none waits.

        A request that waits for credit is not short of input: it is left alone.
        """
        if not all(self.has_credit(stage) for stage in self.unfinished):
            return False
        waiting = [i for i in self.intakes.values() if not i.closed and not i.hurried]
        for intake in waiting:
            intake.hurried = True
            intake.adapter.hurry()
        return bool(waiting)

    def deliver(self, stage: str, payload: Any | None, final: bool, now: float) -> None:
        """Sends a stage's output on its way along every edge out of it."""
        if payload is not None and self.times.stages[stage].first_output is None:
            self.times.stages[stage].first_output = now
        if final:
            self.unfinished.discard(stage)
        for transfer in self.outputs[stage]:
            target = transfer.key.target
            if target == CLIENT:
                if isinstance(payload, AudioPayload):
                    self._note_audio(payload, now)
                if not self.unfinished:
                    # Before the last chunk is there to be read: who has read it may look.
                    self.end(now, None)
            self._send(transfer, target, payload, now, final=final)
            if target == CLIENT:
                self.submission.on_chunk()

    def _note_audio(self, payload: AudioPayload, now: float) -> None:
        listener, times = self.listener, self.times
        listener.deliver(payload.seconds, now)
        times.first_audio = listener.first_audio
        times.audio_seconds = listener.delivered
        times.underruns, times.silence = listener.underruns, listener.silence

    def end(self, now: float, code: ErrorCode | None) -> None:
        """Notes when and how it ended; only the first end counts."""
        if self.times.ended is None:
            self.times.ended = now
            self.times.error = code

    def fail(self, error: StageError) -> None:
        """Ends every edge to the client at once with the error."""
        for transfer in self.client:
            transfer.fail(error)
        self.submission.on_chunk()

    def release(self) -> None:
        """Frees every edge inside the engine; the client frees its own when it has read it."""
        for intake in self.intakes.values():
            intake.transfer.release()
        # A session keeps its last request for the fence; it need not keep the conversions.
        self.intakes.clear()

    def in_flight_of(self, stage: str) -> int:
        """What a stage made and nobody took yet, in the units of its edges."""
        return sum(transfer.in_flight for transfer in self.outputs.get(stage, ()))

    @property
    def credits_in_use(self) -> int:
        """The sum of what is in flight on all its edges."""
        edges = [intake.transfer for intake in self.intakes.values()] + self.client
        return sum(transfer.in_flight for transfer in edges)


def open_request(
    pipeline: PipelineConfig,
    models: Models,
    connector: OmniConnector,
    submission: Submission,
    epoch: int,
    now: float,
) -> LiveRequest:
    """Opens a request's edges and adapters; where an adapter raises, no edge is left open."""
    stages = pipeline.stages_of(submission.route)
    edges = pipeline.edges_of(submission.route)
    adapters: dict[str, Adapter] = {}
    for edge in edges:
        if edge.target != CLIENT:
            make = edge.adapter
            adapters[edge.target] = (
                IdentityAdapter() if make is None else make(models, submission.parameters)
            )
    times = submission.times
    times.opened = now
    times.stages = {stage: StageTimes() for stage in stages}
    intakes: dict[str, Intake] = {}
    outputs: dict[str, list[ChunkTransferAdapter]] = {stage: [] for stage in stages}
    client: list[ChunkTransferAdapter] = []
    for edge in edges:
        transfer = _open_edge(edge, connector, submission.request_id, epoch)
        if edge.source != CLIENT:
            outputs[edge.source].append(transfer)
        if edge.target == CLIENT:
            client.append(transfer)
        else:
            stage = edge.target
            intakes[stage] = Intake(transfer, adapters[stage], times.stages[stage])
    entry = next(i.transfer for i in intakes.values() if i.transfer.key.source == CLIENT)
    return LiveRequest(
        submission=submission,
        epoch=epoch,
        intakes=intakes,
        outputs=outputs,
        client=client,
        entry=entry,
        listener=Listener(submission.started),
        unfinished=set(stages),
    )


def _open_edge(
    edge: EdgeConfig, connector: OmniConnector, request_id: str, epoch: int
) -> ChunkTransferAdapter:
    key = EdgeKey(request_id, epoch, edge.source, edge.target)
    return ChunkTransferAdapter(
        connector, key, edge.capacity, edge.reserve, edge.cost, carries=edge.carries
    )
