"""The waiting line: bounded, with fair turns for each tenant (pure logic).

A tenant's requests are served in their order; between tenants turns go round, so that one that
sends many does not keep the others out.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class WaitingLine:
    """Who may run and who waits.

    Attributes:
        maximum_running: The most requests that run at once.
        maximum_waiting: The most requests that wait.
    """

    maximum_running: int
    maximum_waiting: int
    _running: set[str] = field(default_factory=set)
    _waiting: OrderedDict[str, deque[str]] = field(default_factory=OrderedDict)
    _tenants: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> int:
        """How many run."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._tenants)

    def enter(self, request: str, tenant: str) -> bool | None:
        """Takes a request in.

        Returns:
            True: it runs at once. False: it waits. None: the line is full.
        """
        if self.running < self.maximum_running and not self._tenants:
            self._running.add(request)
            return True
        if self.waiting >= self.maximum_waiting:
            return None
        self._waiting.setdefault(tenant, deque()).append(request)
        self._tenants[request] = tenant
        return False

    def hand_over(self, older: str, newer: str) -> bool | None:
        """Puts a request in the place of another one, which is out with that.

        Returns:
            True: the newer runs at once. False: it waits where the older did. None: the older
            one has no place.
        """
        if older in self._running:
            self._running.remove(older)
            self._running.add(newer)
            return True
        tenant = self._tenants.pop(older, None)
        if tenant is None:
            return None
        line = self._waiting[tenant]
        line[line.index(older)] = newer
        self._tenants[newer] = tenant
        return False

    def leave(self, request: str) -> list[str]:
        """Takes a request out, wherever it is; idempotent.

        Returns:
            Requests whose turn it is now; they count as running.
        """
        self._running.discard(request)
        tenant = self._tenants.pop(request, None)
        if tenant is not None:
            self._waiting[tenant].remove(request)
            if not self._waiting[tenant]:
                del self._waiting[tenant]
        admitted = []
        while self._tenants and self.running < self.maximum_running:
            admitted.append(self._next_turn())
        return admitted

    def _next_turn(self) -> str:
        tenant, line = next(iter(self._waiting.items()))
        request = line.popleft()
        del self._tenants[request]
        if line:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        self._running.add(request)
        return request
