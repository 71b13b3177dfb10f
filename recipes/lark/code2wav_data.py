"""Rows of frames for fine-tuning the decoder: quantised features in, the teacher's spectra out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from scipy import fft
from torch import Tensor

from pipelines.lark import synthesis
from pipelines.lark.codec import ENCODING_SIZE, UNIT_FRAMES, Codec, CodecState, frame_f0
from pipelines.lark.decoder import KERNEL, Decoder, DecoderConfig
from recipes.lark import features as feature_step
from recipes.lark.codec import to_codebooks
from recipes.lark.teacher_decoder import decoder_weights

FloatArray = npt.NDArray[np.float32]

TEACHER_RIGHT = (3,) * 9

CPU = torch.device("cpu")


@dataclass(frozen=True)
class FrameBatch:
    """Rows of equal length.

    Attributes:
        features: [B, T, 130] quantised.
        pulses: [B, T, BINS] complex spectrum of the pulse train at the quantised f0.
        target: [B, T, BRANCHES * BINS] of the teacher's decoder.
    """

    features: Tensor
    pulses: Tensor
    target: Tensor

    def to(self, device: torch.device) -> FrameBatch:
        """Return the batch on a device."""
        return FrameBatch(*(part.to(device) for part in (self.features, self.pulses, self.target)))


def teacher_decoder() -> Decoder:
    """Return the teacher's decoder, symmetric in time."""
    decoder = Decoder(DecoderConfig(right=TEACHER_RIGHT))
    decoder.load_state_dict(decoder_weights())
    return decoder.eval().requires_grad_(False)


def student_weights(config: DecoderConfig) -> dict[str, Tensor]:
    """Return the teacher's weights with the taps that look too far ahead folded onto the last.

    Folding keeps each layer's answer to a steady input.
    """
    weights = decoder_weights()
    names = ["input", *(f"blocks.{index}.depthwise" for index in range(len(config.right) - 1))]
    for name, right in zip(names, config.right, strict=True):
        theirs = weights[f"{name}.weight"]
        ours = torch.zeros_like(theirs)
        for tap in range(KERNEL):
            offset = min(tap - KERNEL // 2, right)
            ours[..., offset + KERNEL - 1 - right] += theirs[..., tap]
        weights[f"{name}.weight"] = ours
    return weights


def raw_features(
    h: FloatArray, durations: npt.NDArray[np.int64], f0: FloatArray, energy: FloatArray
) -> FloatArray:
    """Return the decoder's input [F, 130] from the teacher's unquantised features."""
    frames = np.repeat(h, durations * UNIT_FRAMES, axis=0)
    pitch = np.log1p(np.maximum(f0, 0.0)) / 5
    return np.concatenate([frames, pitch[:, None], energy[:, None] / 5], 1).astype(np.float32)


def pulse_spectrum(f0: FloatArray) -> npt.NDArray[np.complex64]:
    """Return the pulse train's transform [F, BINS] of an utterance, as the synthesis sees it."""
    state = synthesis.SynthesisState()
    synthesis.extend_pulses([state], [f0], [True])
    spectrum: npt.NDArray[np.complex64] = fft.rfft(synthesis.windows([state], [len(f0)]), axis=1)
    return spectrum


class FrameCorpus:
    """The corpus as rows of frames."""

    def __init__(self, data: Path, device: torch.device = CPU, held_out: int = 100) -> None:
        self.device = device
        self.features = feature_step.load(data)
        self.codec = Codec(to_codebooks(load_file(data / "codec.safetensors")))
        stored = np.load(data / "codes.npz")
        self.codes, self.first_codes = stored["codes"], stored["first_codes"]
        self.teacher = teacher_decoder().to(device)
        held_out = min(held_out, len(self.features) // 5)
        self.training = np.arange(len(self.features) - held_out)
        self.held_out = np.arange(len(self.training), len(self.features))

    @torch.inference_mode()
    def utterance(self, index: int, first: bool) -> tuple[FloatArray, FloatArray]:
        """Return quantised features [F, 130] and the teacher's spectra [F, BRANCHES * BINS].

        The teacher sees its own features, except for the pitch, which is the quantised one: the
        harmonic branch must fit the pulses that it will filter.
        """
        store = self.features
        phonemes = slice(store.phoneme_offsets[index], store.phoneme_offsets[index + 1])
        frames = slice(store.frame_offsets[index], store.frame_offsets[index + 1])
        codes = self.codes[phonemes].astype(np.int64)
        if first:
            codes = np.concatenate([self.first_codes[index][None].astype(np.int64), codes[1:]])
        quantised = self.codec.features(CodecState(), codes).features
        raw = raw_features(
            store.h[phonemes].astype(np.float32),
            store.durations[phonemes].astype(np.int64),
            store.f0[frames].astype(np.float32),
            store.energy[frames].astype(np.float32),
        )
        raw[len(raw) - len(quantised) :, ENCODING_SIZE] = quantised[:, ENCODING_SIZE]
        spectra = self.teacher(torch.from_numpy(raw)[None].to(self.device))[0].cpu().numpy()
        return quantised, spectra[len(raw) - len(quantised) :]

    def batches(
        self, rows: int, length: int, seed: int, utterances: npt.NDArray[np.int64] | None = None
    ) -> Iterator[FrameBatch]:
        """Yield batches of concatenated utterances, without end or once over `utterances`."""
        source = np.random.default_rng(seed)
        pending: list[tuple[FloatArray, FloatArray]] = []
        while True:
            order = source.permutation(self.training) if utterances is None else utterances
            parts: list[tuple[FloatArray, FloatArray]] = []
            for index in order:
                parts.append(self.utterance(int(index), first=not parts))
                if sum(len(part[0]) for part in parts) < length:
                    continue
                pending.append(
                    (
                        np.concatenate([part[0] for part in parts])[:length],
                        np.concatenate([part[1] for part in parts])[:length],
                    )
                )
                parts = []
                if len(pending) == rows:
                    yield _batch(pending)
                    pending = []
            if utterances is not None:
                return


def _batch(rows: list[tuple[FloatArray, FloatArray]]) -> FrameBatch:
    pulses = np.stack([pulse_spectrum(frame_f0(features)) for features, _ in rows])
    return FrameBatch(
        torch.from_numpy(np.stack([features for features, _ in rows])),
        torch.from_numpy(pulses),
        torch.from_numpy(np.stack([target for _, target in rows])),
    )
