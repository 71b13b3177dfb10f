"""The code predictor: completes a frame's codebooks inside the Talker's step.

A small Qwen3-style transformer runs over the codebooks of one frame. Its sequence is the Talker's
last state, then the embeddings of the codes so far; position *i* gives the logits of codebook *i*.
It has as many positions as there are codebooks, so that its cache is a small dense tensor.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from engine.code_choice import CodeChoice, choose
from pipelines.qwen.products import Product, product_with
from pipelines.qwen3_tts.frame_transformer import FrameKernels, FrameTransformer
from pipelines.qwen3_tts.model_configuration import Qwen3TTSPredictorConfig
from pipelines.qwen3_tts.predictor_weights import Norm, PredictorLayer, TableStack


class CodePredictor(nn.Module):
    """The transformer with an embedding and a head for each residual codebook."""

    offsets: torch.Tensor
    turns: torch.Tensor

    def __init__(
        self, config: Qwen3TTSPredictorConfig, talker_hidden_size: int, kernels: FrameKernels
    ) -> None:
        """Builds it for a Talker of that width."""
        super().__init__()
        self.config = config
        self.kernels = kernels
        residual = config.num_code_groups - 1
        self.codec_embedding = TableStack(residual, config.vocab_size, talker_hidden_size)
        self.lm_head = TableStack(residual, config.vocab_size, config.hidden_size)
        self._layers = [PredictorLayer(config) for _ in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(self._layers)
        self.norm = Norm(config.hidden_size)
        self._transformer: FrameTransformer | None = None
        self._heads: list[Product] = []
        self.small_to_mtp_projection: nn.Module = nn.Identity()
        if config.hidden_size != talker_hidden_size:
            self.small_to_mtp_projection = nn.Linear(talker_hidden_size, config.hidden_size)
        offsets = torch.arange(residual) * config.vocab_size
        self.register_buffer("offsets", offsets, persistent=False)
        self.register_buffer("turns", _turns(config), persistent=False)

    def embed_residual(self, codes: torch.Tensor) -> torch.Tensor:
        """Embeddings of codebooks 1 and up, [rows, codebooks - 1] -> [rows, codebooks - 1, H].

        H is the Talker's width. Where a code is negative, the embedding is zero.
        """
        table = self.codec_embedding.weight.flatten(0, 1)
        embedded = functional.embedding(codes.clamp(min=0) + self.offsets, table)
        return embedded * (codes >= 0).unsqueeze(-1)

    def forward(
        self,
        talker_state: torch.Tensor,
        tokens: torch.Tensor,
        embedded: torch.Tensor,
        choice: CodeChoice | None,
    ) -> torch.Tensor:
        """All codes of a frame.

        Args:
            talker_state: The Talker's last state, shape [requests, H].
            tokens: The codes of codebook 0, int64, shape [requests].
            embedded: Their embeddings by the Talker, shape [requests, H].
            choice: How the other codebooks' codes are chosen.

        Returns:
            int64, shape [requests, codebooks].
        """
        config, requests = self.config, len(tokens)
        cache = talker_state.new_empty(
            len(self.layers),
            2,
            requests,
            config.num_key_value_heads,
            config.num_code_groups,
            config.head_dim,
        )
        transformer = self._transformer_of_weights()
        codes = [tokens]
        inputs = torch.stack([talker_state, embedded], dim=1).flatten(0, 1)
        filled, new = 0, 2
        tables = zip(self._heads, self.codec_embedding.weight.unbind(), strict=True)
        for index, (head, table) in enumerate(tables):
            state = transformer.run(self.small_to_mtp_projection(inputs), cache, filled)
            logits = head(state[new - 1 :: new])
            codes.append(choose(choice, logits, index))
            inputs = functional.embedding(codes[-1], table)
            filled, new = filled + new, 1
        return torch.stack(codes, dim=1)

    def _transformer_of_weights(self) -> FrameTransformer:
        """The layers with their weights, gathered once these are loaded."""
        if self._transformer is None:
            config = self.config
            self._heads = [product_with(head) for head in self.lm_head.weight]
            self._transformer = FrameTransformer(
                self.kernels,
                tuple(layer.weights() for layer in self._layers),
                self.norm.weight,
                # vLLM's operator wants them as the states are.
                self.turns.to(self.norm.weight.dtype),
                config.num_attention_heads,
                config.num_key_value_heads,
                config.head_dim,
                config.rms_norm_eps,
            )
        return self._transformer


def _turns(config: Qwen3TTSPredictorConfig) -> torch.Tensor:
    """Cosines and sines of all positions side by side, shape [positions, head]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    positions = torch.arange(config.num_code_groups + 1, dtype=torch.float32)
    angles = positions[:, None] / config.rope_theta**exponents
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
