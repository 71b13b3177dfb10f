"""Graphs that do again what was recorded, on the same tensors: for tests without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Repeat:
    """Does again what was recorded, and counts."""

    run: Callable[[], object]
    replays: int = 0

    def replay(self) -> None:
        """Does it."""
        self.replays += 1
        self.run()


@dataclass
class RepeatRecorder:
    """Records what runs."""

    graphs: list[Repeat] = field(default_factory=list)

    def record(self, run: Callable[[], object]) -> Repeat:
        """Runs it once, as a capture's warm-up does."""
        run()
        self.graphs.append(Repeat(run))
        return self.graphs[-1]

    @property
    def replays(self) -> list[int]:
        """How often each graph was replayed, in the order of recording."""
        return [graph.replays for graph in self.graphs]
