"""What the server says is read back by a speech recognizer and compared with the text.

A voice that skips, repeats or mumbles words fails here, and so does a server that loses a part of
them on the way. `antiphon eval` does the same with two hundred sentences.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise

import httpx
import numpy as np
import pytest

from app.audio.pcm import FloatSamples
from app.evaluation.figures import Reading, summarise
from app.evaluation.report import misheard
from app.evaluation.run import readings
from app.evaluation.sentences import PACKAGED, read_sentences
from app.evaluation.speaking import connect, served_model, speak
from app.evaluation.transcriber import Transcriber
from app.evaluation.words_error import Step, align, normalised
from app.load import SAMPLE_RATE
from app.settings import Settings
from engine.catalogue import ModelUnavailableError

MOST_WORD_ERRORS = 0.05
RUN = 2
"""Words in a row that make a gap or a repetition; a single one may be the recognizer's mistake."""

FIRST = "The harbor was quiet when the first boats came home."
LAST = "In the evening everybody walked up the hill to watch the stars."
LONG_TEXT = " ".join(
    (
        FIRST,
        "Two old men sat on the wall, drank their coffee, and talked about the weather.",
        "There had been little wind that week, and the sea was as flat as a table.",
        "A girl with a red bicycle stopped beside them and asked for the time.",
        "It was twenty past seven, one of them said, and the bakery would open soon.",
        "She thanked him, bought four rolls and a bottle of milk, and rode away.",
        "Later a bus arrived from the city, full of visitors with heavy bags and cameras.",
        "They wanted to see the lighthouse, the little museum, and the caves under the cliff.",
        "The guide told them to wear good shoes, because the path was narrow and steep.",
        "At noon the sun was hot, and most of them were glad to rest in the shade.",
        "Some swam in the bay, some wrote letters, and one painted the boats in blue and green.",
        "Nobody was in a hurry, and nobody asked what time the last bus would leave.",
        LAST,
    )
)


@pytest.fixture(scope="module")
def listener() -> Transcriber:
    try:
        return Transcriber.installed(Settings().cache_folder)
    except ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def client(running_server: str) -> Generator[httpx.Client]:
    with connect(running_server) as connected:
        yield connected


@pytest.fixture(scope="module")
def read_back(client: httpx.Client, listener: Transcriber) -> list[Reading]:
    """The twenty sentences, spoken and read back."""
    return list(readings(client, read_sentences(PACKAGED), "alloy", listener))


def test_twenty_sentences_are_read_back(read_back: list[Reading]) -> None:
    whole = summarise(read_back)[-1]
    assert whole.sentences == 20
    assert whole.word_error_rate <= MOST_WORD_ERRORS, misheard(read_back)


def test_no_words_are_skipped_or_repeated(read_back: list[Reading]) -> None:
    whole = summarise(read_back)[-1]
    assert whole.longest_skip < RUN, misheard(read_back)
    assert whole.longest_insertion < RUN, misheard(read_back)
    assert whole.repeated == 0, misheard(read_back)


@pytest.mark.parametrize(("text", "heard"), [("Yes.", "yes"), ("5", "five")])
def test_one_word_is_audible_and_read_back(
    client: httpx.Client, listener: Transcriber, text: str, heard: str
) -> None:
    spoken = speak(client, served_model(client), text, "alloy")
    assert 0.2 < spoken.took.audio < 2.0
    assert np.sqrt(np.mean(spoken.samples**2)) > 0.01
    assert normalised(listener(spoken.samples, SAMPLE_RATE)) == [heard]


@dataclass
class Narration:
    """A long text as server-sent events: its sound, and the words with their times."""

    data: bytes = b""
    words: list[dict] = field(default_factory=list)

    @property
    def samples(self) -> FloatSamples:
        return np.frombuffer(self.data, "<i2").astype(np.float32) / np.float32(32768)

    @property
    def seconds(self) -> float:
        return len(self.data) / 2 / SAMPLE_RATE


@pytest.fixture(scope="module")
def narration(client: httpx.Client) -> Narration:
    result = Narration()
    body = {
        "model": served_model(client),
        "input": LONG_TEXT,
        "voice": "alloy",
        "response_format": "pcm",
        "stream_format": "sse",
        "timestamps": "word",
    }
    with client.stream("POST", "/v1/audio/speech", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            assert event["type"] != "error", event
            if event["type"] == "speech.word":
                result.words.append(event)
            elif event["type"] == "speech.audio.delta":
                result.data += base64.b64decode(event["audio"])
    return result


def test_words_are_verbatim_in_order_and_inside_the_audio(narration: Narration) -> None:
    without_signs = [word.strip(".,") for word in LONG_TEXT.split()]
    assert [word["word"] for word in narration.words] == without_signs
    for word in narration.words:
        spelled = LONG_TEXT[word["start_character"] : word["end_character"]]
        assert word["word"] == spelled
        assert 0.0 <= word["start"] < word["end"] <= narration.seconds
    for before, after in pairwise(narration.words):
        assert before["end_character"] <= after["start_character"]
        assert before["end"] <= after["start"] + 0.001


def test_a_long_text_is_spoken_from_beginning_to_end(
    narration: Narration, listener: Transcriber
) -> None:
    assert 50 < narration.seconds < 90
    heard = normalised(listener(narration.samples, SAMPLE_RATE))
    found = align(normalised(LONG_TEXT), heard)
    assert found.errors <= MOST_WORD_ERRORS * found.words, heard
    assert found.longest(Step.DELETED) < RUN, heard
    assert found.longest(Step.INSERTED) < RUN, heard
    for sentence, part in ((FIRST, heard[:10]), (LAST, heard[-12:])):
        assert align(normalised(sentence), part).errors <= 1, part


def test_a_word_is_heard_where_its_time_says(narration: Narration, listener: Transcriber) -> None:
    """The last sentence, cut out by the times of its words, is that sentence and no more."""
    words = [word for word in narration.words if word["end_character"] > LONG_TEXT.index(LAST)]
    begin, end = (round(SAMPLE_RATE * time) for time in (words[0]["start"], words[-1]["end"]))
    heard = normalised(listener(narration.samples[begin:end], SAMPLE_RATE))
    assert align(normalised(LAST), heard).errors <= 1, heard
