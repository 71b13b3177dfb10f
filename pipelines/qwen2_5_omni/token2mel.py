"""The diffusion stage of Token2Wav: codes to mel spectrogram, segment by segment.

A segment's last frames are denoised with a look-ahead of a few blocks and no further, and see what
was kept of the segment before. With a look-ahead of at least `receptive_blocks` the result is the
reference's for the whole utterance; with less it is what the Qwen2.5-Omni report describes, a
limited receptive field (two blocks back, one ahead), and the samples depend on the deployment's
segments but never on how the codes arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.cuda_graphs import Recorder
from engine.device import to_device, to_host
from engine.diffusion_module import DenoisingItem, DiffusionInput
from engine.diffusion_segments import Segment
from engine.request import SpeechParameters
from pipelines.qwen2_5_omni.checkpoint import Speaker
from pipelines.qwen2_5_omni.denoiser import Denoiser, DenoiserInput
from pipelines.qwen2_5_omni.flow import FlowPath, FlowSettings


@dataclass(frozen=True, slots=True)
class MelPayload:
    """A run of mel frames that follows the one before it.

    Attributes:
        frames: Log mel spectrogram, float32, shape [frames, mel].
    """

    frames: torch.Tensor


@dataclass(slots=True)
class UtteranceState:
    """What is kept of one request.

    Attributes:
        voice: The speaker's part of every frame's input.
        generator: Draws the noise, frame after frame.
        codes: Codes that were not given out yet.
        noise: Noise of the first frames of these, shape [frames, mel].
        before: What the next segment sees before its first block, by evaluation.
    """

    voice: torch.Tensor
    generator: torch.Generator
    noise: torch.Tensor
    codes: list[int] = field(default_factory=list)
    before: list[torch.Tensor] = field(default_factory=list)


@dataclass(slots=True)
class SegmentFlow:
    """One segment on its way.

    Attributes:
        path: The solver's place.
        condition: See `Denoiser.condition`.
        start: First frame.
        keep: Frames that are kept.
        seen: What the next segment will see of this one, by evaluation.
        velocity: The last velocity that was computed.
        signal: The cache's signal at that evaluation.
        finite: Whether the frames that are kept are, once the last evaluation is done.
    """

    path: FlowPath
    condition: torch.Tensor
    start: int
    keep: int
    seen: list[torch.Tensor] = field(default_factory=list)
    velocity: torch.Tensor | None = None
    signal: torch.Tensor | None = None
    finite: bool = False


class Token2Mel:
    """The denoiser as the module of a diffusion stage; a unit is a code."""

    def __init__(
        self,
        denoiser: Denoiser,
        speakers: Mapping[str, Speaker],
        settings: FlowSettings,
        *,
        compares: bool = False,
    ) -> None:
        """Encodes every speaker once.

        Args:
            denoiser: The network.
            speakers: The voices by name, the default first.
            settings: How the flow is followed.
            compares: Whether a cache policy will ask for changes.

        Raises:
            ValueError: The network's blocks are no whole number of codes.
        """
        if denoiser.block_size % denoiser.repeats:
            raise ValueError(
                f"A block of {denoiser.block_size} frames holds no whole number of codes, which "
                f"are {denoiser.repeats} frames each."
            )
        self._denoiser = denoiser
        self._settings = settings
        self._compares = compares
        points = settings.points()
        self._steps = (points[1:] - points[:-1]).to(denoiser.device)
        self._mel = next(iter(speakers.values())).reference_mel.shape[-1]
        self._voices = {
            name: denoiser.voice(speaker.conditioning, speaker.reference_mel)
            for name, speaker in speakers.items()
        }

    @property
    def block_units(self) -> int:
        """Codes in a block."""
        return self._denoiser.block_size // self._denoiser.repeats

    @property
    def evaluations(self) -> int:
        """Evaluations from noise to mel spectrogram."""
        return self._settings.evaluations

    def capture(self, block_counts: Sequence[int], recorder: Recorder | None = None) -> None:
        """See `engine.diffusion_module.CapturedDenoiser`."""
        self._denoiser.capture(block_counts, recorder)

    def open(self, parameters: SpeechParameters) -> UtteranceState:
        """A request's state; its noise is repeatable if it has a seed.

        Noise is drawn on the processor, frame after frame: the same on every device, whatever the
        segments, and the same as the reference draws at once for the whole utterance.
        """
        generator = torch.Generator()
        if parameters.seed is None:
            generator.seed()
        else:
            generator.manual_seed(parameters.seed)
        voice = self._voices[parameters.voice or next(iter(self._voices))]
        return UtteranceState(voice, generator, torch.empty(0, self._mel))

    def accept(self, state: UtteranceState, payload: DiffusionInput) -> None:
        """Takes codes in, int64, shape [units].

        Raises:
            ValueError: A code has no embedding.
        """
        codes = np.asarray(payload.data).reshape(-1)
        wrong = codes[(codes < 0) | (codes >= self._denoiser.codes)]
        if len(wrong):
            raise ValueError(
                f"Code {wrong[0]} is none of the {self._denoiser.codes} that can become sound."
            )
        state.codes.extend(codes.tolist())

    def begin(self, state: UtteranceState, segment: Segment) -> SegmentFlow:
        """A segment at its noise."""
        repeats = self._denoiser.repeats
        missing = segment.units * repeats - len(state.noise)
        if missing > 0:
            fresh = torch.randn(missing, self._mel, generator=state.generator)
            state.noise = torch.cat([state.noise, fresh])
        noise = to_device(state.noise[: segment.units * repeats], self._denoiser.device)
        codes = torch.tensor(state.codes[: segment.units])
        return SegmentFlow(
            path=FlowPath(self._steps, noise),
            condition=self._denoiser.condition(state.voice, codes),
            start=segment.start * repeats,
            keep=segment.keep * repeats,
        )

    def changes(self, items: list[DenoisingItem]) -> list[float]:
        """Relative change (L1) of what the first layer attends to."""
        signals = self._denoiser.signals([_input(item) for item in items])
        changes = [
            signal.new_full((), torch.inf)
            if item.trajectory.signal is None
            else (signal - item.trajectory.signal).abs().sum() / item.trajectory.signal.abs().sum()
            for item, signal in zip(items, signals, strict=True)
        ]
        (on_host,) = to_host(torch.stack(changes))
        return [float(change) for change in on_host]

    def evaluate(self, items: list[DenoisingItem]) -> None:
        """One evaluation of each item, all in one batch."""
        inputs = [_input(item) for item in items]
        signals = self._denoiser.signals(inputs) if self._compares else [None] * len(items)
        outputs = self._denoiser.evaluate(inputs)
        for item, output, signal in zip(items, outputs, signals, strict=True):
            flow: SegmentFlow = item.trajectory
            flow.velocity, flow.signal = output.velocity, signal
            flow.seen.append(output.seen)
            flow.path.advance(output.velocity)
        self._check(items)

    def reuse(self, items: list[DenoisingItem]) -> None:
        """Advances each item by the velocity that was computed last."""
        for item in items:
            flow: SegmentFlow = item.trajectory
            if flow.velocity is None:
                raise ValueError("There is no velocity yet that could be used again.")
            flow.seen.append(flow.seen[-1])
            flow.path.advance(flow.velocity)
        self._check(items)

    def _check(self, items: list[DenoisingItem]) -> None:
        """Notes of those that are done whether their frames are finite; waits once for all."""
        flows: list[SegmentFlow] = [
            item.trajectory for item in items if item.evaluation == self.evaluations - 1
        ]
        if flows:
            finite = [torch.isfinite(flow.path.value[: flow.keep]).all() for flow in flows]
            (on_host,) = to_host(torch.stack(finite))
            for flow, fine in zip(flows, on_host.tolist(), strict=True):
                flow.finite = fine

    def finish(
        self, state: UtteranceState, segment: Segment, trajectory: SegmentFlow
    ) -> MelPayload:
        """The segment's mel frames.

        Raises:
            ArithmeticError: They are not finite.
        """
        frames = trajectory.path.value[: trajectory.keep]
        if not trajectory.finite:
            raise ArithmeticError("The denoiser gave values that are not finite.")
        state.before = trajectory.seen
        del state.codes[: segment.keep]
        state.noise = state.noise[trajectory.keep :].clone()
        return MelPayload(frames)


def _input(item: DenoisingItem) -> DenoiserInput:
    flow: SegmentFlow = item.trajectory
    state: UtteranceState = item.state
    return DenoiserInput(
        noisy=flow.path.point(),
        condition=flow.condition,
        evaluation=item.evaluation,
        start=flow.start,
        keep=flow.keep,
        before=state.before[item.evaluation] if state.before else None,
    )
