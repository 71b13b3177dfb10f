"""The Talker: the Thinker's reply in, one code a step out, on vLLM's attention.

A position is a vector of the Thinker (its state plus its embedding of a token) plus a codec
embedding, projected to the Talker's width. In the prompt the codec side is nothing or a special
token; while the Talker speaks it is the code of the step before. Follows `qwen2_5_omni` of
transformers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PretrainedConfig, Qwen2_5OmniConfig
from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniTalkerConfig
from vllm.compilation.decorators import support_torch_compile
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from vllm.model_executor.models.llama import LlamaModel
from vllm.model_executor.models.utils import WeightsMapper, maybe_prefix

from engine.code_choice import CodeChoice
from engine.conditioned_model import StepInputs
from pipelines.qwen.quantised import hand_on
from pipelines.qwen.talker import THINKER_EMBEDDING, CodecTalker, with_marks
from pipelines.qwen2_5_omni.rows import CODE, MARK, ROW_WIDTH

ARCHITECTURE = "AntiphonQwen25OmniTalker"

SECTIONS = (16, 24, 24)
"""How the reference shares the rotary frequencies out where a checkpoint does not say it."""

WEIGHTS = ("talker.", THINKER_EMBEDDING)
"""What the names of the weights begin with that the Talker reads of a checkpoint."""

CHECKPOINT_NAMES = LlamaModel.hf_to_vllm_mapper | WeightsMapper(
    orig_to_new_prefix={"talker.": "", "thinker.": None, "token2wav.": None}
)
"""From the checkpoint's names to the modules', projections fused as vLLM wants them."""


def configure(
    config: PretrainedConfig, *, mark_token_ids: list[int], quantised: bool = False
) -> PretrainedConfig:
    """The Talker's part of a checkpoint's configuration, as vLLM's backbone reads it.

    The layers are Llama's but for biases on queries, keys and values, and for the rotary embedding
    with a row each for time, height and width.
    vLLM also tries this with an empty configuration, which is left as it is.

    Args:
        config: The checkpoint's.
        mark_token_ids: The Thinker's tokens for which marks stand, in the marks' order.
        quantised: Whether the Talker's weights are quantised; the Thinker's may be and these not.
    """
    if not isinstance(config, Qwen2_5OmniConfig):
        return config
    talker: Any = config.talker_config
    talker.architectures = [ARCHITECTURE]
    if quantised:
        hand_on(config, "talker_config", talker)
    token2wav: Any = config.token2wav_config
    talker.known_codes = token2wav.dit_config.num_embeds + 1
    talker.mark_token_ids = mark_token_ids
    rotary = talker.rope_parameters or {}
    talker.rope_parameters = {
        "rope_type": "default",
        "rope_theta": rotary.get("rope_theta", 1_000_000.0),
        "mrope_section": list(rotary.get("mrope_section") or SECTIONS),
    }
    talker.attention_bias, talker.qkv_bias, talker.mlp_bias = False, True, False
    return talker


@support_torch_compile(
    dynamic_arg_dims={
        "input_ids": 0,
        "positions": -1,
        "intermediate_tensors": 0,
        "inputs_embeds": 0,
    }
)
class Layers(LlamaModel):
    """Llama's layers, compiled for positions of several rows: what varies is how many there are."""


class Qwen25OmniTalker(CodecTalker[Layers]):
    """The Talker as vLLM and the conditioned runner drive it."""

    codebooks = 1
    residual_codes = 0
    hf_to_vllm_mapper = CHECKPOINT_NAMES
    row_width = ROW_WIDTH
    row_dtype = np.dtype(np.int32)

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        """Builds the model for the configuration that `configure` made.

        Raises:
            TypeError: It is another one.
        """
        super().__init__()
        config = vllm_config.model_config.hf_config
        if not isinstance(config, Qwen2_5OmniTalkerConfig):
            raise TypeError(f"The configuration is a {type(config).__name__}.")
        self.vector_width: int = config.embedding_size
        # The reference has it in its prompt too, where the penalty for repetition finds it.
        self.begin_token = config.tts_codec_pad_token_id
        self.end_token: int | None = config.tts_codec_end_token_id
        self.model = Layers(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        # Codec embeddings are as wide as the Thinker, not as the Talker.
        self.model.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.embedding_size)
        self.thinker_to_talker_proj = nn.Linear(config.embedding_size, config.hidden_size)
        self.mark_token_ids: list[int] = config.mark_token_ids
        self.marks = nn.Parameter(
            torch.zeros(len(self.mark_token_ids), config.embedding_size), requires_grad=False
        )
        self.codec_head = ParallelLMHead(
            config.vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "codec_head")
        )
        self.logits_processor = LogitsProcessor(config.vocab_size)
        self.register_buffer("never_sampled", _never_sampled(config), persistent=False)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Codec embeddings of the tokens alone; the runner replaces them by `embed_step`."""
        return self.thinker_to_talker_proj(self.model.embed_tokens(input_ids))

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.embed_step`."""
        rows, before = inputs.rows, inputs.previous_codes[:, 0]
        codes = torch.where(before < 0, rows[:, CODE].long(), before)
        spoken = self.model.embed_tokens(codes.clamp(min=0)) * (codes >= 0)[:, None]
        mark = rows[:, MARK : MARK + 1].long()
        marked = self.marks[mark[:, 0].clamp(min=0)]
        vectors = torch.where(mark >= 0, marked, inputs.vectors.to(marked.dtype))
        return self.thinker_to_talker_proj(spoken + vectors)

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """There is one codebook: the sampled token is the code."""
        del hidden_states, choice
        return tokens[:, None]

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Loads the Talker's part of a checkpoint, and the marks' rows of the Thinker's."""
        return super().load_weights(with_marks(weights, self.mark_token_ids))


def _never_sampled(config: Qwen2_5OmniTalkerConfig) -> torch.Tensor:
    """The begin token, as in the reference, and what could become no sound, where that fails."""
    never = torch.zeros(config.vocab_size, dtype=torch.bool)
    never[config.known_codes :] = True
    never[[config.tts_codec_pad_token_id, config.tts_codec_end_token_id]] = False
    never[config.tts_codec_start_token_id] = True
    return never
