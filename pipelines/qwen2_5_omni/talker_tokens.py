"""What the Talker's rows are made with, from a checkpoint's folder."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from pipelines.qwen2_5_omni.adapters import TalkerTokens
from pipelines.qwen2_5_omni.checkpoint import load_config, load_speakers

MESSAGE_BEGIN, MESSAGE_END = "<|im_start|>", "<|im_end|>"


@functools.cache
def end_tokens(folder: Path) -> tuple[int, int]:
    """The Talker's tokens that end speech."""
    talker = load_config(folder).talker_config
    return talker.tts_codec_pad_token_id, talker.tts_codec_end_token_id


def mark_token_ids(folder: Path) -> list[int]:
    """The Thinker's tokens for which the Talker's marks stand, in the marks' order.

    That is the end of a reply, what follows for ever, and the speakers' tokens.
    """
    talker = load_config(folder).talker_config
    speakers = [speaker.begin_token for speaker in load_speakers(folder).values()]
    return [talker.tts_text_end_token_id, talker.tts_text_pad_token_id, *speakers]


@functools.cache
def tokens_of(folder: Path, voice: str) -> TalkerTokens:
    """The tokens for a voice."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    config = load_config(folder)
    talker, thinker = config.talker_config, config.thinker_config
    marks = mark_token_ids(folder)
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
        begin=marks.index(load_speakers(folder)[voice].begin_token),
        end=marks.index(talker.tts_text_end_token_id),
        pad=marks.index(talker.tts_text_pad_token_id),
    )
