"""Measures how soon a Thinker that hears answers a long spoken turn, in `qwen3_omni`.

    python -m benchmarks.hearing [--seconds 30] [--turns 5] [--at-once]

The checkpoint has random weights; its audio encoder has 12 layers of 384, so that to encode takes
its time as in a real one. A caller speaks like a microphone and ends its turns itself, or sends
a turn's sound at once, so that nothing can be encoded before its end. Says, from the commit of a
turn: when the answer's first token came, and when the turn's words were known; and how many windows
of sound had been encoded before the commits.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.calls import Caller, Metrics, calling
from benchmarks.server import running
from tests.voices import pcm, synthesized

ENCODER = {
    "d_model": 384,
    "encoder_layers": 12,
    "encoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "downsample_hidden_size": 64,
}

LARGE_PIECE = 48_000
"""Bytes of a second."""

SENTENCE = "I would like to know what the weather is like today, since I am going out later. "
FIRST_TOKEN = "response.done"
"""Answers have one token; with random weights it may be no whole character."""

TRANSCRIBED = "conversation.item.input_audio_transcription.completed"


def write_checkpoint(folder: Path) -> None:
    """A tiny checkpoint with a larger audio encoder."""
    from tests.checkpoints.qwen3_omni import make_config, make_model, make_processor

    processor = make_processor()
    config = make_config(processor.tokenizer)
    for name, value in ENCODER.items():
        setattr(config.thinker_config.audio_config, name, value)
    make_model(config, 0).save_pretrained(folder)
    processor.save_pretrained(folder)


def said(seconds: float, seed: int) -> bytes:
    """Somebody who speaks for so long, in a room with a noise of its own."""
    sentence = synthesized(SENTENCE)
    count = int(24_000 * seconds)
    speech = np.tile(sentence, count // len(sentence) + 1)[:count]
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, count)
    return pcm((speech + noise).astype(np.float32))


async def turn(caller: Caller, sound: bytes, at_once: bool) -> tuple[float, float]:
    """Seconds from a turn's commit to the answer's first token and to the turn's words."""
    start = len(caller.events)
    if at_once:
        for piece in range(0, len(sound), LARGE_PIECE):
            audio = base64.b64encode(sound[piece : piece + LARGE_PIECE]).decode()
            await caller.send("input_audio_buffer.append", audio=audio)
    else:
        await caller.speak(sound)
    committed = asyncio.get_running_loop().time()
    await caller.send("input_audio_buffer.commit")
    await caller.send("response.create")
    answered = caller.came(await caller.until(FIRST_TOKEN, start)) - committed
    known = caller.came(await caller.until(TRANSCRIBED, start, 300.0)) - committed
    return answered, known


async def turns(url: str, seconds: float, count: int, at_once: bool) -> None:
    """Measures turns, each in a conversation of its own."""
    measured = []
    before = Metrics(url).value("antiphon_encodings_ahead_total")
    for number in range(count + 1):
        async with calling(url, "") as caller:
            detection = {"input": {"turn_detection": None, "transcription": {"model": "whisper-1"}}}
            session = {"type": "realtime", "output_modalities": ["text"], "audio": detection}
            session["max_output_tokens"] = 1
            await caller.send("session.update", session=session)
            await caller.until("session.updated", len(caller.events))
            # No turn is like another, so that none is known; the first one warms up.
            measured.append(await turn(caller, said(seconds, number), at_once))
    answered, known = zip(*measured[1:], strict=True)
    ahead = Metrics(url).value("antiphon_encodings_ahead_total") - before
    print(f"{count} turns of {seconds:g} s, from the commit:")
    print(f"  the answer's first token  p50 {1000 * statistics.median(answered):6.0f} ms")
    print(f"  the turn's words          p50 {1000 * statistics.median(known):6.0f} ms")
    print(f"  windows encoded before    {ahead / (count + 1):g} a turn")


def main() -> None:
    """Starts a server and measures it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        write_checkpoint(options.write)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "checkpoint"
        # In a process of its own: torch is not wanted here.
        command = [sys.executable, "-m", "benchmarks.hearing", "--write", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with running("qwen3_omni", "--model", str(folder)) as server:
            asyncio.run(turns(server.url, options.seconds, options.turns, options.at_once))


if __name__ == "__main__":
    main()
