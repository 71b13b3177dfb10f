"""A checkpoint's configuration: what the stages, the adapters and the front read from it.

The published files were written by several versions of transformers, so that rotary parameters
may stand under `rope_scaling` or `rope_parameters`. Only the standard library is needed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine import ConfigurationError
from pipelines.qwen.files import read_json

MODEL_TYPE = "qwen3_tts"
TOKENIZER_TYPE = "qwen3_tts_tokenizer_12hz"
CODEC_FOLDER = "speech_tokenizer"

RESERVED = 1024
"""The last tokens of the Talker's vocabulary are not codes; none but the end token is sampled."""


class Variant(StrEnum):
    """What a checkpoint is for.

    Attributes:
        CUSTOM_VOICE: Speaks with built-in speakers; instructions colour the delivery.
        VOICE_DESIGN: Speaks with the voice that the instructions describe.
        BASE: Speaks with the voice of reference audio.
    """

    CUSTOM_VOICE = "custom_voice"
    VOICE_DESIGN = "voice_design"
    BASE = "base"


@dataclass(frozen=True, slots=True)
class TextTokens:
    """Tokens of the text vocabulary that stand for no text."""

    pad: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class CodecTokens:
    """Tokens of the Talker's vocabulary that stand for no sound."""

    pad: int
    begin: int
    end: int
    think: int
    nothink: int
    think_begin: int
    think_end: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What adapters and clients need of a checkpoint's `config.json`.

    Attributes:
        variant: What it is for.
        size: The size's name, such as `1b7`.
        codebooks: Codes a frame.
        hidden_size: Width of the Talker, and of a speaker's embedding.
        vocabulary: Tokens of the Talker, the codes of the first codebook first.
        text: Tokens of the text vocabulary.
        codec: Tokens of the Talker's vocabulary.
        speakers: Built-in speakers by name, and their tokens.
        dialects: The dialect's language of speakers who have one.
        languages: Languages by name, and their tokens.
    """

    variant: Variant
    size: str
    codebooks: int
    hidden_size: int
    vocabulary: int
    text: TextTokens
    codec: CodecTokens
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]
    languages: Mapping[str, int]

    @property
    def follows_instructions(self) -> bool:
        """Whether instructions are heard; the reference leaves them out for the smallest size."""
        return self.variant is not Variant.BASE and self.size != "0b6"

    @property
    def spoken_languages(self) -> list[str]:
        """Languages that a client may name; dialects come with their speakers."""
        return [name for name in self.languages if "dialect" not in name]


def read_checkpoint(folder: Path) -> Checkpoint:
    """Reads and checks `config.json`.

    Raises:
        ConfigurationError: It is another model's, or lacks a key; the message names it.
    """
    path = folder / "config.json"
    values = read_json(path)
    for key, wanted in (("model_type", MODEL_TYPE), ("tokenizer_type", TOKENIZER_TYPE)):
        if values.get(key) != wanted:
            raise ConfigurationError(
                f"{path}: {key} is {values.get(key)!r}; this pipeline speaks checkpoints with "
                f"{wanted!r}."
            )
    try:
        return _parse(values)
    except KeyError as error:
        raise ConfigurationError(f"{path}: the key {error} is missing.") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: tts_model_type: {error}.") from error


def _parse(values: dict[str, Any]) -> Checkpoint:
    talker = values["talker_config"]
    dialects = talker.get("spk_is_dialect") or {}
    return Checkpoint(
        variant=Variant(values["tts_model_type"]),
        size=str(values.get("tts_model_size", "")),
        codebooks=talker["num_code_groups"],
        hidden_size=talker["hidden_size"],
        vocabulary=talker["vocab_size"],
        text=TextTokens(
            values["tts_pad_token_id"], values["tts_bos_token_id"], values["tts_eos_token_id"]
        ),
        codec=CodecTokens(
            pad=talker["codec_pad_id"],
            begin=talker["codec_bos_id"],
            end=talker["codec_eos_token_id"],
            think=talker["codec_think_id"],
            nothink=talker["codec_nothink_id"],
            think_begin=talker["codec_think_bos_id"],
            think_end=talker["codec_think_eos_id"],
        ),
        speakers=dict(talker.get("spk_id") or {}),
        dialects={name: dialect for name, dialect in dialects.items() if dialect},
        languages=dict(talker["codec_language_id"]),
    )
