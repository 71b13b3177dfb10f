# ruff: noqa: RUF001 -- tables of characters and of words
"""From text that arrives in pieces to tokens, each traced to its place in the input.

The one rule that makes the reading independent of the pieces: every decision looks only at
characters that are there, and where it would need one that has not come yet it raises `NeedMore`
and leaves no trace. Asked again with more text it goes the same way as if all had been there.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from enum import IntEnum

from pipelines.lark.text.characters import ENTITY, clean, unspeakable
from pipelines.lark.text.tables import HTML_BLOCKS, HTML_TAGS

MAX_RUN = 64
"""A longer run of characters without a space is cut, so that nothing is unbounded."""
MAX_TAG = 256
"""A "<" whose ">" is farther away than this is not a tag."""
_CUT_AFTER = re.compile(r"[^\w\s](?=\w)")
_STOP = re.compile(r"\s|<(?![^a-zA-Z/!])")
_SPACE = re.compile(r"\s+")
_NEWLINES = frozenset("\n\x0b\x0c\x85\u2028\u2029")
_FULL_STOP = re.compile(r"[^。！？｡、，；：]*([。！？｡、，；：]+)[\"'”’」』）)\]》〉]*")
_TAG = re.compile(
    r"<(?:!--.*?--|/?([a-zA-Z][a-zA-Z0-9-]*)(?:\s+[\w:-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+)"
    r")?)*\s*/?)>",
    re.DOTALL,
)
_TAG_START = re.compile(r"<(?:!?-?-?$|!--|/?$|/?([a-zA-Z][a-zA-Z0-9-]*))")


class NeedMore(Exception):  # noqa: N818 -- a signal, not an error
    """The next step depends on text that has not arrived."""


class Gap(IntEnum):
    """What separates a token from the one before."""

    NONE = 0
    SPACE = 1
    LINE = 2
    BLOCK = 3


class Kind(IntEnum):
    """The kinds of tokens."""

    TEXT = 0
    BREAK = 1
    END = 2


@dataclass(frozen=True, slots=True)
class Token:
    """A run of folded characters without a space, or a break between sentences."""

    kind: Kind
    text: str = ""
    starts: list[int] | None = None
    ends: list[int] | None = None
    gap: Gap = Gap.SPACE
    full_stop: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where text[start:end] stands in the input."""
        assert self.starts is not None
        assert self.ends is not None
        return self.starts[start], self.ends[end - 1]

    def without(self, start: int, end: int) -> Token:
        """Return the token with text[start:end] taken out."""
        assert self.starts is not None
        assert self.ends is not None
        return Token(
            self.kind,
            self.text[:start] + self.text[end:],
            self.starts[:start] + self.starts[end:],
            self.ends[:start] + self.ends[end:],
            self.gap,
            self.full_stop,
        )


_BREAK = Token(Kind.BREAK)
_END = Token(Kind.END)


class Lexer:
    """Cuts a growing text into tokens."""

    def __init__(self) -> None:
        self.left_out: dict[str, None] = {}
        self._text = ""
        self._base = 0
        self._position = 0
        self._pieces: list[str] = []
        self._length = 0
        self._flushes: deque[int] = deque()
        self._closed = False
        self._queue: deque[Token] = deque()
        self._gap = Gap.BLOCK
        self._newlines = 0

    def push(self, text: str) -> None:
        """Add text at the end."""
        self._pieces.append(text)
        self._length += len(text)

    def flush(self) -> None:
        """Make a break after what is there."""
        if not self._flushes or self._flushes[-1] != self._length:
            self._flushes.append(self._length)

    def close(self) -> None:
        """Make a final break after what is there."""
        self._closed = True

    def peek(self, index: int) -> Token:
        """Return the token `index` places ahead; nothing is seen beyond a break."""
        for ahead in range(index + 1):
            while ahead >= len(self._queue):
                self._scan()
            if self._queue[ahead].kind is not Kind.TEXT:
                return self._queue[ahead]
        return self._queue[index]

    def pop(self) -> None:
        """Take the first token away; the end of the text stays."""
        if self._queue[0].kind is not Kind.END:
            self._queue.popleft()

    def _scan(self) -> None:
        """Append at least one token to the queue, or raise NeedMore, or just advance."""
        if self._pieces or self._position > 4096:
            self._text = self._text[self._position :] + "".join(self._pieces)
            self._base += self._position
            self._position = 0
            self._pieces.clear()
        limit = (self._flushes[0] - self._base) if self._flushes else len(self._text)
        final = self._closed or bool(self._flushes)
        if self._position >= limit:
            self._at_limit(final)
            return
        text, position = self._text, self._position
        character = text[position]
        if character.isspace():
            match = _SPACE.match(text, position, limit)
            assert match is not None
            self._space(match.group())
            self._position = match.end()
            return
        if character == "<":
            end, name = self._tag(position, limit, final)
            if end > position:
                gap = Gap.BLOCK if name in HTML_BLOCKS else Gap.NONE
                self._gap = max(self._gap, gap)
                self._consume(end)
                return
        end, full_stop = self._run(position, limit, final)
        raw = text[position:end]
        self._emit(raw, self._base + position, full_stop)
        self._consume(end)

    def _at_limit(self, final: bool) -> None:
        if self._flushes:
            self._flushes.popleft()
            self._break()
        elif final:
            self._queue.append(_END)
        else:
            raise NeedMore

    def _break(self) -> None:
        self._queue.append(_BREAK)
        self._gap = Gap.BLOCK

    def _space(self, space: str) -> None:
        self._gap = max(self._gap, Gap.SPACE)
        before = self._newlines
        self._newlines += sum(1 for character in space if character in _NEWLINES)
        if self._newlines:
            self._gap = max(self._gap, Gap.LINE)
        if before < 2 <= self._newlines:
            self._break()

    def _consume(self, end: int) -> None:
        for character in unspeakable(self._text[self._position : end]):
            self.left_out[character] = None
        self._position = end

    def _emit(self, raw: str, start: int, full_stop: bool) -> None:
        if raw.isascii() and raw.isprintable() and not ENTITY.search(raw):
            folded = raw
            starts, ends = (list(range(start + d, start + d + len(raw))) for d in (0, 1))
        else:
            folded, starts, ends = clean(raw, start)
        before = 0
        for match in re.finditer(r"[^ ]+", folded):
            first, last = match.span()
            if first > before:
                self._gap = max(self._gap, Gap.SPACE)
            before = last
            stops = full_stop and last == len(folded)
            token = Token(Kind.TEXT, match.group(), starts[first:last], ends[first:last],
                          self._gap, stops)  # fmt: skip
            self._queue.append(token)
            self._gap = Gap.NONE
            self._newlines = 0
        if before < len(folded) or full_stop:
            self._gap = max(self._gap, Gap.SPACE)

    def _run(self, position: int, limit: int, final: bool) -> tuple[int, bool]:
        """Find the end of the run at `position`; tell whether a full-width stop ends it."""
        text = self._text
        furthest = position + MAX_RUN
        window = min(limit, furthest)
        end = position + 1 if text[position] == "<" else position
        while True:
            stop = _STOP.search(text, end, window)
            if stop is None:
                end = window
                break
            end = stop.start()
            if text[end] != "<" or self._tag(end, limit, final)[0] > end:
                break
            end += 1
        match = _FULL_STOP.match(text, position, end)
        if match is not None and (match.end() < limit or final):
            return match.end(), any(stop in "。！？｡" for stop in match.group(1))
        if stop is not None or (final and limit <= furthest):
            return end, False
        if limit > furthest:
            cuts = [match.end() for match in _CUT_AFTER.finditer(text, position, furthest)]
            return cuts[-1] if cuts else furthest, False
        raise NeedMore

    def _tag(self, position: int, limit: int, final: bool) -> tuple[int, str]:
        """Return the end and the name of the HTML tag at `position`; no tag ends where it starts.

        Only names of HTML count: "<b>" is markup, "List<String>" is text.
        """
        furthest = position + MAX_TAG
        window = min(limit, furthest)
        start = _TAG_START.match(self._text[position : min(window, position + 24)])
        if start is None:
            return position, ""
        name = (start.group(1) or "").lower()
        open_ended = window < furthest and not final
        if name and start.end() < window - position and name not in HTML_TAGS:
            return position, ""
        closing = "-->" if self._text.startswith("<!--", position) else ">"
        end = self._text.find(closing, position, window)
        if end < 0:
            if open_ended:
                raise NeedMore
            return position, ""
        match = _TAG.fullmatch(self._text, position, end + len(closing))
        if match is None or (name and name not in HTML_TAGS):
            return position, ""
        return match.end(), name
