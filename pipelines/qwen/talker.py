"""What the Talkers of Qwen's checkpoints share: the way through vLLM's backbone to a token."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import ClassVar, Generic, TypeVar

import torch
from torch import nn
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models.utils import AutoWeightsLoader, WeightsMapper
from vllm.sequence import IntermediateTensors

THINKER_EMBEDDING = "thinker.model.embed_tokens.weight"
MARKS = "talker.marks"

Backbone = TypeVar("Backbone", bound=nn.Module)


class CodecTalker(nn.Module, Generic[Backbone]):
    """A backbone of vLLM whose tokens are codes of codebook 0, and tokens that end speech.

    Attributes:
        hf_to_vllm_mapper: From a checkpoint's names to the modules'; vLLM, too, reads it, for the
            names of quantised layers.
        packed_modules_mapping: Which layers of a checkpoint became one; vLLM reads it for the same.
        model: The backbone; its `embed_tokens` embeds codes.
        codec_head: From states to logits of all tokens.
        never_sampled: Tokens that are no code and end nothing, bool, shape [vocabulary].
    """

    hf_to_vllm_mapper: WeightsMapper
    packed_modules_mapping: ClassVar[dict[str, list[str]]] = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    model: Backbone
    codec_head: ParallelLMHead
    logits_processor: LogitsProcessor
    never_sampled: torch.Tensor

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Codec embeddings of the tokens alone; the runner replaces them by `embed_step`."""
        embedded: torch.Tensor = self.model.get_submodule("embed_tokens")(input_ids)
        return embedded

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor | IntermediateTensors:
        """Last layer's states, shape [steps, hidden]."""
        return self.model(input_ids, positions, intermediate_tensors, inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Logits of codebook 0 and the tokens that end speech, shape [requests, vocabulary]."""
        logits = self.logits_processor(self.codec_head, hidden_states)
        if logits is not None:
            logits.masked_fill_(self.never_sampled, -torch.inf)
        return logits

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Loads the Talker's part of a checkpoint."""
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)


def with_marks(
    weights: Iterable[tuple[str, torch.Tensor]], token_ids: list[int]
) -> Generator[tuple[str, torch.Tensor]]:
    """The weights, with the Thinker's embeddings of some tokens alone, as `talker.marks`."""
    for name, values in weights:
        if name == THINKER_EMBEDDING:
            yield MARKS, values[token_ids]
        else:
            yield name, values
