"""vLLM's model of the Thinker, with sounds encoded so that no other can be noticed."""

from __future__ import annotations

import torch
from transformers import PretrainedConfig
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from vllm.model_executor.models.qwen2_5_omni_thinker import Qwen2_5OmniAudioFeatureInputs
from vllm.model_executor.models.qwen3_omni_moe_thinker import (
    Qwen3OmniMoeThinkerForConditionalGeneration,
)

from pipelines.qwen3_omni.model_configuration import part

ARCHITECTURE = "AntiphonQwen3OmniThinker"


def configure(config: PretrainedConfig) -> PretrainedConfig:
    """The checkpoint's configuration with our architecture."""
    config.architectures = [ARCHITECTURE]
    return config


class Qwen3OmniThinker(Qwen3OmniMoeThinkerForConditionalGeneration):
    """vLLM's Thinker; each sound below a second is encoded by itself.

    The encoder's convolutions take pieces of a second, shorter ones padded to the longest of the
    batch, and what they make of a piece's end depends on whether it was padded. A sound of at
    least a second always has a full piece; a shorter one would sound otherwise in company.
    """

    # Upstream's own overriding method returns a tuple where its base class says a tensor.
    def _process_audio_input(  # type: ignore[override]
        self, audio_input: Qwen2_5OmniAudioFeatureInputs
    ) -> tuple[torch.Tensor, ...]:
        lengths = audio_input["audio_feature_lengths"].flatten().tolist()
        piece = 2 * part(self.config.audio_config, Qwen3OmniMoeAudioEncoderConfig).n_window
        short = [index for index, length in enumerate(lengths) if length < piece]
        if len(lengths) == 1 or not short:
            return super()._process_audio_input(audio_input)
        features = audio_input["input_features"].split(lengths, dim=1)
        long = [index for index in range(len(lengths)) if index not in set(short)]
        encoded: dict[int, torch.Tensor] = {}
        for together in [[index] for index in short] + ([long] if long else []):
            chosen = Qwen2_5OmniAudioFeatureInputs(
                type="audio_features",
                input_features=torch.cat([features[index] for index in together], dim=1),
                audio_feature_lengths=torch.tensor([lengths[index] for index in together]),
                # What the encoder does not read, and upstream's type wants.
                feature_attention_mask=[torch.ones(lengths[index]) for index in together],
            )
            made = super()._process_audio_input(chosen)
            encoded.update(zip(together, made, strict=True))
        return tuple(encoded[index] for index in range(len(lengths)))
