"""Quantised checkpoints of a mixture of experts: what a processor can do of them, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import ConfigurationError
from pipelines.qwen3_omni.pipeline import build_talker, build_thinker
from pipelines.qwen3_omni.weights import check_weights
from tests.checkpoints.quantised import Scheme, quantise
from tests.pipelines.quantised_states import HALF, PROMPT, prompt_states

ATTENTION = r"(?:thinker|talker)\.model\.layers\.\d+\.self_attn"
EXPERTS = r"thinker\.model\.layers\.\d+\.mlp\.experts"


def reference_states(folder: Path) -> torch.Tensor:
    """The same of the reference, in float32."""
    model = Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder, dtype="float32").eval()
    with torch.inference_mode():
        result = model.thinker(input_ids=torch.tensor([PROMPT]), output_hidden_states=True)
    states: torch.Tensor = result.hidden_states[model.config.talker_config.accept_hidden_layer][0]
    return states


@pytest.mark.parametrize("scheme", [Scheme.PACKED, Scheme.INT8])
def test_quantised_attention_computes_what_its_numbers_say(
    checkpoint: Path, tmp_path: Path, scheme: Scheme
) -> None:
    """In the Thinker; the Talker, whose attention is quantised as well, loads."""
    folder = tmp_path / "quantised"
    numbers = quantise(checkpoint, folder, scheme, ATTENTION)
    named = HALF.model_copy(update={"quantization": "compressed-tensors"})
    expected = reference_states(numbers)
    # A rounded router sends a position now and then to other experts than the reference's.
    errors = (prompt_states(build_thinker, folder, named) - expected).norm(dim=1) / expected.norm(
        dim=1
    )
    assert float(errors.median()) < 0.05
    assert check_weights(folder, "talker.").quantised
    build_talker(folder, named).close()


def test_quantised_experts_are_refused_on_a_processor(checkpoint: Path, tmp_path: Path) -> None:
    """At the start, with what a processor can do."""
    folder = tmp_path / "quantised"
    quantise(checkpoint, folder, Scheme.PACKED, EXPERTS)
    with pytest.raises(ConfigurationError) as refused:
        build_thinker(folder, HALF)
    assert "(compressed-tensors) cannot be loaded on cpu" in str(refused.value)
    assert "no quantised experts" in str(refused.value)
