"""Sound as the Thinker's encoder reads it: the reference's own processor, one sound at a time.

Sounds are not padded to each other's lengths: the features of a sound, and with them what the
encoder makes of it, are the same in every turn of a conversation.
"""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoProcessor, BatchFeature, Qwen2_5OmniProcessor, Qwen3OmniMoeProcessor
from vllm.model_executor.models.qwen2_5_omni_thinker import (
    create_qwen2_5_omni_thinker_field_factory,
)
from vllm.multimodal.inputs import MultiModalKwargsItem, MultiModalKwargsItems

from engine.errors import ConfigurationError
from engine.request import AudioContent

Processor = Qwen2_5OmniProcessor | Qwen3OmniMoeProcessor

SAMPLE_RATE = 16_000
"""What the encoder's features are made from."""


@dataclass(frozen=True, slots=True)
class HeardSound:
    """A sound's features.

    Attributes:
        tokens: How many embeddings the encoder makes of it.
        identifier: The same for the same samples.
        data: What the Thinker's `embed_multimodal` reads.
    """

    tokens: int
    identifier: str
    data: MultiModalKwargsItem


class Hearing:
    """Makes the encoder's features of sounds, and keeps them while the sounds live."""

    def __init__(self, folder: Path, kind: type[Processor], *, cuts: bool) -> None:
        """Loads the processor of a checkpoint.

        Args:
            folder: The checkpoint's folder.
            kind: The model's own processor.
            cuts: Whether the processor cuts off what is longer than its features; such a sound is
                refused here.

        Raises:
            ConfigurationError: The checkpoint's processor is another model's.
        """
        processor = AutoProcessor.from_pretrained(folder)
        if not isinstance(processor, kind):
            raise ConfigurationError(
                f"The processor in {folder} is a {type(processor).__name__}; this pipeline's "
                f"checkpoints have a {kind.__name__}."
            )
        self.processor: Processor = processor
        self._longest = processor.feature_extractor.n_samples if cuts else None
        self._fields = create_qwen2_5_omni_thinker_field_factory(
            processor.image_processor.merge_size
        )
        self._heard: weakref.WeakKeyDictionary[AudioContent, HeardSound] = (
            weakref.WeakKeyDictionary()
        )

    def hear(self, sound: AudioContent) -> HeardSound:
        """A sound's features; made once for each sound.

        Raises:
            ValueError: Its sample rate is not 16 kHz, or it is too short or too long to be heard.
        """
        heard = self._heard.get(sound)
        if heard is None:
            heard = self._features(sound)
            self._heard[sound] = heard
        return heard

    def _features(self, sound: AudioContent) -> HeardSound:
        if sound.sample_rate != SAMPLE_RATE:
            raise ValueError(
                f"The sound has {sound.sample_rate} samples a second; the Thinker hears "
                f"{SAMPLE_RATE}: resample it."
            )
        shortest = self.processor.feature_extractor.n_fft
        if len(sound.samples) < shortest:
            raise ValueError(
                f"The sound has {len(sound.samples)} samples; the Thinker hears at least "
                f"{shortest}."
            )
        if self._longest is not None and len(sound.samples) > self._longest:
            raise ValueError(
                f"The sound has {len(sound.samples)} samples; the Thinker hears at most "
                f"{self._longest}."
            )
        inputs = self.processor(
            text=self.processor.audio_token, audio=[sound.samples], return_tensors="pt"
        )
        mask = inputs["feature_attention_mask"]
        features = BatchFeature(
            {
                "input_audio_features": inputs["input_features"][0][:, mask[0].bool()],
                "audio_feature_lengths": mask.sum(-1),
                "feature_attention_mask": torch.ones(1, int(mask.sum()), dtype=mask.dtype),
            }
        )
        (item,) = MultiModalKwargsItems.from_hf_inputs(features, self._fields(features))["audio"]
        return HeardSound(int(inputs["input_ids"].shape[1]), _digest(sound.samples), item)


def _digest(samples: npt.NDArray[np.float32]) -> str:
    return hashlib.blake2b(samples.tobytes(), digest_size=16).hexdigest()
