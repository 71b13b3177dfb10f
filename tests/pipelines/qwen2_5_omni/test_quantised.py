"""Quantised checkpoints: loaded by vLLM, their states those of the numbers that they stand for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5OmniForConditionalGeneration

from engine import (
    AudioPayload,
    Chat,
    ChatMessage,
    ConfigurationError,
    OmniRequest,
    SpeechParameters,
    TextInput,
)
from pipelines.qwen2_5_omni.checkpoint import check_weights
from pipelines.qwen2_5_omni.stages import build_talker, build_thinker
from tests.checkpoints.quantised import Scheme, quantise
from tests.pipelines.quantised_states import HALF, PROMPT, prompt_states
from tests.pipelines.qwen2_5_omni.overhearing import running, samples_of
from tests.toys import assert_empty, collect

THINKER = r"thinker\.model\.layers"
BOTH = r"(?:thinker|talker)\.model\.layers"


def reference_states(folder: Path) -> torch.Tensor:
    """The same of the reference, in float32."""
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(folder, dtype="float32").eval()
    with torch.inference_mode():
        result = model.thinker(input_ids=torch.tensor([PROMPT]), output_hidden_states=True)
    states: torch.Tensor = result.hidden_states[-1][0]
    return states


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Of two tensors, relative to the second."""
    return float((one - other).norm() / other.norm())


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize("nested", [None, "thinker_config"])
def test_a_quantised_thinker_is_recognised_and_computes_what_its_numbers_say(
    checkpoint: Path, tmp_path: Path, scheme: Scheme, nested: str | None
) -> None:
    """Also where only the Thinker was given to the quantiser; far from the weights before that."""
    folder = tmp_path / "quantised"
    numbers = quantise(checkpoint, folder, scheme, THINKER, nested=nested)
    assert check_weights(folder, "thinker.").quantised
    assert not check_weights(folder, "talker.").quantised
    expected = reference_states(numbers)
    rounding = difference(reference_states(checkpoint), expected)
    found = difference(prompt_states(build_thinker, folder), expected)
    if scheme is Scheme.INT8:
        # The inputs of layers are rounded as well, and weights far less.
        assert found < 0.05
    else:
        assert found < 0.03 < 0.3 * rounding, (found, rounding)


@pytest.mark.asyncio
@pytest.mark.parametrize("scheme", Scheme)
async def test_a_quantised_checkpoint_speaks(
    checkpoint: Path, tmp_path: Path, scheme: Scheme
) -> None:
    """The deployment asks for half precision and names the method, of the Talker as well.

    vLLM's 4-bit kernels for CPUs take multiples of 32, which the tiny Talker's width is not.
    """
    folder = tmp_path / "quantised"
    talker = scheme is Scheme.INT8
    quantise(checkpoint, folder, scheme, BOTH if talker else THINKER)
    assert check_weights(folder, "talker.").quantised is talker
    name = "compressed-tensors" if scheme in (Scheme.PACKED, Scheme.INT8) else scheme.value
    half = {"dtype": "bfloat16", "max_requests": 4, "max_steps": 256, "compile": "never"}
    stages = {
        "thinker": half | {"quantization": name},
        "talker": half | ({"quantization": name} if talker else {}),
        "denoiser": {"max_requests": 4},
        "vocoder": {"max_requests": 4},
    }
    deploy = tmp_path / "deploy.yaml"
    deploy.write_text(yaml.safe_dump({"stages": stages, "admission": {"max_running": 4}}))
    async with running(folder, tmp_path, deploy) as engine:
        chat = Chat((ChatMessage("user", "Tell me of birds."),), max_tokens=8)
        chunks = await collect(
            engine,
            OmniRequest("a", TextInput(), SpeechParameters(seed=1), route="chat", chat=chat),
        )
        await assert_empty(engine)
    assert [chunk.error for chunk in chunks if chunk.error is not None] == []
    assert any(isinstance(chunk.payload, AudioPayload) for chunk in chunks)
    assert len(samples_of(chunks)) > 0


def test_a_missing_part_of_a_quantised_checkpoint_is_named(
    checkpoint: Path, tmp_path: Path
) -> None:
    """What is left of its layers, and what no layer has."""
    folder = tmp_path / "quantised"
    quantise(checkpoint, folder, Scheme.GPTQ, THINKER)
    layer = "thinker.model.layers.1.mlp.up_proj"
    for path in sorted(folder.glob("*.safetensors")):
        weights = load_file(path)
        kept = {n: v for n, v in weights.items() if not n.startswith(layer)}
        if kept.keys() != weights.keys():
            save_file(kept | {"thinker.model.strange.qweight": torch.zeros(1)}, path)
    with pytest.raises(ConfigurationError) as refused:
        build_thinker(folder, HALF)
    assert f"{layer}.weight is missing" in str(refused.value)
    assert "thinker.model.strange.qweight is not known" in str(refused.value)


@pytest.mark.parametrize("scheme", [Scheme.GPTQ, Scheme.PACKED])
def test_float32_is_refused_with_the_mend(checkpoint: Path, tmp_path: Path, scheme: Scheme) -> None:
    """Of one method vLLM says so, of the other a kernel would in the middle of a request."""
    folder = tmp_path / "quantised"
    quantise(checkpoint, folder, scheme, THINKER)
    with pytest.raises(ConfigurationError, match="dtype: bfloat16"):
        build_thinker(folder, HALF.model_copy(update={"dtype": "float32"}))


def test_a_method_that_the_checkpoint_does_not_have_is_refused(
    checkpoint: Path, tmp_path: Path
) -> None:
    """Another than its own, one where there is none, and one that leaves every layer out."""
    asks = HALF.model_copy(update={"quantization": "awq"})
    with pytest.raises(ConfigurationError, match="Leave the stage's quantization out"):
        build_thinker(checkpoint, asks)
    with pytest.raises(ConfigurationError, match="Leave the stage's quantization out"):
        build_talker(checkpoint, asks)
    folder = tmp_path / "quantised"
    quantise(checkpoint, folder, Scheme.GPTQ, THINKER)
    with pytest.raises(ConfigurationError, match=r"gptq.*awq.*Leave the stage's quantization"):
        build_thinker(folder, asks)
    path = checkpoint / "config.json"
    other = tmp_path / "ignored"
    quantise(checkpoint, other, Scheme.PACKED, "nothing")
    values = json.loads(path.read_text())
    said = json.loads((other / "config.json").read_text())["quantization_config"]
    (other / "config.json").write_text(json.dumps(values | {"quantization_config": said}))
    with pytest.raises(ConfigurationError, match="No layer of this model was quantised"):
        build_thinker(other, HALF.model_copy(update={"quantization": "compressed-tensors"}))
