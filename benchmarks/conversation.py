"""Measures conversations on a server: latency and its parts, interruptions, underruns, memory.

    python -m benchmarks.conversation [http://127.0.0.1:8000]
        [--turns 20] [--interruptions 500] [--conversations 8] [--rounds 3] [--sessions 200]

Without an address it starts a server of its own. A part with 0 is left out. Says:

* turns: from the decided end of a spoken turn to its words and to the first sound of its answer,
  and what share in that the ear, the waiting line, each stage and the way to the client have;
* interruptions at random moments, before and while the answer is heard: as the server counts it,
  from the arrival of the sound that makes the interruption to the last sound of the old answer; as
  the client sees it, from the beginning of the speech to `speech_started`, of which 400 ms are
  the speech that it takes to interrupt an answer that is heard (ANTIPHON_EAR_INTERRUPTION_MS); and
  stale bytes, which is sound that comes after `speech_started`;
* conversations at once: whether players that begin with 100 ms of sound run dry;
* sessions one after the other: what they leave in the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from base64 import b64decode
from dataclasses import dataclass, field

from app.load import Player, percentile
from benchmarks.calls import SOUND, Caller, Metrics, calling
from benchmarks.server import running
from tests.voices import pcm, silence, synthesized

PIPELINE = "conversation"
PADDING_SECONDS = 0.3
"""`audio_start_ms` is so much before the speech; the default of `prefix_padding_ms`."""

AT_ONCE = 4
"""Interrupting callers at once; most of a caller's time is its own talking."""

WARM_SESSIONS = 40

TRANSCRIBED = "conversation.item.input_audio_transcription.completed"

QUESTIONS = (
    "Tell me something about the sea.",
    "What do you think of music?",
    "How do birds fly?",
    "Can you tell me a short story?",
)
INTERRUPTION = "No no, wait a moment, I have another question."


def report(name: str, seconds: list[float]) -> None:
    """Prints the median and the 95th percentile."""
    if seconds:
        middle, high = statistics.median(seconds), percentile(seconds, 0.95)
        print(f"{name:48} p50 {1000 * middle:6.0f} ms   p95 {1000 * high:6.0f} ms", flush=True)


async def spoken_turn(caller: Caller, question: str) -> tuple[float, float]:
    """Speaks a turn; from its end to its words and to the first sound of its answer, in seconds."""
    start = len(caller.events)
    sound = pcm(silence(0.3)) + pcm(synthesized(question)) + pcm(silence(1.5))
    speaking = asyncio.create_task(caller.speak(sound))
    stopped = await caller.until("input_audio_buffer.speech_stopped", start)
    words = await caller.until(TRANSCRIBED, stopped)
    first = await caller.until(SOUND, stopped)
    await caller.until("response.done", stopped)
    await speaking
    decided = caller.came(stopped)
    return caller.came(words) - decided, caller.came(first) - decided


async def turns(base_url: str, count: int) -> None:
    """Spoken turns one after the other, each in a session of its own."""
    share = "antiphon_realtime_first_sound_share_seconds_sum"
    before = Metrics(base_url)
    taken = []
    for number in range(count):
        async with calling(base_url, "Answer in one short sentence.") as caller:
            taken.append(await spoken_turn(caller, QUESTIONS[number % len(QUESTIONS)]))
    report("end of turn to its words", [words for words, _ in taken])
    report("end of turn to first sound", [first for _, first in taken])
    earlier = before.labelled(share)
    for part, total in Metrics(base_url).labelled(share).items():
        mean = (total - earlier.get(part, 0.0)) / count
        print(f"  of that, {part:39} mean {1000 * mean:5.0f} ms")


@dataclass
class Interruptions:
    """What interruptions came to.

    Attributes:
        noticed: From the beginning of speech until the client was told, in seconds.
        cut: Answers that were still being made or sent.
        stale_bytes: Sound of the old answer that came after `speech_started`.
    """

    noticed: list[float] = field(default_factory=list)
    cut: int = 0
    stale_bytes: int = 0

    async def interrupt(self, base_url: str) -> None:
        """Interrupts one answer at a random moment."""
        async with calling(base_url, "Tell long stories.") as caller:
            await caller.ask("Tell me a long story about a dragon.")
            await caller.until("response.created")
            await asyncio.sleep(random.uniform(0.0, 3.0))
            start = len(caller.events)
            # Silence first, so that the padding before the speech is a whole one.
            sound = pcm(silence(0.5)) + pcm(synthesized(INTERRUPTION))
            speaking = asyncio.create_task(caller.speak(sound))
            spoken = asyncio.get_running_loop().time()
            started = await caller.until("input_audio_buffer.speech_started", start)
            await asyncio.sleep(0.4)
            speaking.cancel()
            self._note(caller, started, spoken)

    def _note(self, caller: Caller, started: int, spoken: float) -> None:
        onset = caller.events[started - 1][1]["audio_start_ms"] / 1000 + PADDING_SECONDS
        self.noticed.append(caller.came(started) - spoken - onset)
        done = [event["response"] for _, event in caller.events if event["type"] == "response.done"]
        self.cut += bool(done) and done[0]["status"] == "cancelled"
        sounds = caller.sound()
        old = next((item for _, _, _, item in sounds), None)
        late = [at for at, _, _, item in sounds if item == old and at >= started]
        self.stale_bytes += sum(len(b64decode(caller.events[at][1]["delta"])) for at in late)


async def interruptions(base_url: str, count: int) -> None:
    """Interruptions, some callers at once."""
    figures, room = Interruptions(), asyncio.Semaphore(AT_ONCE)
    before = Metrics(base_url)

    async def one() -> None:
        async with room:
            await figures.interrupt(base_url)

    await asyncio.gather(*[one() for _ in range(count)])
    after = Metrics(base_url)
    name = "antiphon_realtime_noticed_seconds"
    mean = after.mean(name, before)
    soon, within = (after.at_most(name, limit, before) for limit in ("0.05", "0.15"))
    print(f"{count} interruptions, {figures.cut} of them while the answer was being made or sent")
    print(
        f"server: sound that interrupts to last old sound: mean {1000 * mean:.0f} ms, "
        f"{soon[0]} of {soon[1]} within 50 ms, {within[0]} within 150 ms"
    )
    report("client: speech begins to speech_started", figures.noticed)
    print(f"stale bytes in {count} interruptions: {figures.stale_bytes}", flush=True)


async def converse(base_url: str, rounds: int, offset: int) -> tuple[list[float], list[Player]]:
    """A conversation: each answer is heard before the next question is asked."""
    waits, players = [], []
    async with calling(base_url, "Answer in one short sentence.") as caller:
        await asyncio.sleep(random.uniform(0.0, 3.0))
        for number in range(rounds):
            start = len(caller.events)
            question = QUESTIONS[(offset + number) % len(QUESTIONS)]
            waits.append((await spoken_turn(caller, question))[1])
            player = Player()
            for _, came, seconds, _ in caller.sound(start):
                player.take(seconds, came)
            players.append(player)
            begun = player.started or 0.0
            rest = begun + player.received - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, rest))
    return waits, players


async def conversations(base_url: str, count: int, rounds: int) -> None:
    """Conversations at once."""
    before = Metrics(base_url)
    results = await asyncio.gather(*[converse(base_url, rounds, n) for n in range(count)])
    after = Metrics(base_url)
    players = [player for _, heard in results for player in heard]
    waited = [seconds for waits, _ in results for seconds in waits]
    report(f"{count} at once: end of turn to first sound", waited)
    dry = sum(player.underruns for player in players)
    silent = sum(player.silence for player in players)
    print(f"{count} at once: {dry} underruns ({silent:.2f} s) in {len(players)} answers")
    lag = "antiphon_event_loop_lag_seconds"
    within, measured = after.at_most(lag, "0.02", before)
    print(
        f"{count} at once: event loop lag mean {1000 * after.mean(lag, before):.1f} ms, "
        f"{within} of {measured} within 20 ms",
        flush=True,
    )


async def sessions(base_url: str, count: int) -> None:
    """Sessions with a written turn each, one after the other."""
    megabytes = []
    for number in range(WARM_SESSIONS + count):
        async with calling(base_url, "Answer in one short sentence.") as caller:
            await caller.ask(QUESTIONS[number % len(QUESTIONS)])
            await caller.until(SOUND)
        if number + 1 in (WARM_SESSIONS, WARM_SESSIONS + count):
            await asyncio.sleep(1.0)
            megabytes.append(Metrics(base_url).value("process_resident_memory_bytes") / 2**20)
    first, last = megabytes
    growth = 100 * (last / first - 1)
    print(f"memory over {count} sessions: {first:.0f} to {last:.0f} MiB ({growth:+.2f} %)")


async def measure(base_url: str, options: argparse.Namespace) -> None:
    """Whatever is asked for."""
    if options.turns:
        await turns(base_url, options.turns)
    if options.interruptions:
        await interruptions(base_url, options.interruptions)
    if options.conversations:
        await conversations(base_url, options.conversations, options.rounds)
    if options.sessions:
        await sessions(base_url, options.sessions)


def main() -> None:
    """Reads the command line, and starts a server if there is none."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base_url", nargs="?")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--interruptions", type=int, default=500)
    parser.add_argument("--conversations", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=200)
    options = parser.parse_args()
    if options.base_url is not None:
        asyncio.run(measure(options.base_url, options))
        return
    with running(PIPELINE) as server:
        print(f"start to ready: {server.start_seconds:.1f} s, memory {server.megabytes():.0f} MiB")
        asyncio.run(measure(server.url, options))


if __name__ == "__main__":
    main()
