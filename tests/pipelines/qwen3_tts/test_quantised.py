"""A Talker with quantised layers speaks as with the numbers that they stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import ConfigurationError, SpeechParameters
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from pipelines.qwen3_tts.pipeline import build_talker
from tests.checkpoints.quantised import Scheme, quantise
from tests.checkpoints.qwen3_tts import Variant
from tests.pipelines.qwen3_tts.speaking import GREEDY, Case, speak

LAYERS = r"talker\.model\.layers"
HALF = StageDeployment(
    device="cpu", max_requests=8, max_steps=512, compile="never", dtype="bfloat16"
)
TEXTS = ("the morning train", "we walked along", "a voice that speaks", "nobody knew", "words")


def first_frames(folder: Path, deployment: StageDeployment = HALF) -> np.ndarray:
    """The first two frames of some texts, shape [texts, 2, codebooks]."""
    replica = build_talker(folder, deployment)
    assert isinstance(replica, AutoregressiveReplica)
    replica.sampling_of = lambda parameters: GREEDY
    cases = [Case(text, SpeechParameters(voice="ryan", whole_text=True)) for text in TEXTS]
    codes = speak(folder, replica, cases)
    replica.close()
    return np.stack([spoken[:2] for spoken in codes])


@pytest.mark.parametrize("scheme", Scheme)
def test_codes_are_mostly_those_of_the_numbers(
    checkpoints: dict[Variant, Path], tmp_path: Path, scheme: Scheme
) -> None:
    """Half precision lets a code change here and there, and all that follow in its frame."""
    source = checkpoints[Variant.CUSTOM_VOICE]
    folder = tmp_path / "quantised"
    numbers = quantise(source, folder, scheme, LAYERS)
    method = "compressed-tensors" if scheme in (Scheme.PACKED, Scheme.INT8) else scheme.value
    made = first_frames(folder, HALF.model_copy(update={"quantization": method}))
    same = float((made[:, 0, 0] == first_frames(numbers)[:, 0, 0]).mean())
    assert same >= 0.8, (made[:, 0, 0], same)


def test_another_method_is_refused(checkpoints: dict[Variant, Path], tmp_path: Path) -> None:
    """Of a checkpoint that was quantised, and of one that was not."""
    source = checkpoints[Variant.CUSTOM_VOICE]
    folder = tmp_path / "quantised"
    quantise(source, folder, Scheme.GPTQ, LAYERS)
    asks = HALF.model_copy(update={"quantization": "awq"})
    for wrong in (source, folder):
        with pytest.raises(ConfigurationError, match="Leave the stage's quantization out"):
            build_talker(wrong, asks)
