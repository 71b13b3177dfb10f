"""How the Talker's tokens and codes are chosen: as the reference's `generate` does by default."""

from __future__ import annotations

from engine import SpeechParameters
from engine.code_choice import CodeSampling
from engine.step_sampling import StepSampling

TEMPERATURE = 0.9
TOP_K = 50
REPETITION_PENALTY = 1.05
MOST_FRAMES = 4096
CODES = CodeSampling(temperature=1.0, top_k=50, top_p=0.8)


def sampling_of(parameters: SpeechParameters) -> StepSampling:
    """A request's sampling; a temperature of 0 makes tokens and codes greedy."""
    temperature = TEMPERATURE if parameters.temperature is None else parameters.temperature
    return StepSampling(
        temperature=temperature,
        top_k=TOP_K,
        repetition_penalty=REPETITION_PENALTY,
        maximum_steps=MOST_FRAMES,
        seed=parameters.seed,
        codes=CODES if temperature > 0 else CodeSampling(),
    )
