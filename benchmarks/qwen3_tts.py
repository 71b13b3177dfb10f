"""Measures the pipeline `qwen3_tts` on a tiny checkpoint of the real architecture.

    python -m benchmarks.qwen3_tts [--clients 1,4,16] [--steps-only] [--compile]

The checkpoint has random weights: a Talker of 6 layers of 256, 16 codebooks, a code predictor of
2 layers and a small decoder. Its responses end after 6 seconds of sound. The server runs as a
process of its own, the clients beside it. The step is compared with bare eager torch doing the
same in the same process, turn about, so that a noisy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from app.settings import Settings, prepare_process_environment

prepare_process_environment(Settings())

import numpy as np  # noqa: E402 - torch reads the environment when it is imported
import torch  # noqa: E402
import yaml  # noqa: E402

from benchmarks.bare_qwen3_tts import BareQwen3TTS  # noqa: E402
from benchmarks.server import idle_cpu, running, under_load  # noqa: E402
from engine import SpeechParameters  # noqa: E402
from engine.autoregressive import AutoregressiveReplica  # noqa: E402
from engine.deploy_config import StageDeployment  # noqa: E402
from engine.step_sampling import StepSampling  # noqa: E402
from pipelines.qwen3_tts.configuration import read_checkpoint  # noqa: E402
from pipelines.qwen3_tts.pipeline import FOLDER, build_talker  # noqa: E402
from pipelines.qwen3_tts.rows import RowMaker, TextTrack  # noqa: E402

FRAMES = 75
"""Frames of a response: 6 seconds."""

STEPS = 60


def make_checkpoint(folder: Path) -> Path:
    """Has the checkpoint written, by a process of its own, and its responses limited."""
    module = [sys.executable, "-m", "tests.checkpoints.qwen3_tts", str(folder)]
    subprocess.run(
        [*module, "custom_voice", "benchmark"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_new_tokens": FRAMES}))
    return folder


def engine_steps(folder: Path, replica: AutoregressiveReplica, batch: int) -> list[float]:
    """Times of steps in which every request of the batch takes part, in seconds."""
    checkpoint = read_checkpoint(folder)
    maker = RowMaker(checkpoint)
    for index in range(batch):
        prefix = maker.prefix((1, 2, 3), (), None, next(iter(checkpoint.speakers.values())))
        rows = TextTrack(maker, prefix, None, False).take([5, 6, 7, 8], closed=True)
        assert rows is not None
        replica.add(str(index), SpeechParameters())
        replica.offer(str(index), rows)
        replica.close_input(str(index))
    times = []
    while replica.requests:
        started = time.perf_counter()
        replica.step({})
        times.append(time.perf_counter() - started)
    replica.step({})
    return times[5:]


def bare_steps(folder: Path, batch: int) -> list[float]:
    """Times of bare steps at the same batch size, in seconds."""
    bare = BareQwen3TTS(folder, batch, STEPS + 16)
    bare.filled = 10
    text = torch.full((batch,), 5)
    times = []
    with torch.inference_mode():
        for _ in range(STEPS):
            started = time.perf_counter()
            bare.step(text)
            times.append(time.perf_counter() - started)
    return times[5:]


def step_figures(folder: Path, compiled: bool) -> list[dict[str, float]]:
    """Median step times in milliseconds, and their ratio, at batch sizes 1 and 16."""
    deployment = StageDeployment(
        compile="always" if compiled else "never", max_requests=16, max_steps=512
    )
    replica = build_talker(folder, deployment)
    assert isinstance(replica, AutoregressiveReplica)
    sampling = StepSampling(minimum_steps=STEPS, maximum_steps=STEPS)
    replica.sampling_of = lambda parameters: sampling
    engine_steps(folder, replica, 2)
    figures = []
    for batch in (1, 16):
        rounds = [
            (engine_steps(folder, replica, batch), bare_steps(folder, batch)) for _ in range(3)
        ]
        engine, bare = (
            1000 * statistics.median(np.concatenate([part[side] for part in rounds]))
            for side in (0, 1)
        )
        figures.append({"batch": batch, "engine": engine, "bare": bare, "ratio": engine / bare})
    return figures


def deployment_of(folder: Path, compiled: bool) -> Path:
    """The default deployment with the Talker compiled or not, whatever was compiled before."""
    values = yaml.safe_load((FOLDER / "deploy.yaml").read_text())
    values["stages"]["talker"]["compile"] = "always" if compiled else "never"
    path = folder / "deploy.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def server_figures(folder: Path, clients: list[int], compiled: bool) -> None:
    """Prints what a served checkpoint takes and gives."""
    deploy = deployment_of(folder, compiled)
    with running("qwen3_tts", "--model", str(folder), "--deploy", str(deploy)) as server:
        idle = {
            "start s": round(server.start_seconds, 2),
            "MiB": round(server.megabytes(), 1),
            "idle CPU %": round(100 * idle_cpu(server), 3),
        }
        print(json.dumps(idle), flush=True)
        under_load(server, 1, 1)
        for count in clients:
            summary, cpu = under_load(server, count, 2)
            print(json.dumps({**asdict(summary), "cpu per audio s": round(cpu, 4)}), flush=True)
        print(json.dumps({"MiB after load": round(server.megabytes(), 1)}), flush=True)


def main() -> None:
    """Runs the measurements and prints them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = make_checkpoint(Path(temporary) / "checkpoint")
        if not options.steps_only:
            clients = [int(count) for count in options.clients.split(",")]
            server_figures(folder, clients, options.compile)
        for row in step_figures(folder, options.compile):
            print(json.dumps({name: round(value, 3) for name, value in row.items()}), flush=True)


if __name__ == "__main__":
    main()
