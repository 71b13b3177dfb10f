"""Step time of the Talker's engine core against bare eager torch running the same modules.

    python -m benchmarks.step_time [--json]

Both run in one process, turn about, so that a noisy machine disturbs both alike, and the time is
the thread's own, not the clock's: both run on one thread, and what others take of the core is not
theirs. The bare run does what the step must do (embed, transform with a KV cache, sample greedily,
predict the codes) and none of the engine's bookkeeping; its attention is torch's own over a cache
of equal length. The engine runs compiled, then not compiled.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from app.settings import Settings, prepare_process_environment

prepare_process_environment(Settings())

import numpy as np  # noqa: E402 - torch reads the environment when it is imported
import torch  # noqa: E402

from engine import SpeechParameters  # noqa: E402
from engine.adapter import FeedRows  # noqa: E402
from engine.autoregressive import AutoregressiveReplica  # noqa: E402
from engine.deploy_config import load_deploy_config  # noqa: E402
from pipelines.lark.pipeline import PIPELINE, WEIGHTS, build_talker  # noqa: E402
from recipes.lark.speak import load_talker  # noqa: E402

STEPS = 120


@dataclass(frozen=True)
class Figures:
    """Median step times in milliseconds at one batch size."""

    compiled: bool
    batch: int
    engine: float
    bare: float

    @property
    def ratio(self) -> float:
        """The engine's step divided by the bare one."""
        return self.engine / self.bare


def random_rows(count: int) -> FeedRows:
    """Rows of random phonemes."""
    values = np.random.default_rng(0).integers(1, 178, (count, 6))
    values[:, 0] = 0
    return FeedRows(values, tuple(range(count)))


def engine_steps(replica: AutoregressiveReplica, batch: int) -> list[float]:
    """Times of steps in which every request of the batch takes part, in seconds."""
    rows = random_rows(STEPS)
    for index in range(batch):
        replica.add(str(index), SpeechParameters())
        replica.offer(str(index), rows)
        replica.close_input(str(index))
    times = []
    while replica.requests:
        started = time.thread_time()
        replica.step({})
        times.append(time.thread_time() - started)
    replica.step({})
    return times[5:]


def bare_steps(batch: int) -> list[float]:
    """Times of the reference model's steps at the same batch size, in seconds."""
    from benchmarks.bare_talker import BareTalker

    talker = BareTalker(load_talker(WEIGHTS), batch)
    rows = torch.from_numpy(random_rows(STEPS).values[:, 1:])
    times = []
    with torch.inference_mode():
        for step in range(STEPS):
            started = time.thread_time()
            talker.step(rows[step].expand(batch, -1))
            times.append(time.thread_time() - started)
    return times[5:]


def measure(compiled: bool) -> list[Figures]:
    """The figures at batch sizes 1 and 16."""
    deployment = load_deploy_config(PIPELINE.deploy, ["talker", "code2wav"]).stage("talker")
    chosen = {"compile": "always" if compiled else "never"}
    replica = build_talker(Path(WEIGHTS), deployment.model_copy(update=chosen))
    assert isinstance(replica, AutoregressiveReplica)
    engine_steps(replica, 2)
    figures = []
    for batch in (1, 16):
        rounds = [(engine_steps(replica, batch), bare_steps(batch)) for _ in range(3)]
        engine = statistics.median(t for times, _ in rounds for t in times) * 1000
        bare = statistics.median(t for _, times in rounds for t in times) * 1000
        figures.append(Figures(compiled, batch, engine, bare))
    replica.close()
    return figures


def main() -> None:
    """Measures and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for row in measure(compiled=True) + measure(compiled=False):
        if options.json:
            print(json.dumps({**row.__dict__, "ratio": row.ratio}))
            continue
        print(
            f"{'compiled' if row.compiled else 'not compiled'}, batch {row.batch:2d}: "
            f"engine {row.engine:.2f} ms, bare torch {row.bare:.2f} ms, ratio {row.ratio:.2f}"
        )


if __name__ == "__main__":
    main()
