"""The Talker on vLLM against the recipe's reference model, with the shipped weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import SpeechParameters, TextPayload
from engine.adapter import FeedRows
from engine.autoregressive import AutoregressiveReplica
from engine.core import CONDITIONED_WORKERS
from engine.deploy_config import StageDeployment
from pipelines.lark.adapters import TextToPhonemes
from pipelines.lark.pipeline import LOOKAHEAD, WEIGHTS, build_talker
from pipelines.lark.text import Phonemizer
from recipes.lark.speak import load_talker
from recipes.lark.talker_model import Sampler

TEXT = (
    "The morning train was late again, so we walked along the river. "
    "Did it cost $12.50? Yes. On May 3rd, 1999, nobody knew."
)


@pytest.fixture(scope="module")
def replica() -> Iterator[AutoregressiveReplica]:
    talker = build_talker(WEIGHTS, StageDeployment(compile="never", max_requests=16))
    assert isinstance(talker, AutoregressiveReplica)
    yield talker
    talker.close()


def test_a_core_that_is_alone_leaves_no_threads_that_look_for_news(
    replica: AutoregressiveReplica,
) -> None:
    """Gloo's threads wake up a hundred times a second, each."""
    assert not replica.requests
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert names
    assert not [name for name in names if "gloo" in name]


@pytest.fixture(scope="module")
def rows() -> FeedRows:
    adapter = TextToPhonemes(Phonemizer(), 0, LOOKAHEAD)
    adapter.push(TextPayload(TEXT))
    adapter.close()
    pieces = []
    while (piece := adapter.pull()) is not None:
        pieces.append(piece)
    tags = tuple(tag for piece in pieces for tag in piece.tags)
    return FeedRows(np.concatenate([piece.values for piece in pieces]), tags)


def spoken(replica: AutoregressiveReplica, wanted: dict[str, FeedRows]) -> dict[str, np.ndarray]:
    for name, feed in wanted.items():
        replica.add(name, SpeechParameters())
        replica.offer(name, feed)
        replica.close_input(name)
    codes: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    while replica.requests:
        for output in replica.step({}):
            if output.output is not None:
                codes[output.request_id].append(output.output.codes)
    return {name: np.stack(made) for name, made in codes.items()}


def test_greedy_codes_equal_the_reference(replica: AutoregressiveReplica, rows: FeedRows) -> None:
    made = spoken(replica, {"alone": rows})["alone"]
    sampler = Sampler(load_talker(WEIGHTS))
    expected = torch.stack([sampler.step(row) for row in torch.from_numpy(rows.values[:, 1:])])
    assert len(made) == len(rows.tags) > 100
    assert np.array_equal(made, expected.numpy())


def test_a_batch_of_different_lengths_equals_each_alone(
    replica: AutoregressiveReplica, rows: FeedRows
) -> None:
    alone = spoken(replica, {"alone": rows})["alone"]
    lengths = {f"first {count}": count for count in (3, 17, 40, 64, 90, len(rows.tags))}
    batch = spoken(
        replica,
        {name: FeedRows(rows.values[:n], rows.tags[:n]) for name, n in lengths.items()},
    )
    for name, count in lengths.items():
        assert np.array_equal(batch[name], alone[:count]), name


def test_a_window_of_attention_keeps_a_long_request_small(
    replica: AutoregressiveReplica, rows: FeedRows
) -> None:
    replica.add("long", SpeechParameters())
    most = 0
    for _ in range(4):
        replica.offer("long", rows)
        while replica.ready({}):
            replica.step({})
            most = max(most, replica.key_value_blocks_in_use())
    replica.abort("long")
    window_blocks = 128 // 32 + 2
    assert most <= window_blocks
    assert replica.key_value_blocks_in_use() == 0


def test_without_words_there_is_nothing_to_speak(replica: AutoregressiveReplica) -> None:
    replica.add("silent", SpeechParameters())
    replica.close_input("silent")
    outputs = replica.step({})
    assert [(o.request_id, o.output, o.finished) for o in outputs] == [("silent", None, True)]


def test_a_core_whose_build_fails_leaves_the_others_at_work(
    replica: AutoregressiveReplica, rows: FeedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = FeedRows(rows.values[:20], rows.tags[:20])
    before = spoken(replica, {"before": few})["before"]
    monkeypatch.setitem(CONDITIONED_WORKERS, "cpu", "engine.runner.NoSuchWorker")
    with pytest.raises(AttributeError, match="NoSuchWorker"):
        build_talker(WEIGHTS, StageDeployment(compile="never", max_requests=16))
    after = spoken(replica, {"after": few})["after"]
    assert np.array_equal(before, after)
