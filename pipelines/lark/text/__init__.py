"""From written text that arrives in pieces to the phonemes of the voice.

The way of a text: `lexer` cuts it into tokens, folded by `characters` and traced to their places;
`sentences` drops markup and ends sentences; `segments` takes a token apart; `words`, `quantities`,
`dates` and `codes` say how each part is read; `units` asks the `phonemizer` for sounds as soon as
they are certain; `reader` joins them into phrases. `inspection` looks ahead without sounds.
"""

from pipelines.lark.text.inspection import inspect_text
from pipelines.lark.text.phonemizer import Phonemizer
from pipelines.lark.text.phrase import Phrase, Word
from pipelines.lark.text.reader import SpeechReader

__all__ = ["Phonemizer", "Phrase", "SpeechReader", "Word", "inspect_text"]
