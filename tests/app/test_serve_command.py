"""`antiphon serve` as a process: what it prints, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx
import psutil

BODY = {"model": "tts-1", "input": "one two three " * 50, "voice": "alloy"}


@dataclass
class Running:
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    printed_address: threading.Event = field(default_factory=threading.Event)
    began_to_load: threading.Event = field(default_factory=threading.Event)

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def base_url(self) -> str:
        found = re.search(r"The API is at (http://\S+)", self.text)
        assert found, self.text
        return found[1]

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if "Loading" in line:
                self.began_to_load.set()
            if "/v1/audio/speech" in line:
                self.printed_address.set()


@contextmanager
def _serve(*options: str, **environment: str) -> Generator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.app.humming_cli", "serve", *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", "ANTIPHON_SHUTDOWN_SECONDS": "1", **environment},
    )
    running = Running(process)
    reader = threading.Thread(target=running.read, daemon=True)
    reader.start()
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        reader.join(5)
        assert process.stderr is not None
        process.stderr.close()


def test_it_prints_the_address_and_a_line_that_works() -> None:
    with _serve("--port", "0") as running:
        assert running.printed_address.wait(60), running.text
        (line,) = [line for line in running.lines if line.strip().startswith("curl ")]
        assert running.base_url in line
        assert '"model": "hum"' in line
        assert '"voice": "low"' in line
        assert httpx.get(f"{running.base_url}/ready").status_code == 200


def test_an_idle_server_sleeps_and_knows_the_date() -> None:
    with _serve("--port", "0", ANTIPHON_EAR="false") as running:
        assert running.printed_address.wait(60), running.text
        process = psutil.Process(running.process.pid)
        assert parsedate_to_datetime(httpx.get(f"{running.base_url}/health").headers["date"])
        # What ends later than the request, on a busy machine, is over by one of the next looks.
        quiet = [_effort(process, seconds=2)]
        while len(quiet) < 5 and not _sleeps(quiet[-1]):
            quiet.append(_effort(process, seconds=2))
        assert _sleeps(quiet[-1]), quiet


def _effort(process: psutil.Process, seconds: float) -> tuple[float, int]:
    """What a process does in a time: CPU seconds, and wake-ups of its event loop."""
    before, waking = process.cpu_times(), process.num_ctx_switches().voluntary
    time.sleep(seconds)
    after, woken = process.cpu_times(), process.num_ctx_switches().voluntary
    return after.user + after.system - before.user - before.system, woken - waking


def _sleeps(effort: tuple[float, int]) -> bool:
    """Whether two seconds were quiet; the event loop's lag is measured twice a second."""
    return effort[0] <= 0.03 and effort[1] <= 10


def test_an_idle_server_ends_well_at_once() -> None:
    with _serve("--port", "0") as running:
        assert running.printed_address.wait(60), running.text
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0


def test_running_streams_may_end_within_the_limit() -> None:
    with _serve("--port", "0", HUMMING_PACE="0.005", ANTIPHON_SHUTDOWN_SECONDS="30") as running:
        assert running.printed_address.wait(60), running.text
        url = f"{running.base_url}/v1/audio/speech"
        with httpx.stream("POST", url, json=BODY) as response:
            parts = response.iter_raw()
            next(parts)
            running.process.send_signal(signal.SIGTERM)
            rest = b"".join(parts)
        assert len(rest) > 10_000
        assert running.process.wait(30) == 0


def test_streams_beyond_the_limit_are_broken_off_and_the_end_is_still_well() -> None:
    with _serve("--port", "0", HUMMING_PACE="0.2") as running:
        assert running.printed_address.wait(60), running.text
        url = f"{running.base_url}/v1/audio/speech"
        ended_properly = True
        with httpx.stream("POST", url, json=BODY) as response:
            parts = response.iter_raw()
            next(parts)
            running.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            try:
                for _ in parts:
                    pass
            except httpx.RemoteProtocolError:
                ended_properly = False
        assert not ended_properly
        assert running.process.wait(30) == 0
        assert time.monotonic() - began < 20


def test_a_start_that_cannot_be_stopped_does_not_hold_the_process() -> None:
    with _serve("--port", "0", HUMMING_STUCK="1") as running:
        assert running.began_to_load.wait(60), running.text
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0


def test_a_port_in_use_is_said_plainly() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with _serve("--port", str(port)) as running:
            assert running.process.wait(60) == 1
        assert f"Cannot listen on 127.0.0.1:{port}" in running.text
        assert "--port" in running.text, "what to do about it"


def test_a_wrong_setting_is_said_plainly() -> None:
    with _serve("--port", "0", ANTIPHON_CODEC_THREADS="none") as running:
        assert running.process.wait(60) == 2
    assert "ANTIPHON_CODEC_THREADS" in running.text
    assert "Traceback" not in running.text
