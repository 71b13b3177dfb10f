"""What the Talker does around its backbone in a step: the step's embedding and its other codes.

A step is so small that calling an operation costs more than its arithmetic. Once the weights are
loaded, both parts are laid out for few operations: all tables of the embedding become one,
and what the code predictor adds for each code that is known becomes rows to be looked up.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from pipelines.lark.configuration import LarkTalkerConfig


class LarkStepEmbedding(nn.Module):
    """Sums phoneme, look-ahead, voice and previous-code embeddings of a step."""

    table: torch.Tensor
    offsets: torch.Tensor
    begin_codes: torch.Tensor

    def __init__(self, config: LarkTalkerConfig) -> None:
        """Builds the tables; each code table's last row stands for 'no code yet'."""
        super().__init__()
        hidden = config.hidden_size
        self.phoneme_embedding = nn.Embedding(config.phoneme_vocabulary, hidden)
        self.lookahead_embedding = nn.ModuleList(
            nn.Embedding(config.phoneme_vocabulary, hidden) for _ in range(config.lookahead)
        )
        self.voice_embedding = nn.Embedding(config.num_voices, hidden)
        rows = [config.vocab_size] + [size + 1 for size in config.codebook_sizes[1:]]
        self.code_embedding = nn.ModuleList(nn.Embedding(count, hidden) for count in rows)
        begin = torch.tensor([config.begin_token, *config.codebook_sizes[1:]])
        self.register_buffer("begin_codes", begin, persistent=False)

    def join(self) -> None:
        """Joins the loaded tables into one, in the order in which a step names their rows."""
        parts = [self.voice_embedding, self.phoneme_embedding]
        parts += [*self.lookahead_embedding, *self.code_embedding]
        table = torch.cat([part.weight.data for part in parts])
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + part.num_embeddings)
            # A view, so that nothing is kept twice.
            part.weight.data = table[starts[-2] : starts[-1]]
        offsets = torch.tensor(starts[:-1], device=table.device)
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("offsets", offsets, persistent=False)

    def forward(self, rows: torch.Tensor, previous_codes: torch.Tensor) -> torch.Tensor:
        """Embeds steps.

        Args:
            rows: Voice, phoneme and look-ahead phonemes, int64, shape [steps, 2 + lookahead].
            previous_codes: int64, shape [steps, codebooks]; -1 before the first step.

        Returns:
            Shape [steps, hidden].
        """
        codes = torch.where(previous_codes < 0, self.begin_codes, previous_codes)
        places = torch.cat([rows, codes], dim=1).add_(self.offsets)
        return functional.embedding_bag(places, self.table, mode="sum")


class LarkCodePredictor(nn.Module):
    """Completes a step's codes, one small feed-forward net a codebook, greedily.

    The net of codebook k reads the backbone's state and the sum of the embeddings of codes 0 to
    k-1. Its first layer is linear, so the state's part is computed for all nets at once, and each
    code's part is a row that was computed when the weights were loaded. Weights lie transposed,
    which makes the product with a single row half as long.
    """

    def __init__(self, config: LarkTalkerConfig) -> None:
        """Builds the nets for codebooks 1 and up."""
        super().__init__()
        sizes, hidden = config.codebook_sizes, config.hidden_size
        self.width = config.predictor_hidden_size
        self.hidden = hidden
        self.embedding = nn.ModuleList(nn.Embedding(size, hidden) for size in sizes[:-1])
        self.input = nn.ModuleList(nn.Linear(2 * hidden, self.width) for _ in sizes[1:])
        self.output = nn.ModuleList(nn.Linear(self.width, size) for size in sizes[1:])
        self._entry: tuple[torch.Tensor, torch.Tensor] | None = None
        self._told: list[torch.Tensor] = []
        self._leave: list[tuple[torch.Tensor, torch.Tensor]] = []

    def join(self) -> None:
        """Lays the loaded layers out as `forward` reads them, and lets go of them."""
        weights = [layer.get_parameter("weight").data for layer in self.input]
        entry = torch.cat([weight[:, : self.hidden] for weight in weights])
        bias = torch.cat([layer.get_parameter("bias").data for layer in self.input])
        self._entry = (entry.T.contiguous(), bias)
        for index, table in enumerate(self.embedding):
            following = torch.cat([weight[:, self.hidden :] for weight in weights[index:]])
            told = table.get_parameter("weight").data.float() @ following.float().T
            self._told.append(told.to(entry.dtype))
        for layer in self.output:
            leaving = layer.get_parameter("weight").data.T.contiguous()
            self._leave.append((leaving, layer.get_parameter("bias").data))
        del self.input, self.embedding, self.output

    def forward(self, hidden_states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Shapes: hidden_states [requests, hidden], tokens [requests] -> [requests, codebooks].

        Raises:
            RuntimeError: The weights were not joined yet.
        """
        if self._entry is None:
            raise RuntimeError("The code predictor has no weights yet.")
        weight, bias = self._entry
        codes = [tokens]
        entered = torch.addmm(bias, hidden_states, weight)
        for told, (leave, leave_bias) in zip(self._told, self._leave, strict=True):
            entered = entered.add_(functional.embedding(codes[-1], told))
            state = functional.silu(entered[:, : self.width])
            codes.append(torch.addmm(leave_bias, state, leave).argmax(dim=-1))
            entered = entered[:, self.width :]
        return torch.stack(codes, dim=1)
