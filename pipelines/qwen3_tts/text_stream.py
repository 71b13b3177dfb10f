"""Text tokens as the text comes: the same ones, however it is cut.

The tokenizer first cuts a text into words and runs of other characters, and merges bytes inside
those only. A piece is therefore certain once another one has begun behind it, but for white space
and line breaks, which the cut may still join with what follows.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

LONGEST_CLUSTER = 16
"""Characters that may make up one with its accents."""


@dataclass(slots=True)
class TokenStream:
    """One text's tokens.

    Attributes:
        tokenizer: The checkpoint's.
    """

    tokenizer: PreTrainedTokenizerFast
    _pending: str = ""
    _begun: bool = False

    def push(self, text: str) -> list[int]:
        """Takes text; gives the tokens that no later text can change."""
        self._pending += text
        if not self._begun:
            # The assistant's turn opens with a line break, which would join with others.
            self._pending = self._pending.lstrip()
        return self._give(self._certain())

    def flush(self) -> list[int]:
        """Gives what ends with a whole word, as if no more came."""
        if not self._pending[-1:].isspace():
            return self._give(self._certain())
        return self._give(len(self._pending.rstrip()))

    def close(self) -> list[int]:
        """Gives the rest; no more text comes."""
        return self._give(len(self._pending))

    def _give(self, length: int) -> list[int]:
        text, self._pending = self._pending[:length], self._pending[length:]
        if not text:
            return []
        self._begun = True
        return tokens_of(self.tokenizer, text)

    def _certain(self) -> int:
        """How many characters nothing can change any more."""
        core = self._pending.rstrip()
        if not core:
            return 0
        pre_tokenizer = self.tokenizer.backend_tokenizer.pre_tokenizer
        for _, (start, _) in reversed(pre_tokenizer.pre_tokenize_str(core)):
            if _stands_alone(core, start):
                return len(core[:start].rstrip())
        return 0


def _stands_alone(text: str, start: int) -> bool:
    """Whether no accent from there on joins with a character before (NFC, as the tokenizer)."""
    if unicodedata.combining(text[start]):
        return False
    near = max(start - LONGEST_CLUSTER, 0)
    parts = (text[near:start], text[start : start + LONGEST_CLUSTER])
    composed = [unicodedata.normalize("NFC", part) for part in parts]
    return unicodedata.normalize("NFC", "".join(parts)) == "".join(composed)


def tokens_of(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """Tokens of a client's text; what looks like a control token in it is read as text."""
    return list(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])
