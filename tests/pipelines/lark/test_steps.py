"""What the Talker does around its backbone, against the plain sums and nets that it stands for."""

from __future__ import annotations

import torch
from torch.nn import functional

from pipelines.lark.configuration import LarkTalkerConfig
from pipelines.lark.steps import LarkCodePredictor, LarkStepEmbedding
from tests.synchronisation import DEVICE, no_synchronisation

CONFIG = LarkTalkerConfig(
    hidden_size=16, predictor_hidden_size=24, codebook_sizes=(32, 20, 12, 20), num_voices=3
)
STEPS = 7


def _codes(generator: torch.Generator) -> torch.Tensor:
    columns = [torch.randint(0, n, (STEPS,), generator=generator) for n in CONFIG.codebook_sizes]
    return torch.stack(columns, dim=1)


@torch.inference_mode()
def test_the_joined_tables_give_the_same_sum_bit_by_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    embedding = LarkStepEmbedding(CONFIG)
    rows = torch.randint(0, CONFIG.num_voices, (STEPS, 2 + CONFIG.lookahead), generator=generator)
    codes = _codes(generator)
    codes[0] = -1
    total = embedding.voice_embedding(rows[:, 0]) + embedding.phoneme_embedding(rows[:, 1])
    for column, table in enumerate(embedding.lookahead_embedding):
        total = total + table(rows[:, 2 + column])
    begin = [CONFIG.begin_token, *CONFIG.codebook_sizes[1:]]
    for column, table in enumerate(embedding.code_embedding):
        before = codes[:, column]
        total = total + table(torch.where(before < 0, begin[column], before))
    embedding.join()
    assert torch.equal(embedding(rows, codes), total)


@torch.inference_mode()
def test_the_predictor_says_what_its_nets_say() -> None:
    generator = torch.Generator().manual_seed(1)
    predictor = LarkCodePredictor(CONFIG)
    states = torch.randn(STEPS, CONFIG.hidden_size, generator=generator)
    tokens = torch.randint(0, CONFIG.codebook_sizes[0], (STEPS,), generator=generator)
    expected = [tokens]
    told = torch.zeros_like(states)
    nets = zip(predictor.embedding, predictor.input, predictor.output, strict=True)
    for table, enter, leave in nets:
        told = told + table(expected[-1])
        entered = functional.silu(enter(torch.cat([states, told], dim=-1)))
        expected.append(leave(entered).argmax(dim=-1))
    predictor.join()
    assert torch.equal(predictor(states, tokens), torch.stack(expected, dim=1))


@torch.inference_mode()
def test_nobody_waits_for_the_device() -> None:
    with torch.device(DEVICE):
        embedding, predictor = LarkStepEmbedding(CONFIG), LarkCodePredictor(CONFIG)
        embedding.join()
        predictor.join()
        rows = torch.zeros(STEPS, 2 + CONFIG.lookahead, dtype=torch.int64)
        codes = torch.zeros(STEPS, len(CONFIG.codebook_sizes), dtype=torch.int64)
    with no_synchronisation():
        states = embedding(rows, codes)
        made = predictor(states, codes[:, 0]).to("cpu", non_blocking=True)
    assert made.shape == codes.shape
