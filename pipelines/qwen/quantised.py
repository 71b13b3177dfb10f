"""Where a checkpoint of several models says how their weights are quantised."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig

KEY = "quantization_config"
IGNORE = "ignore"
"""Where compressed-tensors says which layers are left as they are."""


def quantisation_of(config: PretrainedConfig, part: str) -> dict[str, Any] | None:
    """What is said of a part: for all parts, of it alone, or of the language model in it.

    Quantisers that were given one part, or only its language model, leave the word there.
    """
    whole = config.to_dict()
    inner = whole.get(part) or {}
    for place in (whole, inner, inner.get("text_config") or {}):
        if place.get(KEY) is not None:
            said: dict[str, Any] = place[KEY]
            return said
    return None


def hand_on(config: PretrainedConfig, part: str, target: PretrainedConfig) -> None:
    """Says of the configuration that vLLM is to see what a checkpoint says of its part."""
    said = quantisation_of(config, part)
    if said is None:
        return
    left = said.get(IGNORE)
    if isinstance(left, list):
        # vLLM joins queries, keys and values of pictures' encoders, and looks for the joint name.
        joint = [f"{name}kv" for name in left if name.endswith(".attn.q")]
        said = said | {IGNORE: [*left, *(name for name in joint if name not in left)]}
    target.update({KEY: said})
