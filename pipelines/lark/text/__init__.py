"""From written text that arrives in pieces to the phonemes of the voice."""

from pipelines.lark.text.inspection import TextReport, inspect_text
from pipelines.lark.text.phonemizer import Phonemizer
from pipelines.lark.text.phrase import Phrase, Word
from pipelines.lark.text.reader import SpeechReader

__all__ = ["Phonemizer", "Phrase", "SpeechReader", "TextReport", "Word", "inspect_text"]
