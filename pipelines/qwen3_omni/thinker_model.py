"""vLLM's model of the Thinker, with sounds encoded window by window so that nobody can notice."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PretrainedConfig
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from vllm.model_executor.models.interfaces import MultiModalEmbeddings
from vllm.model_executor.models.qwen2_5_omni_thinker import Qwen2_5OmniAudioFeatureInputs
from vllm.model_executor.models.qwen3_omni_moe_thinker import (
    Qwen3OmniMoeThinkerForConditionalGeneration,
)
from vllm.multimodal.inputs import MultiModalFeatureSpec

from pipelines.qwen.hearing import CONTINUES
from pipelines.qwen.quantised import hand_on
from pipelines.qwen3_omni.model_configuration import part

ARCHITECTURE = "AntiphonQwen3OmniThinker"


def configure(config: PretrainedConfig) -> PretrainedConfig:
    """The checkpoint's configuration with our architecture."""
    config.architectures = [ARCHITECTURE]
    hand_on(config, "thinker_config", config)
    return config


class Qwen3OmniThinker(Qwen3OmniMoeThinkerForConditionalGeneration):
    """vLLM's Thinker, given the windows of sounds, each encoded as it would be in its sound.

    The encoder's convolutions take pieces of a second, shorter ones padded to the longest of the
    batch, and what they make of a piece's end depends on whether it was padded. A sound below a
    second has no full piece and is encoded by itself; the end of a longer sound is encoded beside
    a full piece, as in the sound at once.
    """

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """Embeddings of items of one modality; see upstream's method."""
        continues = kwargs.pop(CONTINUES, None)
        audio = self._parse_and_validate_audio_input(**kwargs)
        if audio is None or continues is None:
            return super().embed_multimodal(**kwargs) or []
        lengths = audio["audio_feature_lengths"].flatten().tolist()
        features = audio["input_features"].split(lengths, dim=1)
        return self._encoded(features, torch.as_tensor(continues).flatten().tolist())

    def _encoded(
        self, features: tuple[torch.Tensor, ...], continues: list[bool]
    ) -> tuple[torch.Tensor, ...]:
        """Embeddings of windows, each of shape [mels, frames]."""
        piece = 2 * part(self.config.audio_config, Qwen3OmniMoeAudioEncoderConfig).n_window
        alone: list[int] = []
        together: list[int] = []
        for index, window in enumerate(features):
            short = window.shape[1] < piece and not continues[index]
            (alone if short else together).append(index)
        encoded = {index: self._encode([features[index]])[0] for index in alone}
        if together:
            company = []
            if all(features[index].shape[1] < piece for index in together):
                company = [features[0].new_zeros(features[0].shape[0], piece)]
            made = self._encode([*(features[index] for index in together), *company])
            encoded.update(zip(together, made, strict=False))
        return tuple(encoded[index] for index in range(len(features)))

    def _encode(self, features: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        lengths = [window.shape[1] for window in features]
        together = Qwen2_5OmniAudioFeatureInputs(
            type="audio_features",
            input_features=torch.cat(features, dim=1),
            audio_feature_lengths=torch.tensor(lengths),
            # What the encoder does not read, and upstream's type wants.
            feature_attention_mask=[torch.ones(length) for length in lengths],
        )
        return self._process_audio_input(together)

    def get_mrope_input_positions(
        self, input_tokens: list[int], mm_features: list[MultiModalFeatureSpec]
    ) -> tuple[torch.Tensor, int]:
        """Positions of a prompt, shape [3, tokens], and by how much they are ahead at its end.

        Those of sounds count on as a text's do; upstream expects a mark behind each sound, which
        windows inside of one do not have.
        """
        others = [feature for feature in mm_features if feature.modality != "audio"]
        positions: Any = super().get_mrope_input_positions(input_tokens, others)
        made: tuple[torch.Tensor, int] = positions
        return made
