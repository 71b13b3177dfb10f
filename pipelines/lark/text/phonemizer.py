"""Words to phonemes: the one place that knows the G2P library.

The reading of a word may depend on the tags of its neighbours ("I read", "to read") or on the sound
that follows ("the end"). `Phonemizer.dependence` tells what a word depends on, so that most words
can be spoken without waiting for the next one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import hibari.g2p
import hibari.g2p.oov
import hibari.g2p.tagger as hibari_tagger
from hibari.g2p.token import Tok

from pipelines.lark.text.characters import latin

_SPECIAL = {"a": False, "an": False, "i": False, "by": True, "the": True, "to": True, "in": True,
            "am": True, "used": True, "vs": False}  # fmt: skip
"""Words with rules of their own, and whether the sound that follows counts."""
_STRETCHED = re.compile(r"(.)\1{2,}", re.IGNORECASE)
_CONSONANTS = re.compile(r"[b-df-hj-np-tv-xz]+", re.IGNORECASE)
_ENDINGS = ((1, ""), (2, ""), (3, ""), (3, "y"), (3, "e"), (4, ""))
_MARK_TAGS = {",": ",", ".": ".", "!": ".", "?": ".", "“": "``", "”": "''", "(": "-LRB-",
              ")": "-RRB-", ";": ":", ":": ":", "—": ":", "…": ":"}  # fmt: skip
_MARK_TOKENS = {"“": '"', "”": '"'}
_WORD_TAG = "NN"


@dataclass(frozen=True, slots=True)
class Dependence:
    """What must be known beyond a word before its reading is certain."""

    tag: bool
    """Its part of speech, hence the two tokens after it."""
    sound: bool
    """The first sound after it."""


@dataclass(slots=True)
class Sentence:
    """The tokens of a sentence as far as they are known, and the tags given to them so far."""

    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    closed: bool = False


class Phonemizer:
    """English text to phonemes and their ids.

    Load it once (about half a second) and share it: after that it is only read, from any thread.
    """

    def __init__(self, british: bool = False) -> None:
        """Load the dictionaries.

        Args:
            british: Whether to read British English rather than American.
        """
        name = "oov_gb.onnx" if british else "oov.onnx"
        network = hibari.g2p.oov.OOV(os.path.join(hibari.g2p.ASSETS, name))
        self._alphabet = frozenset(network.cin)
        self._g2p = hibari.g2p.G2P(oov=lru_cache(maxsize=8192)(network), british=british)
        self._golds = self._g2p.lexicon.golds
        self._silvers = self._g2p.lexicon.silvers
        self._tagger = self._g2p.tagger
        with open(os.path.join(hibari.g2p.ASSETS, "vocab.json"), encoding="utf-8") as file:
            self.vocabulary: dict[str, int] = json.load(file)
        self.dependence = lru_cache(maxsize=32768)(self._dependence)
        self.spelled = lru_cache(maxsize=4096)(self._spelled)
        self._free = lru_cache(maxsize=32768)(self._read_free)
        self._split = lru_cache(maxsize=32768)(self._tokenize)

    def ids(self, phonemes: str) -> list[int]:
        """Return the ids of a phoneme string."""
        vocabulary = self.vocabulary
        return [vocabulary[character] for character in phonemes if character in vocabulary]

    # -- words --------------------------------------------------------------------------------

    def written(self, word: str) -> str:
        """Return the form of a word under which the dictionaries are most likely to know it."""
        if word.isascii() and word.islower() and not _STRETCHED.search(word):
            return word
        if _STRETCHED.search(word):
            shorter = [_STRETCHED.sub(repeat, word) for repeat in (r"\1\1", r"\1")]
            word = next((form for form in shorter if self._knows(form)), shorter[0])
        if not word.isascii() and not self._knows(word):
            folded = "".join(latin(character) or character for character in word)
            if self._knows(folded) or not self._alphabet.issuperset(word):
                word = folded
        if word.isupper() and len(word) > 5 and word.isalpha() and not self._knows(word):
            return word.lower()
        return word

    def is_unpronounceable(self, word: str) -> bool:
        """Tell whether an unknown word has nothing but consonants and so must be spelled."""
        return _CONSONANTS.fullmatch(word) is not None and not self._knows(word)

    def tokens(self, word: str) -> tuple[str, ...]:
        """Split a word as the tagger was trained to see it: "don't" is "do", "n't"."""
        return self._split(word)

    @staticmethod
    def mark_token(mark: str) -> str:
        """Return what the tagger sees of a punctuation mark."""
        return _MARK_TOKENS.get(mark, mark)

    def _tokenize(self, word: str) -> tuple[str, ...]:
        return tuple(self._g2p.tokenizer.split(word))

    def _knows(self, word: str) -> bool:
        return any(form in self._golds or form in self._silvers for form in (word, word.lower()))

    def _dependence(self, word: str) -> Dependence:
        lower = word.lower()
        untagged = word not in self._tagger.tagdict
        if lower in _SPECIAL:
            return Dependence(untagged, _SPECIAL[lower])
        entry = self._golds.get(word)
        if isinstance(entry, str) and ("'" in word or len(self.tokens(word)) == 1):
            return Dependence(False, False)
        if not word.isalpha():
            return Dependence(True, True)
        if word.isupper() and len(word) > 1:
            return Dependence(untagged, True)
        if isinstance(entry, dict):
            return Dependence(untagged, "None" in entry)
        if self._silvers.get(word) is not None:
            return Dependence(False, False)
        stems = (lower[:-cut] + ending for cut, ending in _ENDINGS if len(lower) > cut + 1)
        if any(isinstance(self._golds.get(stem), dict) for stem in stems):
            return Dependence(untagged, True)
        return Dependence(False, False)

    # -- tags ---------------------------------------------------------------------------------

    def tag(self, sentence: Sentence, index: int) -> str:
        """Return the tag of a token whose two followers are known, or that ends its sentence."""
        tagger = self._tagger
        known = tagger.tagdict.get(sentence.tokens[index])
        if known is not None:
            return str(known)
        tags = sentence.tags
        while len(tags) <= index:
            tags.append(self._predict(sentence, len(tags)))
        return tags[index]

    def _predict(self, sentence: Sentence, index: int) -> str:
        tagger, tokens, tags = self._tagger, sentence.tokens, sentence.tags
        known = tagger.tagdict.get(tokens[index])
        if known is not None:
            return str(known)
        first = max(0, index - 2)
        context = hibari_tagger.context(tokens[first : index + 3], tagger.vocab)
        previous = tags[index - 1] if index > 0 else hibari_tagger.START[1]
        earlier = tags[index - 2] if index > 1 else hibari_tagger.START[1 - (index == 0)]
        features = hibari_tagger.features(index - first, tokens[index], context, previous, earlier)
        return str(tagger.predict(features))

    # -- phonemes -----------------------------------------------------------------------------

    def _spelled(self, letters: str) -> str:
        """Return the phonemes of letters named one by one."""
        ascii_letters = "".join(latin(character) or "" for character in letters).upper()
        phonemes, _ = self._g2p.lexicon.get_NNP(ascii_letters)
        return phonemes or ""

    def _read_free(self, word: str) -> str:
        tag = self._tagger.tagdict.get(self.tokens(word)[-1], _WORD_TAG)
        return self._phonemes(word, [tag] * len(self.tokens(word)), [])

    def read(self, word: str, tags: Sequence[str] | None, following: Sequence[str]) -> str:
        """Return the phonemes of a word.

        Args:
            word: The word, in its `written` form.
            tags: The tags of its tokens; None for a word that does not depend on them.
            following: What comes after it in the sentence up to the next word or pause.
        """
        if tags is None and not following:
            return self._free(word)
        own = tags or [self._tagger.tagdict.get(token, _WORD_TAG) for token in self.tokens(word)]
        after = []
        for text in following:
            if text in _MARK_TAGS:
                after.append(Tok(text, _MARK_TAGS[text], " ", phonemes=text))
                continue
            pieces = self.tokens(text)
            known = [self._tagger.tagdict.get(piece, _WORD_TAG) for piece in pieces]
            after.append(Tok(text, known[-1], " "))
        return self._phonemes(word, own, after)

    def _phonemes(self, word: str, tags: Sequence[str], after: list[Tok]) -> str:
        pieces = self.tokens(word)
        # A word is no punctuation, whatever the tagger thinks: such a tag would silence it.
        own = [
            Tok(piece, tag if tag[0].isalpha() else _WORD_TAG, "")
            for piece, tag in zip(pieces, tags, strict=True)
        ]
        own[-1].whitespace = " "
        result = self._g2p.phonemize_tokens(own + after)
        words = result[: len(result) - len(after)]
        phonemes = "".join(token.phonemes or "" for token in words).strip()
        return phonemes if self.ids(phonemes) else self.spelled(word)
