"""The generation stage of Token2Wav: mel spectrogram to samples, streamed exactly.

BigVGAN (Lee et al. 2023) is convolutional, so a sample depends on a bounded run of mel frames. The
stage decodes windows that reach that far on both sides of what they give out; where an utterance
begins and ends, the window does too, and the reference's own padding applies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from transformers import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavBigVGANModel

from engine.cuda_graphs import GraphedFunction, Recorder
from engine.device import to_host
from engine.generation import GenerationItem
from engine.request import SpeechParameters

SAMPLE_RATE = 24_000
"""Samples a second of the published checkpoints; their configuration does not say it."""

QUIETEST_DECIBELS = -115.0
QUIETEST = 10 ** (QUIETEST_DECIBELS / 20)
"""The quietest amplitude that the reference tells from silence."""

EDGE_CONVOLUTION = 3
"""Reach of the first and the last convolution, which have seven taps."""

ACTIVATION = 7
"""Reach of an anti-aliased activation: twelve taps at twice the rate, up and down again."""


def context_frames(config: Qwen2_5OmniBigVGANConfig) -> int:
    """Mel frames on either side that a sample depends on, rounded up at every layer."""
    reach = EDGE_CONVOLUTION + ACTIVATION
    blocks = zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
    widest = max(
        sum((kernel - 1) * (dilation + 1) // 2 + 2 * ACTIVATION for dilation in dilations)
        for kernel, dilations in blocks
    )
    levels = list(zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True))
    for rate, kernel in reversed(levels):
        reach = -(-(reach + widest + kernel - 1) // rate)
    return reach + EDGE_CONVOLUTION


@dataclass(slots=True)
class VocoderState:
    """The mel frames of one request that later samples still depend on.

    Attributes:
        frames: float32, shape [frames, mel]; None before the first.
        first: How many of an utterance's frames stand before them.
        given: Frames whose samples were given out.
    """

    frames: torch.Tensor | None = None
    first: int = 0
    given: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """What is decoded for one request: which of its frames' samples are given out."""

    frames: torch.Tensor
    start: int
    stop: int
    final: bool


class Vocoder:
    """BigVGAN as the module of a generation stage; a unit is a mel frame."""

    sample_rate = SAMPLE_RATE

    def __init__(self, model: Qwen2_5OmniToken2WavBigVGANModel) -> None:
        """Takes the reference's module."""
        self._model = model
        self._device = model.conv_pre.weight.device
        self._lengths: list[int] = []
        self._wave = GraphedFunction(self.wave, (), self._device)
        self.context = context_frames(model.config)
        self.unit_samples = int(np.prod(model.config.upsample_rates))

    def capture(
        self, units: Sequence[int], batch_sizes: Sequence[int], recorder: Recorder | None = None
    ) -> None:
        """See `engine.generation.CapturedModule`; of windows that an utterance goes on behind."""
        self._wave = GraphedFunction(self.wave, batch_sizes, self._device, recorder)
        self._lengths = [count + 2 * self.context for count in units]
        for length in reversed(self._lengths):
            self._wave.capture(torch.zeros(1, length, self._model.config.mel_dim))

    def open(self, parameters: SpeechParameters) -> VocoderState:
        """A request's state."""
        del parameters
        return VocoderState()

    @torch.inference_mode()
    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item."""
        windows = [self._window(item) for item in items]
        groups = self._groups(windows)
        decoded = [self._decode([windows[index] for index in group]) for group in groups]
        results = [np.zeros(0, np.float32)] * len(items)
        for group, batch in zip(groups, to_host(*decoded), strict=True):
            for index, samples in zip(group, batch.numpy(), strict=True):
                start, stop = windows[index].start, windows[index].stop
                results[index] = samples[start * self.unit_samples : stop * self.unit_samples]
        return results

    def _window(self, item: GenerationItem) -> Window:
        """Takes an item's frames in; what is decoded of them now."""
        state: VocoderState = item.state
        parts = [] if state.frames is None else [state.frames]
        parts += [frames.to(self._device) for frames in item.data]
        nothing = torch.zeros(0, self._model.config.mel_dim, device=self._device)
        frames = torch.cat(parts) if parts else nothing
        known = state.first + len(frames)
        stop = known if item.final else max(known - self.context, state.given)
        window = Window(frames, state.given - state.first, stop - state.first, item.final)
        kept = max(stop - self.context, 0)
        state.frames, state.first, state.given = frames[kept - state.first :], kept, stop
        return window

    @staticmethod
    def _groups(windows: list[Window]) -> list[list[int]]:
        """Which windows are decoded together.

        One that an utterance goes on behind may be filled up at its end, where nothing is given
        out of it; one that an utterance ends with may not.
        """
        wanted = [index for index, window in enumerate(windows) if window.stop > window.start]
        groups: dict[int, list[int]] = {}
        for index in wanted:
            length = len(windows[index].frames) if windows[index].final else 0
            groups.setdefault(length, []).append(index)
        return list(groups.values())

    def _decode(self, windows: list[Window]) -> torch.Tensor:
        """Samples of windows, shape [windows, samples]."""
        length = max(len(window.frames) for window in windows)
        if not windows[0].final and self._lengths and length <= self._lengths[-1]:
            length = self._lengths[bisect_left(self._lengths, length)]
        batch = [
            functional.pad(window.frames, (0, 0, 0, length - len(window.frames)))
            for window in windows
        ]
        (samples,) = self._wave(torch.stack(batch))
        # A copy: the next group's may take their place.
        return samples.clone()

    def wave(self, frames: torch.Tensor) -> tuple[torch.Tensor]:
        """The reference's forward, without its copies between host and device.

        Args:
            frames: Log mel spectrograms, shape [windows, frames, mel].

        Returns:
            Samples in [-1, 1], float32, shape [windows, samples].
        """
        model = self._model
        decibels = 20 * torch.log10(frames.transpose(1, 2).exp().clamp(min=QUIETEST)) - 20
        hidden = model.conv_pre(
            (2 * (decibels - QUIETEST_DECIBELS) / -QUIETEST_DECIBELS - 1).clamp(-1, 1)
        )
        kinds = model.num_residual_blocks
        for level, upsampling in enumerate(model.ups.children()):
            (layer,) = upsampling.children()
            hidden = layer(hidden)
            blocks = model.resblocks[level * kinds : (level + 1) * kinds]
            hidden = torch.stack([block(hidden) for block in blocks]).mean(dim=0)
        hidden = model.conv_post(model.activation_post(hidden))
        return (hidden.clamp(-1.0, 1.0).flatten(1).float(),)
