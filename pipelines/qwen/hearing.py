"""Sound as the Thinker's encoder reads it: the reference's own features, one sound at a time.

Sounds are not padded to each other's lengths: the features of a sound, and with them what the
encoder makes of it, are the same in every turn of a conversation.

The encoder's attention stays within windows, and its positions count anew in each. So a sound is
given to it window by window, each named by its features: equal windows are encoded once, and those
of a turn's beginning may be encoded before the turn has ended.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoProcessor, BatchFeature, Qwen2_5OmniProcessor, Qwen3OmniMoeProcessor
from vllm.model_executor.models.qwen2_5_omni_thinker import (
    create_qwen2_5_omni_thinker_field_factory,
)
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems

from engine.errors import ConfigurationError
from engine.multimodal import MediaItem
from engine.request import AudioContent
from pipelines.qwen.seeing import Seeing

Processor = Qwen2_5OmniProcessor | Qwen3OmniMoeProcessor

SAMPLE_RATE = 16_000
"""What the encoder's features are made from."""

FEWEST_FRAMES = 100
"""Mel frames, silence included, that are computed together where the reference has many."""

CONTINUES = "sound_continues"
"""Where an item's data says whether its window follows another one of the same sound."""


@dataclass(frozen=True, slots=True)
class SoundEncoder:
    """How a model's encoder takes sounds.

    Attributes:
        window: Mel frames within which its attention stays.
        tokens: How many embeddings it makes of so many mel frames; of several whole windows as
            many as of each for itself.
        padded: Whether the processor pads sounds with silence to the longest that it takes, and
            cuts off what is longer. Such a sound is heard here in parts of that length, as if the
            windows of one followed those of the other; the longest length is whole windows.
    """

    window: int
    tokens: Callable[[int], int]
    padded: bool


class Hearing:
    """Makes the encoder's features of sounds, and keeps them while the sounds live.

    Its methods may be called from any thread.
    """

    def __init__(self, folder: Path, kind: type[Processor], encoder: SoundEncoder) -> None:
        """Loads the processor of a checkpoint.

        Args:
            folder: The checkpoint's folder.
            kind: The model's own processor.
            encoder: How the model's encoder takes sounds.

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
        self.seeing = Seeing(processor)
        self.encoder = encoder
        extractor = processor.feature_extractor
        self._longest = extractor.n_samples if encoder.padded else None
        self._fields = create_qwen2_5_omni_thinker_field_factory(
            processor.image_processor.merge_size
        )
        self._heard: weakref.WeakKeyDictionary[AudioContent, tuple[MediaItem, ...]] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    def hear(self, sound: AudioContent) -> tuple[MediaItem, ...]:
        """A sound's windows in order, each as if it stood first in a prompt; made once.

        Raises:
            ValueError: Its sample rate is not 16 kHz, or it is too short to be heard.
        """
        with self._lock:
            heard = self._heard.get(sound)
        if heard is None:
            self._check(sound)
            heard = tuple(
                window
                for number, part in enumerate(self._parts(sound.samples))
                for window in self._windows(self.features(part), first=number == 0)
            )
            with self._lock:
                self._heard[sound] = heard
        return heard

    def beginning(self, sound: AudioContent) -> tuple[MediaItem, ...]:
        """The windows that are whole already, if this is only the beginning of a sound.

        As long as nothing louder follows, these are the windows of the whole sound, bit by bit:
        the features are cut off at 80 dB below the loudest of them.

        Raises:
            ValueError: Its sample rate is not 16 kHz.
        """
        if len(sound.samples) < self.processor.feature_extractor.n_fft:
            return ()
        self._check(sound)
        windows: list[MediaItem] = []
        for number, part in enumerate(self._parts(sound.samples)):
            known = self._known_frames(part) // self.encoder.window * self.encoder.window
            if known:
                windows += self._windows(self.features(part)[:, :known], first=number == 0)
        return tuple(windows)

    def _parts(self, samples: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
        """A sound in parts that the processor takes whole."""
        longest = self._longest or len(samples)
        return [samples[start : start + longest] for start in range(0, len(samples), longest)]

    def _known_frames(self, part: npt.NDArray[np.float32]) -> int:
        """How many mel frames of a part stay as they are when more follows."""
        extractor = self.processor.feature_extractor
        if len(part) == self._longest:
            return len(part) // extractor.hop_length
        # A frame reaches half of its length beyond its middle.
        return max(0, len(part) - extractor.n_fft // 2) // extractor.hop_length + 1

    def _check(self, sound: AudioContent) -> None:
        if sound.sample_rate != SAMPLE_RATE:
            raise ValueError(
                f"The sound has {sound.sample_rate} samples a second; the Thinker hears "
                f"{SAMPLE_RATE}: resample it."
            )
        shortest = self.processor.feature_extractor.n_fft
        if len(sound.samples) < shortest:
            raise ValueError(
                f"The sound has {len(sound.samples)} samples; the Thinker hears at least "
                f"{shortest}: leave it out, or send more of it."
            )

    def features(self, samples: npt.NDArray[np.float32]) -> torch.Tensor:
        """What the reference's processor makes of a sound alone, bit by bit.

        Args:
            samples: 16 kHz, shape [samples]; no more than the processor takes at once.

        Returns:
            The logarithmic mel spectrogram, float32, shape [mels, frames].
        """
        extractor = self.processor.feature_extractor
        hop = extractor.hop_length
        if self.encoder.padded:
            # Silence beyond the last frame's reach changes nothing, and takes its time; but
            # products of few columns are computed in another way, and rounded otherwise.
            frames = max(FEWEST_FRAMES, -(-(len(samples) + extractor.n_fft) // hop))
            padding = {
                "padding": "max_length",
                "max_length": min(frames * hop, extractor.n_samples),
            }
        else:
            padding = {"padding": True, "truncation": False}
        made = extractor(
            [samples],
            sampling_rate=SAMPLE_RATE,
            return_attention_mask=True,
            return_tensors="pt",
            **padding,
        )
        features: torch.Tensor = made["input_features"][0]
        return features[:, made["attention_mask"][0].bool()]

    def _windows(self, features: torch.Tensor, *, first: bool) -> tuple[MediaItem, ...]:
        """The windows of a part's features; `first` says whether nothing comes before it."""
        end = features.shape[1]
        starts = range(0, end, self.encoder.window)
        stops = [min(start + self.encoder.window, end) for start in starts]
        return tuple(
            self._window(features[:, start:stop], continues=start > 0 or not first)
            for start, stop in zip(starts, stops, strict=True)
            # The end of a sound may be too short for an embedding.
            if self.encoder.tokens(stop - start)
        )

    def _window(self, features: torch.Tensor, *, continues: bool) -> MediaItem:
        features = features.contiguous()
        frames = features.shape[1]
        partial = frames < self.encoder.window
        data = BatchFeature(
            {
                "input_audio_features": features,
                "audio_feature_lengths": torch.tensor([frames]),
                "feature_attention_mask": torch.ones(1, frames, dtype=torch.long),
                CONTINUES: torch.tensor([continues and partial]),
            }
        )
        fields = {
            **self._fields(data),
            CONTINUES: MultiModalFieldConfig.batched("audio", keep_on_cpu=True),
        }
        (item,) = MultiModalKwargsItems.from_hf_inputs(data, fields)["audio"]
        mark = b"continues" if continues and partial else b""
        digest = hashlib.blake2b(features.numpy().tobytes(), digest_size=16, person=mark)
        return MediaItem("audio", 0, self.encoder.tokens(frames), digest.hexdigest(), item)
