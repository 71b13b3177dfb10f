"""The Talker: the Thinker's embeddings and states in, frames of codes out, on vLLM's MoE backbone.

A position is the sum of a vector of the Thinker, projected to the Talker's width, and of codec
embeddings. In the prompt the codec side is a special token or nothing; while the Talker speaks it
is the frame that was made in the step before. Follows `qwen3_omni_moe` of transformers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np
import torch
from torch import nn
from transformers import PretrainedConfig, Qwen3OmniMoeConfig
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeTalkerCodePredictorConfig,
    Qwen3OmniMoeTalkerConfig,
    Qwen3OmniMoeTalkerTextConfig,
)
from vllm.config import VllmConfig
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models.qwen3_moe import Qwen3MoeModel
from vllm.model_executor.models.qwen3_omni_moe_thinker import Qwen3MoeLLMModel
from vllm.model_executor.models.utils import WeightsMapper, maybe_prefix

from engine.code_choice import CodeChoice
from engine.conditioned_model import StepInputs
from pipelines.qwen.quantised import hand_on
from pipelines.qwen.talker import THINKER_EMBEDDING, CodecTalker, with_marks
from pipelines.qwen3_omni.model_configuration import part, rope_theta, rotary_rows
from pipelines.qwen3_omni.rows import CODEC, KIND, MARKS, ROW_WIDTH, RowKind
from pipelines.qwen3_tts.code_predictor import CodePredictor
from pipelines.qwen3_tts.frame_kernels import VllmKernels
from pipelines.qwen3_tts.model_configuration import Qwen3TTSPredictorConfig

ARCHITECTURE = "AntiphonQwen3OmniTalker"
RESERVED = 1024
"""The last tokens of the vocabulary are special: of these only the end is ever sampled."""

MARK_TOKENS = "mark_token_ids"
"""Where the configuration says which of the Thinker's tokens stand for rows without a vector."""

WEIGHTS = ("talker.", THINKER_EMBEDDING)
"""What the names of the weights begin with that the Talker reads of a checkpoint."""

TABLES = ("talker.code_predictor.lm_head.", "talker.code_predictor.model.codec_embedding.")

CHECKPOINT_NAMES = Qwen3MoeModel.hf_to_vllm_mapper | WeightsMapper(
    orig_to_new_prefix={
        "talker.model.codec_embedding.": "model.embed_tokens.",
        "talker.code_predictor.model.": "code_predictor.",
        "talker.": "",
        "thinker.": None,
        "code2wav.": None,
    }
)
"""From the checkpoint's names to the modules', projections fused as vLLM wants them."""


def configure(config: PretrainedConfig, *, quantised: bool = False) -> PretrainedConfig:
    """The Talker's part of a checkpoint's configuration, as vLLM's backbone reads it.

    The reference's Talker has experts in every layer, whatever is said.
    vLLM also tries this with an empty configuration, which is left as it is.

    Args:
        config: The checkpoint's.
        quantised: Whether the Talker's weights are quantised; the Thinker's may be and these not.
    """
    if not isinstance(config, Qwen3OmniMoeConfig):
        return config
    talker = part(config.talker_config, Qwen3OmniMoeTalkerConfig)
    talker.architectures = [ARCHITECTURE]
    if quantised:
        hand_on(config, "talker_config", talker)
    tokens = {
        RowKind.PAD: config.tts_pad_token_id,
        RowKind.BEGIN: config.tts_bos_token_id,
        RowKind.END: config.tts_eos_token_id,
    }
    # The configuration is open: what it does not know is kept, and saved with it.
    talker.update({MARK_TOKENS: [tokens[kind] for kind in MARKS]})
    text = part(talker.text_config, Qwen3OmniMoeTalkerTextConfig)
    text.rope_parameters = rotary_rows(text.rope_parameters)
    text.mlp_only_layers, text.decoder_sparse_step = [], 1
    return talker


def _predictor_config(talker: Qwen3OmniMoeTalkerConfig) -> Qwen3TTSPredictorConfig:
    """The code predictor is built as Qwen3-TTS's is."""
    config = part(talker.code_predictor_config, Qwen3OmniMoeTalkerCodePredictorConfig)
    return Qwen3TTSPredictorConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.rms_norm_eps,
        rope_theta=rope_theta(config.rope_parameters),
        num_code_groups=talker.num_code_groups,
    )


class Projection(nn.Module):
    """The Thinker's vectors to the Talker's width, through two linear maps."""

    def __init__(self, config: Qwen3OmniMoeTalkerConfig) -> None:
        """Builds the maps."""
        super().__init__()
        text = part(config.text_config, Qwen3OmniMoeTalkerTextConfig)
        self.linear_fc1 = nn.Linear(config.thinker_hidden_size, text.intermediate_size)
        self.linear_fc2 = nn.Linear(text.intermediate_size, text.hidden_size)
        self.act_fn = get_act_fn(text.hidden_act)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shapes: [rows, thinker hidden] -> [rows, hidden]."""
        return self.linear_fc2(self.act_fn(self.linear_fc1(vectors)))


class Qwen3OmniTalker(CodecTalker[Qwen3MoeLLMModel]):
    """The Talker as vLLM and the conditioned runner drive it; its rows are those of `rows.py`.

    Its backbone is that of vLLM's Thinker, whose positions may have several rows when compiled.
    """

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
        if not isinstance(config, Qwen3OmniMoeTalkerConfig):
            raise TypeError(f"The configuration is a {type(config).__name__}.")
        text = part(config.text_config, Qwen3OmniMoeTalkerTextConfig)
        self.codebooks = config.num_code_groups
        self.vector_width: int = config.thinker_hidden_size
        # Is never sampled, so that penalising it for repetition does nothing.
        self.begin_token = config.codec_bos_id
        self.end_token: int | None = config.codec_eos_token_id
        self.mark_token_ids: list[int] = config.to_dict()[MARK_TOKENS]
        self.model = Qwen3MoeLLMModel(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.text_projection = Projection(config)
        self.hidden_projection = Projection(config)
        self.marks = nn.Parameter(
            torch.zeros(len(MARKS), config.thinker_hidden_size), requires_grad=False
        )
        self.codec_head = ParallelLMHead(
            text.vocab_size, text.hidden_size, prefix=maybe_prefix(prefix, "codec_head")
        )
        self.logits_processor = LogitsProcessor(text.vocab_size)
        predictor = _predictor_config(config)
        self.residual_codes = predictor.vocab_size
        self.code_predictor = CodePredictor(predictor, text.hidden_size, VllmKernels())
        never = torch.zeros(text.vocab_size, dtype=torch.bool)
        never[-RESERVED:] = True
        never[config.codec_eos_token_id] = False
        self.register_buffer("never_sampled", never, persistent=False)

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.embed_step`."""
        rows, previous_codes = inputs.rows, inputs.previous_codes
        kinds = rows[:, KIND : KIND + 1].long()
        marks = self.marks[(kinds[:, 0] - MARKS[0]).clamp(min=0)]
        vectors = torch.where(kinds >= MARKS[0], marks, inputs.vectors.to(marks.dtype))
        media = self.hidden_projection(vectors)
        embedded = torch.where(kinds == RowKind.MEDIA, media, self.text_projection(vectors))
        before = previous_codes[:, :1]
        codec = torch.where(before < 0, rows[:, CODEC : CODEC + 1].long(), before)
        first = self.model.embed_tokens(codec[:, 0].clamp(min=0)) * (codec >= 0)
        residual = self.code_predictor.embed_residual(previous_codes[:, 1:]).sum(dim=1)
        return embedded + first + residual

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.predict_codes`."""
        return self.code_predictor(hidden_states, tokens, self.model.embed_tokens(tokens), choice)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Loads the Talker's part of a checkpoint, and three rows of the Thinker's embedding."""
        return super().load_weights(self._own(weights))

    def _own(
        self, weights: Iterable[tuple[str, torch.Tensor]]
    ) -> Generator[tuple[str, torch.Tensor]]:
        """The weights, the code predictor's tables together at the end: shards may part them."""
        tables: dict[str, torch.Tensor] = {}
        for name, values in with_marks(weights, self.mark_token_ids):
            if name.startswith(TABLES):
                tables[name] = values
            else:
                yield name, values
        yield from sorted(tables.items())
