"""How a checkpoint wants its tokens and codes sampled, and what a request changes about that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import SpeechParameters
from engine.code_choice import CodeSampling
from engine.step_sampling import StepSampling
from pipelines.qwen.files import read_json

DEFAULTS: dict[str, Any] = {
    "do_sample": True,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
    "max_new_tokens": 2048,
}
"""Where `generation_config.json` says nothing, as in the reference."""

MINIMUM_FRAMES = 2
"""The end token is not sampled before, as in the reference."""


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """The values of `generation_config.json` over the reference's own."""

    values: dict[str, Any]

    @classmethod
    def of(cls, folder: Path) -> SamplingDefaults:
        """Of a checkpoint.

        Raises:
            ConfigurationError: Its `generation_config.json` cannot be read.
        """
        path = folder / "generation_config.json"
        found = read_json(path) if path.is_file() else {}
        known = {name: found[name] for name in DEFAULTS if found.get(name) is not None}
        return cls(DEFAULTS | known)

    def of_request(self, parameters: SpeechParameters) -> StepSampling:
        """A request's sampling.

        Its temperature goes for the tokens; 0 makes the codes greedy too.
        """
        values = self.values
        asked = parameters.temperature
        usual = values["temperature"] if values["do_sample"] else 0.0
        temperature = usual if asked is None else asked
        codes = CodeSampling()
        if values["subtalker_dosample"] and asked != 0.0:
            codes = CodeSampling(
                values["subtalker_temperature"],
                values["subtalker_top_k"],
                values["subtalker_top_p"],
            )
        return StepSampling(
            temperature=temperature,
            top_k=values["top_k"],
            top_p=values["top_p"],
            repetition_penalty=values["repetition_penalty"],
            minimum_steps=MINIMUM_FRAMES,
            maximum_steps=values["max_new_tokens"],
            seed=parameters.seed,
            codes=codes,
        )
