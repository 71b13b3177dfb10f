"""Turns: who runs now, who waits in line and who gave up, on the event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from engine.abort import MESSAGES, AbortReason
from engine.admission import WaitingLine
from engine.deploy_config import AdmissionDeployment
from engine.errors import (
    EngineClosedError,
    EngineOverloadedError,
    InvalidRequestError,
    StageError,
)
from engine.request import OmniRequest


@dataclass(slots=True)
class Ticket:
    """One request's place.

    Attributes:
        session: The session of the request, if it has one.
        turn: Set when it may run, or has to look why it may not.
        submitted: Whether the engine thread has it.
        aborted: Why it was ended while it waited; None: it was not.
    """

    session: str | None = None
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    submitted: bool = False
    aborted: AbortReason | None = None


class Turns:
    """The waiting line with its tickets."""

    def __init__(self, admission: AdmissionDeployment) -> None:
        """Starts with an empty line."""
        self._admission = admission
        self._line = WaitingLine(admission.max_running, admission.max_waiting)
        self.tickets: dict[str, Ticket] = {}
        self._newest: dict[str, str] = {}
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
        self._check(request)
        entered = self._line.enter(request.request_id, request.tenant)
        if entered is None:
            raise EngineOverloadedError(
                "Too many requests are running and waiting; try again later.",
                self._admission.retry_after,
            )
        return self._take_in(request, may_run=entered)

    def replace(self, request: OmniRequest) -> Ticket:
        """Takes a request in, in the place of its session's older one, if that is still here.

        The older one ends if it waits in line; one that runs has to be ended by the caller.

        Raises:
            EngineClosedError: Nobody is taken in any more.
            InvalidRequestError: The identifier is in use.
            EngineOverloadedError: There is no older one, and the line is full.
        """
        self._check(request)
        older = None if request.session is None else self._newest.get(request.session)
        if older is None:
            return self.enter(request)
        runs = self._line.hand_over(older, request.request_id)
        self._end(self.tickets[older], AbortReason.REPLACED)
        return self.enter(request) if runs is None else self._take_in(request, may_run=runs)

    def _check(self, request: OmniRequest) -> None:
        if self._closed:
            raise EngineClosedError
        if request.request_id in self.tickets:
            raise InvalidRequestError(
                "request_id", f"A request {request.request_id!r} is live already; use a new one."
            )

    def _take_in(self, request: OmniRequest, *, may_run: bool) -> Ticket:
        ticket = self.tickets[request.request_id] = Ticket(request.session)
        if request.session is not None:
            self._newest[request.session] = request.request_id
        if may_run:
            ticket.turn.set()
        return ticket

    def deadline(self, request: OmniRequest) -> float:
        """Seconds that a request may take, the wait included."""
        return self._admission.deadline if request.deadline is None else request.deadline

    async def wait(self, request: OmniRequest, ticket: Ticket) -> StageError | None:
        """Waits until the request may run.

        Returns:
            Why it may not: it was ended in line, or its deadline passed there; None if it may.

        Raises:
            EngineClosedError: The engine closed meanwhile.
        """
        try:
            async with asyncio.timeout(self.deadline(request)):
                await ticket.turn.wait()
        except TimeoutError:
            ticket.aborted = AbortReason.DEADLINE_EXCEEDED
        if self._closed:
            raise EngineClosedError
        reason = ticket.aborted
        return None if reason is None else StageError(reason.code, MESSAGES[reason])

    def leave(self, request_id: str) -> None:
        """Takes a request out and lets the next ones run; idempotent."""
        ticket = self.tickets.pop(request_id, None)
        session = None if ticket is None else ticket.session
        if session is not None and self._newest.get(session) == request_id:
            del self._newest[session]
        self._give_way(request_id)

    def abort(self, request_id: str, reason: AbortReason) -> None:
        """Ends a request that still waits; idempotent, and nothing to one that runs."""
        ticket = self.tickets.get(request_id)
        if ticket is not None and not ticket.submitted:
            self._end(ticket, reason)
            self._give_way(request_id)

    @staticmethod
    def _end(ticket: Ticket, reason: AbortReason) -> None:
        if not ticket.submitted:
            ticket.aborted = reason
            ticket.turn.set()

    def close(self) -> None:
        """Takes nobody in any more and wakes everyone who waits."""
        self._closed = True
        for ticket in self.tickets.values():
            ticket.turn.set()

    def _give_way(self, request_id: str) -> None:
        for admitted in self._line.leave(request_id):
            self.tickets[admitted].turn.set()
