"""The denoiser of Token2Wav for batches of segments, each at its own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavDiTModel

from engine.cuda_graphs import GraphedFunction, Recorder
from engine.device import to_device
from pipelines.qwen2_5_omni.blocks import BRANCHES, PackedSegment, Packing
from pipelines.qwen2_5_omni.denoiser_network import DenoiserNetwork, normalised
from pipelines.qwen2_5_omni.flow import FlowSettings


@dataclass(frozen=True, slots=True)
class DenoiserInput:
    """One segment's part of an evaluation.

    Attributes:
        noisy: Where the flow is, shape [frames, mel].
        condition: What `Denoiser.condition` made of it, shape [branches, frames, hidden].
        evaluation: Which evaluation this is; it tells the time.
        start: The segment's first frame in its utterance.
        keep: Frames that are kept; the block that ends there is what the next segment sees.
        before: What this segment sees before its first block: keys and values of the block that
            was kept, shape `DenoiserNetwork.kept_shape`; None at an utterance's beginning.
    """

    noisy: torch.Tensor
    condition: torch.Tensor
    evaluation: int
    start: int
    keep: int
    before: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class DenoiserOutput:
    """What an evaluation gave one segment.

    Attributes:
        velocity: The guided velocity, shape [frames, mel].
        seen: What the next segment sees of this one, shape `DenoiserNetwork.kept_shape`.
    """

    velocity: torch.Tensor
    seen: torch.Tensor


class Denoiser:
    """Evaluates the network for a batch of segments.

    Attributes:
        repeats: Mel frames of a code.
        block_size: Mel frames of a block.
        device: Where it works.
        network: The transformer.
    """

    @torch.inference_mode()
    def __init__(self, model: Qwen2_5OmniToken2WavDiTModel, settings: FlowSettings) -> None:
        """Takes the input projection apart: only its first part depends on the flow."""
        config = model.config
        self.repeats = config.repeats
        self.block_size = config.block_size
        self.device = model.rotary_embed.inv_freq.device
        self._embed = model.input_embed
        widths = [config.mel_dim, config.enc_dim, config.emb_dim, config.enc_emb_dim]
        mel, reference, code, speaker = self._embed.proj.weight.split(widths, dim=1)
        self._mel_weight, self._reference_weight, self._speaker_weight = mel, reference, speaker
        self._code_table = functional.linear(model.text_embed.codec_embed.weight, code)
        times = settings.times().to(self.device)
        self.network = DenoiserNetwork(model, mel, times, settings.guidance)
        self._evaluate = GraphedFunction(self.network.forward, (), self.device)

    @property
    def codes(self) -> int:
        """Codes that have an embedding."""
        return len(self._code_table)

    def capture(self, block_counts: Sequence[int], recorder: Recorder | None = None) -> None:
        """Captures evaluations of that many blocks; batches between are filled up.

        Args:
            block_counts: Blocks of a batch's segments together.
            recorder: See `GraphedFunction`.
        """
        self._evaluate = GraphedFunction(self.network.forward, block_counts, self.device, recorder)
        segment = PackedSegment(self.block_size, 0, 0, has_kept=False)
        self._evaluate.capture(
            Packing([segment], self.block_size).rows(),
            self._mel_weight.new_zeros(1, self.block_size, self._mel_weight.shape[1]),
            self._mel_weight.new_zeros(1, BRANCHES, self.block_size, len(self._mel_weight)),
            self._mel_weight.new_zeros(1, *self.network.kept_shape),
        )

    @torch.inference_mode()
    def voice(self, conditioning: torch.Tensor, reference_mel: torch.Tensor) -> torch.Tensor:
        """What a speaker adds to every frame's input.

        Args:
            conditioning: The speaker's embedding, shape [speaker width].
            reference_mel: A mel spectrogram of the voice, shape [frames, mel].

        Returns:
            Shape [branches, hidden].
        """
        reference = reference_mel.to(self.device)[None]
        encoded = self._embed.spk_encoder(torch.cat([reference, torch.zeros_like(reference)]))
        added = functional.linear(encoded, self._reference_weight, self._embed.proj.bias)
        added[0] += functional.linear(conditioning.to(self.device), self._speaker_weight)
        return added

    @torch.inference_mode()
    def condition(self, voice: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """What a speaker and codes add to the frames of these codes.

        Args:
            voice: What `voice` gave, shape [branches, hidden].
            codes: int64, shape [codes], on the host.

        Returns:
            Shape [branches, codes * repeats, hidden].
        """
        embedded = self._code_table[
            to_device(torch.stack([codes, torch.zeros_like(codes)]), self.device)
        ]
        return voice[:, None] + embedded.repeat_interleave(self.repeats, dim=1)

    @torch.inference_mode()
    def signals(self, items: list[DenoiserInput]) -> list[torch.Tensor]:
        """What the first layer attends to, by segment; the cache policy compares these."""
        signals = []
        for item in items:
            shift, scale = self.network.modulations[0][item.evaluation, :2]
            hidden = item.condition + functional.linear(item.noisy, self._mel_weight)
            signals.append(normalised(hidden) * (1 + scale) + shift)
        return signals

    @torch.inference_mode()
    def evaluate(self, items: list[DenoiserInput]) -> list[DenoiserOutput]:
        """The guided velocities of segments, each at its own time."""
        segments = [
            PackedSegment(len(item.noisy), item.evaluation, item.start, item.before is not None)
            for item in items
        ]
        packing = Packing(segments, self.block_size)
        velocities, seen = self._evaluate(
            to_device(packing.rows(), self.device),
            packing.pack([item.noisy for item in items]),
            packing.pack([item.condition for item in items]),
            self._kept(items, packing),
        )
        outputs = []
        for item, velocity, first in zip(
            items, packing.unpack(velocities), packing.first_blocks, strict=True
        ):
            last = first + max(item.keep // self.block_size, 1) - 1
            outputs.append(DenoiserOutput(velocity, seen[last].clone()))
        return outputs

    def _kept(self, items: list[DenoiserInput], packing: Packing) -> torch.Tensor:
        """What was kept, at the first block of each segment, shape [blocks, *kept_shape]."""
        # Elsewhere it is not read.
        kept = self._mel_weight.new_empty(sum(packing.counts), *self.network.kept_shape)
        for item, first in zip(items, packing.first_blocks, strict=True):
            if item.before is not None:
                kept[first] = item.before
        return kept
