"""How much of a short turn the recognizer writes down."""

from __future__ import annotations

import soxr

from app.ear import SAMPLE_RATE
from app.ear.recognizer import Recognizer
from app.settings import Settings
from engine.catalogue import Catalogue
from tests.ears import need_ear
from tests.voices import RATE, synthesized


def test_fast_speech_is_heard_to_its_end() -> None:
    """Fourteen numbers in 2.3 s are nearly as many tokens as a turn of that length may have."""
    need_ear()
    settings = Settings()
    catalogue = Catalogue.installed(settings.cache_folder)
    recognizer = Recognizer(catalogue.resolve(settings.ear_recognizer_model))
    numbers = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    sound = soxr.resample(synthesized(numbers, speed=330), RATE, SAMPLE_RATE)
    text = recognizer.quick(sound)
    assert "14" in text or "fourteen" in text.lower(), text
