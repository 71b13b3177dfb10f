"""Turns: who runs now, who waits in line and who gave up, on the event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from engine.admission import WaitingLine
from engine.deploy_config import AdmissionDeployment
from engine.errors import EngineClosedError, EngineOverloadedError, InvalidRequestError
from engine.request import OmniRequest


@dataclass(slots=True)
class Ticket:
    """One request's place.

    Attributes:
        turn: Set when it may run, or has to look why it may not.
        submitted: Whether the engine thread has it.
        aborted: Whether it was ended while it waited.
    """

    turn: asyncio.Event = field(default_factory=asyncio.Event)
    submitted: bool = False
    aborted: bool = False


class Turns:
    """The waiting line with its tickets."""

    def __init__(self, admission: AdmissionDeployment) -> None:
        """Starts with an empty line."""
        self._admission = admission
        self._line = WaitingLine(admission.max_running, admission.max_waiting)
        self.tickets: dict[str, Ticket] = {}
        self._closed = False

    @property
    def running(self) -> int:
        """How many requests run."""
        return self._line.running

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._line.waiting

    def enter(self, request: OmniRequest) -> Ticket:
        """Takes a request in.

        Raises:
            EngineClosedError: Nobody is taken in any more.
            InvalidRequestError: The identifier is in use.
            EngineOverloadedError: The line is full.
        """
        if self._closed:
            raise EngineClosedError
        if request.request_id in self.tickets:
            raise InvalidRequestError(
                "request_id", f"A request {request.request_id!r} is live already; use a new one."
            )
        entered = self._line.enter(request.request_id, request.tenant)
        if entered is None:
            raise EngineOverloadedError(
                "Too many requests are running and waiting; try again later.",
                self._admission.retry_after,
            )
        ticket = self.tickets[request.request_id] = Ticket()
        if entered:
            ticket.turn.set()
        return ticket

    def deadline(self, request: OmniRequest) -> float:
        """Seconds that a request may take, the wait included."""
        return self._admission.deadline if request.deadline is None else request.deadline

    async def wait(self, request: OmniRequest, ticket: Ticket) -> None:
        """Waits until the request may run, or was aborted in line.

        Raises:
            EngineOverloadedError: Its deadline passed.
            EngineClosedError: The engine closed meanwhile.
        """
        try:
            async with asyncio.timeout(self.deadline(request)):
                await ticket.turn.wait()
        except TimeoutError:
            raise EngineOverloadedError(
                "The request's deadline passed while it waited for its turn.",
                self._admission.retry_after,
            ) from None
        if self._closed:
            raise EngineClosedError

    def leave(self, request_id: str) -> None:
        """Takes a request out and lets the next ones run; idempotent."""
        self.tickets.pop(request_id, None)
        self._give_way(request_id)

    def abort(self, request_id: str) -> None:
        """Ends a request that still waits; idempotent, and nothing to one that runs."""
        ticket = self.tickets.get(request_id)
        if ticket is not None and not ticket.submitted:
            ticket.aborted = True
            ticket.turn.set()
            self._give_way(request_id)

    def close(self) -> None:
        """Takes nobody in any more and wakes everyone who waits."""
        self._closed = True
        for ticket in self.tickets.values():
            ticket.turn.set()

    def _give_way(self, request_id: str) -> None:
        for admitted in self._line.leave(request_id):
            self.tickets[admitted].turn.set()
