"""The generation stage of Token2Wav: mel spectrogram to samples, streamed exactly.

BigVGAN (Lee et al. 2023) is convolutional, so a sample depends on a bounded run of mel frames. The
stage decodes windows that reach that far on both sides of what they give out; where an utterance
begins and ends, the window does too, and the reference's own padding applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from transformers import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavBigVGANModel

from engine.generation import GenerationItem
from engine.request import SpeechParameters

SAMPLE_RATE = 24_000
"""Samples a second of the published checkpoints; their configuration does not say it."""

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
        self._device = self._model.conv_pre.weight.device
        self.context = context_frames(self._model.config)
        self.unit_samples = int(np.prod(self._model.config.upsample_rates))

    def open(self, parameters: SpeechParameters) -> VocoderState:
        """A request's state."""
        del parameters
        return VocoderState()

    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item."""
        windows = [self._window(item) for item in items]
        results = [np.zeros(0, np.float32)] * len(items)
        for group in self._groups(windows):
            decoded = self._decode([windows[index].frames for index in group])
            for index, samples in zip(group, decoded, strict=True):
                start, stop = windows[index].start, windows[index].stop
                results[index] = samples[start * self.unit_samples : stop * self.unit_samples]
        return results

    def _window(self, item: GenerationItem) -> Window:
        """Takes an item's frames in; what is decoded of them now."""
        state: VocoderState = item.state
        parts = [] if state.frames is None else [state.frames]
        parts += [frames.to(self._device) for frames in item.data]
        frames = torch.cat(parts) if parts else torch.zeros(0, self._model.config.mel_dim)
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

    @torch.inference_mode()
    def _decode(self, windows: list[torch.Tensor]) -> list[npt.NDArray[np.float32]]:
        longest = max(len(window) for window in windows)
        batch = torch.stack(
            [functional.pad(window, (0, 0, 0, longest - len(window))) for window in windows]
        )
        samples = self._model(batch.transpose(1, 2)).reshape(len(windows), -1).float()
        return list(samples.cpu().numpy())
