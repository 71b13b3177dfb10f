"""How codes are sampled: the defaults of the reference's `generate`."""

from __future__ import annotations

from collections.abc import Callable

from engine.request import SpeechParameters
from engine.step_sampling import StepSampling

TEMPERATURE = 0.9
TOP_K = 40
TOP_P = 0.8
REPETITION_PENALTY = 1.05
MOST_CODES = 4096
"""Steps of an answer: 82 seconds of speech."""


def sampling_of(codec_pad: int) -> Callable[[SpeechParameters], StepSampling]:
    """The sampling of a request; the pad token ends speech as the end token does."""

    def choose(parameters: SpeechParameters) -> StepSampling:
        hot = TEMPERATURE if parameters.temperature is None else parameters.temperature
        return StepSampling(
            temperature=hot,
            top_k=TOP_K if hot > 0 else 0,
            top_p=TOP_P if hot > 0 else 1.0,
            repetition_penalty=REPETITION_PENALTY,
            other_end_tokens=(codec_pad,),
            maximum_steps=MOST_CODES,
            seed=parameters.seed,
        )

    return choose
