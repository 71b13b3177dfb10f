"""What the Talker's rows are made with, from a checkpoint's folder."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from engine import ConfigurationError
from engine.weight_files import weight_files
from pipelines.qwen2_5_omni.adapters import Rows, TalkerTokens
from pipelines.qwen2_5_omni.checkpoint import load_config, load_speakers

EMBEDDING = "thinker.model.embed_tokens.weight"
MESSAGE_BEGIN, MESSAGE_END = "<|im_start|>", "<|im_end|>"


@functools.cache
def end_tokens(folder: Path) -> tuple[int, int]:
    """The Talker's tokens that end speech."""
    talker = load_config(folder).talker_config
    return talker.tts_codec_pad_token_id, talker.tts_codec_end_token_id


@functools.cache
def tokens_of(folder: Path, voice: str) -> TalkerTokens:
    """The tokens and embeddings for a voice."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    config = load_config(folder)
    talker, thinker = config.talker_config, config.thinker_config
    begin = load_speakers(folder)[voice].begin_token
    ids = (begin, talker.tts_text_end_token_id, talker.tts_text_pad_token_id)
    rows = _embeddings(folder, ids)
    return TalkerTokens(
        codec_pad=talker.tts_codec_pad_token_id,
        codec_begin=talker.tts_codec_start_token_id,
        media=(
            thinker.audio_token_index,
            thinker.image_token_index,
            thinker.video_token_index,
        ),
        message_begin=int(tokenizer.convert_tokens_to_ids(MESSAGE_BEGIN)),
        message_end=int(tokenizer.convert_tokens_to_ids(MESSAGE_END)),
        begin=rows[0],
        end=rows[1],
        pad=rows[2],
    )


def _embeddings(folder: Path, ids: tuple[int, ...]) -> Rows:
    """Rows of the Thinker's embedding, float32, shape [ids, hidden].

    Raises:
        ConfigurationError: The checkpoint has none.
    """
    for path in weight_files(folder, (EMBEDDING,)):
        with safe_open(path, framework="pt") as file:
            if EMBEDDING in file.keys():  # noqa: SIM118 (it is no mapping)
                table = file.get_slice(EMBEDDING)
                return np.stack([table[token : token + 1][0].float().numpy() for token in ids])
    raise ConfigurationError(f"{folder} holds no {EMBEDDING}.")
