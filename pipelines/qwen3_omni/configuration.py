"""What the adapters and clients need to know of a checkpoint's `config.json`; cheap to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import ConfigurationError

MODEL_TYPE = "qwen3_omni_moe"


@dataclass(frozen=True, slots=True)
class TalkerTokens:
    """Tokens between the Thinker and the Talker.

    Attributes:
        message_begin: What begins each message of the Thinker's prompt.
        user: The role that follows it in users' messages.
        media: What stands in the Thinker's prompt for sound and pictures.
        picture: What stands there for a piece of a picture.
        no_think: Codec token that says that the Talker does not think.
        think_begin: Codec token before where its thoughts would be.
        think_end: Codec token behind that.
        codec_pad: Codec token that pads.
        codec_begin: Codec token that begins speech.
        thinker_hidden: The Thinker's width.
    """

    message_begin: int
    user: int
    media: tuple[int, ...]
    picture: int
    no_think: int
    think_begin: int
    think_end: int
    codec_pad: int
    codec_begin: int
    thinker_hidden: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's facts.

    Attributes:
        tokens: Tokens between the Thinker and the Talker.
        speakers: The codec token of each voice, in the checkpoint's order.
        accept_hidden_layer: The Thinker's layer whose states the Talker reads.
        sound_piece: Mel frames that the audio encoder's convolutions take at a time.
        sound_window: Mel frames within which its attention stays.
    """

    tokens: TalkerTokens
    speakers: Mapping[str, int]
    accept_hidden_layer: int
    sound_piece: int
    sound_window: int


def read_checkpoint(folder: Path) -> Checkpoint:
    """Reads a checkpoint's `config.json`.

    Raises:
        ConfigurationError: It is not there, is another model's, has no Talker, or lacks a field.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}. Name a checkpoint.") from error
    if config.get("model_type") != MODEL_TYPE:
        raise ConfigurationError(
            f"{path}: model_type is {config.get('model_type')!r}; the pipeline qwen3_omni serves "
            f"{MODEL_TYPE!r}, such as Qwen/Qwen3-Omni-30B-A3B-Instruct."
        )
    if not config.get("enable_audio_output", True):
        raise ConfigurationError(
            f"{path}: enable_audio_output is false: this checkpoint has no Talker. Take one that "
            "speaks, such as Qwen/Qwen3-Omni-30B-A3B-Instruct."
        )
    try:
        return _checkpoint(config)
    except KeyError as error:
        raise ConfigurationError(
            f"{path}: {error.args[0]!r} is missing. Fetch it again."
        ) from error


def _checkpoint(config: dict[str, Any]) -> Checkpoint:
    thinker, talker = config["thinker_config"], config["talker_config"]
    tokens = TalkerTokens(
        message_begin=config["im_start_token_id"],
        user=config["user_token_id"],
        picture=thinker["image_token_id"],
        media=tuple(thinker[f"{kind}_token_id"] for kind in ("audio", "image", "video")),
        no_think=talker["codec_nothink_id"],
        think_begin=talker["codec_think_bos_id"],
        think_end=talker["codec_think_eos_id"],
        codec_pad=talker["codec_pad_id"],
        codec_begin=talker["codec_bos_id"],
        thinker_hidden=talker["thinker_hidden_size"],
    )
    encoder = thinker["audio_config"]
    # Where they are left out, what transformers takes.
    piece = 2 * encoder.get("n_window", 50)
    return Checkpoint(
        tokens=tokens,
        speakers=dict(talker["speaker_id"]),
        accept_hidden_layer=talker["accept_hidden_layer"],
        sound_piece=piece,
        sound_window=encoder.get("n_window_infer", 800) // piece * piece,
    )
