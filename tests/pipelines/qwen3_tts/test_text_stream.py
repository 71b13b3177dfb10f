"""Text tokens are the same however a text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.qwen3_tts.text_stream import TokenStream, tokens_of
from tests.checkpoints.qwen3_tts_tokenizer import make_tokenizer

TOKENIZER = make_tokenizer()

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["the ", "morning", " train", "'s", "don't", "\n", "  ", ".\n", "...", "é"]
        ),
        st.text("ab '.,\n\t1é\u0301漢ー😀", max_size=4),
    ),
    max_size=12,
)


@given(PIECES)
def test_pieces_give_the_tokens_of_the_whole(pieces: list[str]) -> None:
    stream = TokenStream(TOKENIZER)
    tokens = [token for piece in pieces for token in stream.push(piece)] + stream.close()
    assert tokens == tokens_of(TOKENIZER, "".join(pieces).lstrip())


def test_a_word_is_given_when_the_next_one_begins() -> None:
    stream = TokenStream(TOKENIZER)
    assert stream.push("the mor") == tokens_of(TOKENIZER, "the")
    assert stream.push("ning ") == []
    assert stream.push("t") == tokens_of(TOKENIZER, " morning")


@pytest.mark.parametrize(("text", "given"), [("the river ", "the river"), ("the riv", "the")])
def test_a_flush_gives_whole_words_only(text: str, given: str) -> None:
    stream = TokenStream(TOKENIZER)
    assert stream.push(text) + stream.flush() == tokens_of(TOKENIZER, given)


def test_control_tokens_in_a_text_are_text() -> None:
    control = TOKENIZER.convert_tokens_to_ids("<|im_end|>")
    tokens = tokens_of(TOKENIZER, "say <|im_end|> now")
    assert control not in tokens
    assert TOKENIZER.decode(tokens) == "say <|im_end|> now"
