"""The whole pipeline on the real runtime against the reference's front, from text to sound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml

from engine import (
    AudioPayload,
    InvalidRequestError,
    OmniRequest,
    SpeechParameters,
    TextInput,
)
from engine.engine import AsyncOmniEngine
from pipelines.qwen3_tts.pipeline import FOLDER
from tests.checkpoints.qwen3_tts import Variant
from tests.pipelines.qwen3_tts.conftest import REFERENCE_TEXT, some_sound
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess

TEXT = "Words are still coming."


@asynccontextmanager
async def running(folder: Path, tmp_path: Path) -> AsyncGenerator[AsyncOmniEngine]:
    deploy = tmp_path / "deploy.yaml"
    values = yaml.safe_load((FOLDER / "deploy.yaml").read_text())
    values["stages"]["talker"]["compile"] = "never"
    deploy.write_text(yaml.safe_dump(values))
    engine = await AsyncOmniEngine.start(
        pipeline="qwen3_tts",
        model=str(folder),
        deploy=deploy,
        cache_folder=tmp_path,
        compile_ahead=False,
    )
    try:
        yield engine
    finally:
        await engine.close()


async def heard(engine: AsyncOmniEngine, request: OmniRequest, samples: int) -> np.ndarray:
    """The first samples of a response, or all of it where it ends before."""
    sound = [np.zeros(0, np.float32)]
    chunks = engine.generate(request)
    async for chunk in chunks:
        assert chunk.error is None, chunk.error
        if isinstance(chunk.payload, AudioPayload):
            sound.append(chunk.payload.samples)
        if sum(map(len, sound)) > samples:
            break
    await chunks.aclose()
    return np.concatenate(sound)[:samples]


async def typed(text: TextInput) -> None:
    for letter in TEXT:
        await text.write(letter)
        await asyncio.sleep(0.005)
    text.close()


def assert_same(sound: np.ndarray, wanted: np.ndarray) -> None:
    assert len(wanted) > 5_000
    assert sound.shape == wanted.shape
    assert np.abs(sound - wanted).max() < 1e-4 * np.abs(wanted).max()


@pytest.mark.asyncio
async def test_texts_sound_as_by_the_reference(
    checkpoints: dict[Variant, Path], reference: ReferenceProcess, tmp_path: Path
) -> None:
    folder = checkpoints[Variant.CUSTOM_VOICE]
    asked = SpeechParameters(voice="ryan", language="en-US", temperature=0.0)
    codes = reference.codes(folder, TEXT, speaker="ryan", language="english")
    (wanted,) = reference.decode(folder, [codes])
    async with running(folder, tmp_path) as engine:
        whole = OmniRequest("whole", TextInput.whole(TEXT), asked)
        slowly = OmniRequest("slowly", TextInput(), asked)
        writer = asyncio.create_task(typed(slowly.text))
        sounds = await asyncio.gather(
            heard(engine, whole, len(wanted)), heard(engine, slowly, len(wanted))
        )
        await writer
        for sound in sounds:
            assert_same(sound, wanted)
        for parameters, fault in (
            (SpeechParameters(language="xx"), "speaks: chinese, english, german"),
            (SpeechParameters(voice="nobody"), "this checkpoint has: "),
            (SpeechParameters(speed=2.0), "its own pace"),
            (SpeechParameters(reference_audio=b"x"), "Only Base checkpoints clone"),
        ):
            request = OmniRequest("bad", TextInput.whole("a"), parameters)
            with pytest.raises(InvalidRequestError, match=fault):
                await heard(engine, request, 1)
        silent = OmniRequest("silent", TextInput.whole(""), asked)
        assert len(await heard(engine, silent, 1)) == 0


@pytest.mark.asyncio
async def test_cloned_voices_sound_as_by_the_reference(
    checkpoints: dict[Variant, Path],
    reference: ReferenceProcess,
    reference_audio: bytes,
    tmp_path: Path,
) -> None:
    folder = checkpoints[Variant.BASE]
    sound = (some_sound(1.3, 24_000), 24_000, REFERENCE_TEXT)
    _, frames = reference.clone(folder, sound)
    assert frames is not None
    codes = reference.codes(folder, TEXT, sound=sound)
    (whole,) = reference.decode(folder, [np.concatenate([frames, codes])])
    wanted = whole[1920 * len(frames) :]
    asked = SpeechParameters(
        temperature=0.0, reference_audio=reference_audio, reference_text=REFERENCE_TEXT
    )
    async with running(folder, tmp_path) as engine:
        for name in ("first", "again"):
            request = OmniRequest(name, TextInput.whole(TEXT), asked)
            assert_same(await heard(engine, request, len(wanted)), wanted)
        only_text = SpeechParameters(reference_text="words")
        with pytest.raises(InvalidRequestError, match="ref_text needs the ref_audio"):
            await heard(engine, OmniRequest("bad", TextInput.whole("a"), only_text), 1)
