"""A host: one engine thread that steps its stages in turn.

vLLM's forward context and current configuration are global to the process, so everything that
computes runs on this one thread. Others talk to it by posting calls; it sleeps while there is
nothing to do and nothing is due.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from math import inf
from typing import TypeVar

from engine.encoding_ahead import EncodingAhead
from engine.orchestrator import Orchestrator

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Host:
    """The engine thread and its inbox."""

    def __init__(self, name: str) -> None:
        """Makes a host that is not running yet."""
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._closing = False
        self._stopped = threading.Event()
        self._orchestrator: Orchestrator | None = None
        self._ahead: EncodingAhead | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def adopt(self, orchestrator: Orchestrator, ahead: EncodingAhead) -> None:
        """Gives the thread its work; call through `call`, on the thread itself.

        Args:
            orchestrator: Says which stage works next.
            ahead: What may be done between steps.
        """
        self._orchestrator = orchestrator
        self._ahead = ahead

    @property
    def alive(self) -> bool:
        """Whether the thread works and goes on working."""
        return self._thread.is_alive() and not self._closing

    def post(self, action: Callable[[], None]) -> None:
        """Runs an action on the thread, before its next step; from any thread."""
        self._inbox.put(action)
        if self._stopped.is_set():
            self._drain()

    def call(self, action: Callable[[], Result]) -> Future[Result]:
        """Runs an action on the thread and gives its result.

        The action runs even if its future was cancelled before: the caller may have stopped
        waiting, but what it asked for (an abort, say) still holds.
        """
        future: Future[Result] = Future()

        def run() -> None:
            wanted = future.set_running_or_notify_cancel()
            try:
                result = action()
            # Whatever the action raised belongs to the caller, who asked for the result.
            except BaseException as error:
                if wanted:
                    future.set_exception(error)
                return
            if wanted:
                future.set_result(result)

        self.post(run)
        return future

    def close(self, timeout: float) -> None:
        """Ends the thread after its current step and waits for it; idempotent."""
        self.post(self._stop)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _stop(self) -> None:
        self._closing = True

    def _run(self) -> None:
        try:
            while not self._closing:
                self._turn()
        finally:
            self._closing = True
            try:
                if self._orchestrator is not None:
                    self._orchestrator.close()
                if self._ahead is not None:
                    self._ahead.close()
            finally:
                self._stopped.set()
                # What was posted last is still run, so that nobody waits for it for ever.
                self._drain()

    def _turn(self) -> None:
        """Does what was posted, then one step of the most urgent stage, or sleeps."""
        self._drain()
        if self._closing:
            return
        orchestrator, ahead = self._orchestrator, self._ahead
        if orchestrator is None or ahead is None:
            self._inbox.get()()
            return
        orchestrator.pump()
        choice = orchestrator.choose()
        encoded = ahead.step(inf if choice is None else choice.urgency)
        if choice is not None:
            orchestrator.execute(choice)
        elif encoded or orchestrator.relieve():
            return
        now = orchestrator.clock()
        deadline = orchestrator.next_deadline()
        if deadline is not None and deadline <= now:
            orchestrator.expire(now)
        elif choice is None:
            self._sleep(None if deadline is None else deadline - now)

    def _drain(self) -> None:
        while True:
            try:
                action = self._inbox.get_nowait()
            except queue.Empty:
                return
            action()

    def _sleep(self, seconds: float | None) -> None:
        try:
            self._inbox.get(timeout=seconds)()
        except queue.Empty:
            return
