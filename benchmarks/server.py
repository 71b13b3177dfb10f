"""Starts a server and measures it: start, memory, idle CPU, first audio, load, disconnects, end.

    python -m benchmarks.server [--pipeline lark] [--clients 1,4,16,24] [--starts 3]

Everything runs on this machine, the clients beside the server, so the server's own CPU time is
read from its process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import httpx
import psutil

from app.load import SENTENCES, Summary, Utterance, load, summarise
from benchmarks.calls import Metrics

IDLE_SECONDS = 20.0
START_SECONDS = 600.0
DISCONNECTS = 500


@dataclass
class Server:
    """A running server.

    Attributes:
        url: Its address.
        process: Its process.
        start_seconds: From the command to `/ready`.
        end_seconds: From SIGTERM to the end of the process, once it has ended.
    """

    url: str
    process: psutil.Process
    start_seconds: float
    end_seconds: float = 0.0

    def cpu_seconds(self) -> float:
        """CPU time of the process so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def megabytes(self) -> float:
        """Resident memory of the process and those it started, in MiB."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(float(process.memory_info().rss) for process in family) / 2**20


@contextmanager
def running(
    pipeline: str, *options: str, environment: dict[str, str] | None = None
) -> Iterator[Server]:
    """Starts a server with further options, waits until it is ready and ends it.

    It compiles nothing ahead, which would take processors from what is measured.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    started = time.perf_counter()
    child = subprocess.Popen(
        [*command, "--pipeline", pipeline, *options],
        env={**os.environ, "ANTIPHON_COMPILE_AHEAD": "false", **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while not _ready(url):
            if child.poll() is not None:
                raise RuntimeError(f"The server ended with status {child.returncode}.")
            if time.perf_counter() - started > START_SECONDS:
                raise RuntimeError("The server did not become ready.")
            time.sleep(0.05)
        server = Server(url, psutil.Process(child.pid), time.perf_counter() - started)
        yield server
        ended = time.perf_counter()
        child.terminate()
        child.wait(60)
        server.end_seconds = time.perf_counter() - ended
    finally:
        child.kill()
        child.wait()


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5).is_success
    except httpx.TransportError:
        return False


def idle_cpu(server: Server) -> float:
    """Share of one core that the idle server takes."""
    before = server.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    return (server.cpu_seconds() - before) / IDLE_SECONDS


def under_load(server: Server, clients: int, rounds: int) -> tuple[Summary, float]:
    """A load's figures and the server's CPU seconds for each second of audio."""
    before, started = server.cpu_seconds(), time.perf_counter()
    utterances: list[Utterance] = asyncio.run(load(server.url, clients, rounds, "alloy", None))
    elapsed = time.perf_counter() - started
    audio = sum(utterance.audio for utterance in utterances)
    return summarise(clients, utterances, elapsed), (server.cpu_seconds() - before) / audio


async def disconnect(url: str, count: int, at_once: int) -> None:
    """Opens streams and leaves each after its first bytes."""
    limit = asyncio.Semaphore(at_once)
    body = {"model": "tts-1", "voice": "alloy", "input": " ".join(SENTENCES)}

    async def leave(client: httpx.AsyncClient) -> None:
        async with limit, client.stream("POST", "/v1/audio/speech", json=body) as response:
            async for _ in response.aiter_raw():
                return

    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        await asyncio.gather(*[leave(client) for _ in range(count)])


def gauges(url: str) -> dict[str, float]:
    """The gauges that must return to zero."""
    wanted = ("antiphon_requests_", "antiphon_edges_open", "antiphon_credits_in_use")
    return {
        name: value
        for name, value in Metrics(url).samples.items()
        if name.startswith(wanted) and "{" not in name and "finished" not in name
    }


def storm(server: Server) -> dict[str, object]:
    """Many disconnects in mid-stream: what is left, and how much memory grew, in percent."""
    asyncio.run(disconnect(server.url, 50, 16))
    before = server.megabytes()
    asyncio.run(disconnect(server.url, DISCONNECTS, 16))
    time.sleep(1)
    return {
        "left": {name: value for name, value in gauges(server.url).items() if value},
        "memory growth %": round(100 * (server.megabytes() / before - 1), 2),
    }


def main() -> None:
    """Runs all measurements and prints them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipeline", default="lark")
    parser.add_argument("--clients", default="1,4,8,12,16,24")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--starts", type=int, default=2, help="starts before the measured server")
    options = parser.parse_args()
    for _ in range(options.starts):
        with running(options.pipeline) as server:
            taken = server.cpu_seconds()
        print(
            f"start to ready: {server.start_seconds:.1f} s ({taken:.1f} s of CPU), "
            f"SIGTERM to end: {server.end_seconds:.1f} s",
            flush=True,
        )
    with running(options.pipeline) as server:
        print(f"start to ready: {server.start_seconds:.1f} s, memory {server.megabytes():.0f} MiB")
        print(f"idle CPU: {100 * idle_cpu(server):.2f} % of a core", flush=True)
        for clients in (int(part) for part in options.clients.split(",")):
            summary, cpu = under_load(server, clients, options.rounds)
            figures = {key: round(value, 3) for key, value in asdict(summary).items()}
            print(json.dumps({**figures, "cpu_per_audio_second": round(cpu, 3)}), flush=True)
        print(f"after load: memory {server.megabytes():.0f} MiB")
        print(json.dumps({"after 500 disconnects": storm(server)}))
    print(f"SIGTERM to end: {server.end_seconds:.1f} s")


if __name__ == "__main__":
    main()
