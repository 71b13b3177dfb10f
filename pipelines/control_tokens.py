"""Clients' texts in prompts: what looks like a control token in them is read as text.

A chat template joins control tokens and texts to one string. Were that tokenized as it is, a text
with `<|im_end|>` in it could end its message and begin another in any role.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

FIRST_MARK, LAST_MARK = 0xF0000, 0xFFFFD
"""Characters of a plane for private use, which stand for what was found while it is rendered."""

Message = dict[str, Any]


def encode_rendered(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Message],
    render: Callable[[list[Message]], str],
) -> list[int]:
    """The token ids of a conversation.

    Args:
        tokenizer: The model's.
        messages: As chat templates take them: `content` is a text, or a list of parts, of which
            some have a `text`.
        render: The chat template.

    Raises:
        ValueError: The texts use every character for private use.
    """
    hidden = _Hidden(tokenizer, "".join(_texts(messages)))
    text = render([hidden.message(message) for message in messages])
    return hidden.encode(text)


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        content: Any = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (part["text"] for part in content if "text" in part)


class _Hidden:
    """Control tokens in texts, each with a mark that stands in for it."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: str) -> None:
        self._tokenizer = tokenizer
        known = tokenizer.added_tokens_decoder.values()
        names = sorted((t.content for t in known if t.special), key=len, reverse=True)
        found = {name for name in names if name in texts}
        self._names = re.compile("|".join(map(re.escape, names)))
        unused = (m for m in map(chr, range(FIRST_MARK, LAST_MARK + 1)) if m not in texts)
        self._marks = dict(zip(found, unused, strict=False))
        if len(self._marks) < len(found):
            raise ValueError("The conversation uses every character of Unicode's plane 15.")

    def message(self, message: Message) -> Message:
        """A message without control tokens in its texts."""
        if not self._marks:
            return message
        content: Any = message["content"]
        if isinstance(content, str):
            return message | {"content": self._hide(content)}
        parts = [
            part | {"text": self._hide(part["text"])} if "text" in part else part
            for part in content
        ]
        return message | {"content": parts}

    def _hide(self, text: str) -> str:
        return self._names.sub(lambda match: self._marks[match.group()], text)

    def encode(self, rendered: str) -> list[int]:
        """Tokens of the rendered conversation; of what was hidden, those of its characters."""
        if not self._marks:
            return self._tokenizer.encode(rendered, add_special_tokens=False)
        of_mark = {mark: name for name, mark in self._marks.items()}
        token_ids: list[int] = []
        for piece in re.split(f"([{''.join(of_mark)}])", rendered):
            as_text = piece in of_mark
            token_ids += self._tokenizer.encode(
                of_mark.get(piece, piece), add_special_tokens=False, split_special_tokens=as_text
            )
        return token_ids
