"""Five minutes of text in one request: words, gaps and memory from the first minute to the last.

    python -m benchmarks.long_text [--minutes 5] [--keep FILE.wav]

Starts a server of its own, speaks a few sentences to warm it up, then streams one long text with
the times of its words. The sound is cut in the pauses between sentences, by these times, and every
piece is read back by Whisper base; a drift of the times or of the voice would show as word errors.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import time
import wave
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.audio.pcm import FloatSamples
from app.evaluation.run import WARM_UP
from app.evaluation.sentences import Sentence, default_file, read_sentences
from app.evaluation.speaking import connect, served_model, speak
from app.evaluation.transcriber import Transcriber
from app.evaluation.words_error import Alignment, Step, align, normalised
from app.load import BYTES_PER_SECOND, SAMPLE_RATE, Player
from app.settings import Settings
from benchmarks.server import Server, running

CHARACTERS_PER_SECOND = 16.0
WARM_UPS = 5
QUIET = 0.003
"""Root mean square of 10 ms below which they count as silence."""


@dataclass
class Narration:
    """What came of the long request; times in seconds.

    Attributes:
        data: 16-bit samples.
        words: One event for each word, with its times and its place in the text.
        player: A player that listened in real time.
        first_audio: From the request to the first sound.
        total: From the request to the end.
        memory: Resident megabytes of the server, now and then while it spoke.
    """

    data: bytearray = field(default_factory=bytearray)
    words: list[dict[str, Any]] = field(default_factory=list)
    player: Player = field(default_factory=Player)
    first_audio: float = 0.0
    total: float = 0.0
    memory: list[float] = field(default_factory=list)

    @property
    def samples(self) -> FloatSamples:
        """The sound in numbers from -1 to 1."""
        return np.frombuffer(self.data, "<i2").astype(np.float32) / np.float32(32768)

    @property
    def seconds(self) -> float:
        """Length of the sound."""
        return len(self.data) / BYTES_PER_SECOND


@dataclass(frozen=True)
class Part:
    """One sentence of the long text, as it was spoken."""

    sentence: Sentence
    start: float
    end: float
    alignment: Alignment


def long_text(minutes: float) -> list[Sentence]:
    """Sentences of the evaluation set in a mixed order, again from its start if need be."""
    known = [sentence for sentence in read_sentences(default_file()) if sentence.kind != "chat"]
    order = np.random.default_rng(1).permutation(len(known))
    chosen: list[Sentence] = []
    while sum(len(sentence.text) + 1 for sentence in chosen) < (
        60 * minutes * CHARACTERS_PER_SECOND
    ):
        chosen.append(known[order[len(chosen) % len(known)]])
    return chosen


def narrate(client: httpx.Client, text: str, server: Server) -> Narration:
    """Streams the text in one request."""
    result = Narration()
    body = {
        "model": served_model(client),
        "input": text,
        "voice": "alloy",
        "response_format": "pcm",
        "stream_format": "sse",
        "timestamps": "word",
    }
    began = time.perf_counter()
    with client.stream("POST", "/v1/audio/speech", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            if event["type"] == "error":
                raise SystemExit(f"The server failed: {event['error']}")
            if event["type"] == "speech.word":
                result.words.append(event)
            elif event["type"] == "speech.audio.delta":
                piece = base64.b64decode(event["audio"])
                now = time.perf_counter()
                result.first_audio = result.first_audio or now - began
                result.player.take(len(piece) / BYTES_PER_SECOND, now)
                before = result.seconds
                result.data += piece
                if before // 30 != result.seconds // 30:
                    result.memory.append(server.megabytes())
    result.total = time.perf_counter() - began
    return result


def boundaries(sentences: list[Sentence], words: list[dict[str, Any]]) -> list[float]:
    """Where each sentence begins, and where the last ends: in the middle of each pause."""
    times, character, ended = [], 0, 0.0
    for sentence in sentences:
        end = character + len(sentence.text)
        here = [word for word in words if character <= word["start_character"] < end]
        times.append((ended + here[0]["start"]) / 2 if here else ended)
        ended = here[-1]["end"] if here else ended
        character = end + 1
    return [*times, ended + 0.3]


def read_back(sentences: list[Sentence], narration: Narration, listener: Transcriber) -> list[Part]:
    """Cuts the sound between sentences and listens to each piece."""
    parts, samples = [], narration.samples
    cuts = list(pairwise(boundaries(sentences, narration.words)))
    pieces = zip(sentences, cuts, strict=True)
    console = Console(stderr=True)
    for sentence, (start, end) in track(pieces, "Listening", len(cuts), console=console):
        piece = samples[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)]
        heard = listener(piece, SAMPLE_RATE) if len(piece) else ""
        found = align(normalised(sentence.text), normalised(heard))
        parts.append(Part(sentence, start, end, found))
    return parts


def longest_silence(samples: FloatSamples) -> float:
    """The longest stretch in which nothing is heard, in seconds."""
    hop = SAMPLE_RATE // 100
    blocks = samples[: len(samples) // hop * hop].reshape(-1, hop)
    quiet = "".join("q" if level < QUIET else "s" for level in np.sqrt(np.mean(blocks**2, axis=1)))
    return max((len(run) for run in re.findall("q+", quiet)), default=0) / 100


def table(parts: list[Part], narration: Narration) -> Table:
    """One row for each minute of the sound."""
    drawn = Table("minute", title="One long request, minute by minute")
    for heading in ("words", "WER", "skipped", "inserted", "words / s", "level", "longest silence"):
        drawn.add_column(heading, justify="right")
    samples = narration.samples
    for minute in sorted({int(part.start // 60) for part in parts}):
        here = [part for part in parts if int(part.start // 60) == minute]
        words = sum(part.alignment.words for part in here)
        errors = sum(part.alignment.errors for part in here)
        spoken = sum(part.end - part.start for part in here)
        begin, end = here[0].start, here[-1].end
        piece = samples[round(begin * SAMPLE_RATE) : round(end * SAMPLE_RATE)]
        drawn.add_row(
            str(minute + 1),
            str(words),
            f"{100 * errors / max(words, 1):.2f} %",
            str(sum(part.alignment.deleted for part in here)),
            str(sum(part.alignment.inserted for part in here)),
            f"{words / max(spoken, 0.01):.2f}",
            f"{20 * np.log10(np.sqrt(np.mean(piece**2)) + 1e-9):.1f} dB",
            f"{longest_silence(piece):.2f} s",
        )
    return drawn


def main() -> None:
    """Parses the command line, runs and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--keep", type=Path, help="a WAV file to keep the sound in")
    options = parser.parse_args()
    listener = Transcriber.installed(Settings().cache_folder)
    sentences = long_text(options.minutes)
    text = " ".join(sentence.text for sentence in sentences)
    longest = {"ANTIPHON_MAXIMUM_INPUT_CHARACTERS": str(len(text))}
    with running("lark", environment=longest) as server, connect(server.url) as client:
        for _ in range(WARM_UPS):
            speak(client, served_model(client), WARM_UP, "alloy")
        before = server.megabytes()
        narration = narrate(client, text, server)
        after = server.megabytes()
    if options.keep:
        with wave.open(str(options.keep), "wb") as file:
            file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
            file.writeframes(bytes(narration.data))
    parts = read_back(sentences, narration, listener)
    console = Console(width=100, highlight=False)
    console.print(table(parts, narration))
    runs = {step: max(part.alignment.longest(step) for part in parts) for step in Step}
    facts = {
        "text": f"{len(text)} characters, {len(narration.words)} words with times",
        "sound": f"{narration.seconds:.1f} s",
        "total time": f"{narration.total:.1f} s",
        "real-time factor": f"{narration.total / narration.seconds:.2f}",
        "first audio": f"{1000 * narration.first_audio:.0f} ms",
        "underruns of a player": f"{narration.player.underruns} ({narration.player.silence:.2f} s)",
        "most words skipped in a row": str(runs[Step.DELETED]),
        "most words inserted in a row": str(runs[Step.INSERTED]),
        "memory before": f"{before:.0f} MB",
        "memory while speaking": " ".join(f"{size:.0f}" for size in narration.memory) + " MB",
        "memory after": f"{after:.0f} MB",
    }
    for name, fact in facts.items():
        console.print(f"{name:28} {fact}")
    for part in parts:
        if part.alignment.errors:
            wrong = [p for p in part.alignment.places if p.step is not Step.KEPT]
            marks = " ".join(f"[{p.said or '-'} > {p.heard or '-'}]" for p in wrong)
            console.print(f"{part.start:6.1f} s  {part.sentence.name}: {marks}", markup=False)


if __name__ == "__main__":
    main()
