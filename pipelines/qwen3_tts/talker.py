"""The Talker: text and codec embeddings in, frames of codes out, on vLLM's Qwen3 backbone.

Every position is the sum of a text embedding, projected to the Talker's width, and of codec
embeddings. While the Talker speaks, the codec side is the frame that it made in the step before,
and the text side goes on with the text (dual track), then pads.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from vllm.model_executor.models.qwen3 import Qwen3Model
from vllm.model_executor.models.utils import WeightsMapper, maybe_prefix

from engine.code_choice import CodeChoice
from engine.conditioned_model import StepInputs
from pipelines.qwen.talker import CodecTalker
from pipelines.qwen3_tts.code_predictor import CodePredictor
from pipelines.qwen3_tts.configuration import Variant
from pipelines.qwen3_tts.frame_kernels import VllmKernels
from pipelines.qwen3_tts.model_configuration import Qwen3TTSConfig, Qwen3TTSTalkerConfig
from pipelines.qwen3_tts.rows import row_width

CHECKPOINT_NAMES = WeightsMapper(
    orig_to_new_stacked={
        ".q_proj": (".qkv_proj", "q"),
        ".k_proj": (".qkv_proj", "k"),
        ".v_proj": (".qkv_proj", "v"),
        ".gate_proj": (".gate_up_proj", 0),
        ".up_proj": (".gate_up_proj", 1),
    },
    orig_to_new_prefix={
        "talker.model.codec_embedding.": "model.embed_tokens.",
        "talker.model.text_embedding.": "text_embedding.",
        "talker.code_predictor.model.": "code_predictor.",
        "talker.": "",
        # Belongs to the stage that listens to reference audio.
        "speaker_encoder.": None,
    },
)
"""From the checkpoint's names to the modules', projections fused as vLLM wants them."""


class TextProjection(nn.Module):
    """Text embeddings to the Talker's width, through two linear maps."""

    def __init__(self, config: Qwen3TTSTalkerConfig) -> None:
        """Builds the maps."""
        super().__init__()
        self.linear_fc1 = nn.Linear(config.text_hidden_size, config.text_hidden_size)
        self.linear_fc2 = nn.Linear(config.text_hidden_size, config.hidden_size)
        self.act_fn = get_act_fn(config.hidden_act)

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        """Shapes: [rows, text hidden] -> [rows, hidden]."""
        return self.linear_fc2(self.act_fn(self.linear_fc1(embedded)))


class Qwen3TTSTalker(CodecTalker[Qwen3Model]):
    """The Talker as vLLM and the conditioned runner drive it.

    A row is what `rows.py` says: a text token, the codes of a prompt's frame, and in Base
    checkpoints the bits of a speaker embedding.
    """

    hf_to_vllm_mapper = CHECKPOINT_NAMES
    row_dtype = np.dtype(np.int32)
    vector_width = 0

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        """Builds the model for `vllm_config.model_config.hf_config`.

        Raises:
            TypeError: The checkpoint is another model's.
        """
        super().__init__()
        whole = vllm_config.model_config.hf_config
        if not isinstance(whole, Qwen3TTSConfig):
            raise TypeError(f"The configuration is a {type(whole).__name__}, not Qwen3TTSConfig.")
        config = whole.talker_config
        self.codebooks = config.num_code_groups
        self.clones = whole.tts_model_type == Variant.BASE
        self.row_width = row_width(self.codebooks, config.hidden_size if self.clones else 0)
        # Is never sampled, so that penalising it for repetition does nothing.
        self.begin_token = config.codec_bos_id
        self.end_token: int | None = config.codec_eos_token_id
        self.model = Qwen3Model(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.text_embedding = VocabParallelEmbedding(
            config.text_vocab_size, config.text_hidden_size
        )
        self.text_projection = TextProjection(config)
        self.codec_head = ParallelLMHead(
            config.vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "codec_head")
        )
        self.logits_processor = LogitsProcessor(config.vocab_size)
        predictor = config.code_predictor_config
        self.residual_codes = predictor.vocab_size
        self.code_predictor = CodePredictor(predictor, config.hidden_size, VllmKernels())
        never = torch.zeros(config.vocab_size, dtype=torch.bool)
        never[config.suppressed_tokens] = True
        self.register_buffer("never_sampled", never, persistent=False)

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.embed_step`."""
        rows, previous_codes = inputs.rows, inputs.previous_codes
        text = rows[:, :1].long()
        codes = rows[:, 1 : 1 + self.codebooks].long()
        codes = torch.where(previous_codes < 0, codes, previous_codes)
        spoken = self.text_projection(self.text_embedding(text[:, 0].clamp(min=0)))
        first = self.model.embed_tokens(codes[:, 0].clamp(min=0)) * (codes[:, :1] >= 0)
        residual = self.code_predictor.embed_residual(codes[:, 1:])
        heard = torch.cat([first.unsqueeze(1), residual], dim=1).sum(dim=1)
        embedded = heard + spoken * (text >= 0)
        if self.clones:
            speaker = rows[:, 1 + self.codebooks :].contiguous().view(torch.float32)
            embedded = embedded + speaker.to(embedded.dtype)
        return embedded

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.predict_codes`."""
        return self.code_predictor(hidden_states, tokens, self.model.embed_tokens(tokens), choice)
