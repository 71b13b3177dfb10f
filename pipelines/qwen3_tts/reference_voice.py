"""Reference audio to the voice that the Talker speaks with: speaker embedding and frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import MimiConfig, MimiModel, PreTrainedTokenizerFast
from transformers.models.mimi.modeling_mimi import MimiEncoderOutput

from pipelines.qwen.files import read_json
from pipelines.qwen.weights import load_module
from pipelines.qwen3_tts.configuration import CODEC_FOLDER
from pipelines.qwen3_tts.reference_audio import read_reference
from pipelines.qwen3_tts.rows import VoicePrompt
from pipelines.qwen3_tts.speaker_encoder import (
    SAMPLE_RATE,
    SpeakerEncoder,
    SpeakerSizes,
    log_mels,
)
from pipelines.qwen3_tts.text_stream import tokens_of

ENCODER, SPEAKER = "encoder.", "speaker_encoder."


@dataclass(slots=True)
class VoiceEncoder:
    """The codec's encoder (Mimi, arXiv:2410.00037) and the speaker encoder of one checkpoint.

    Attributes:
        codec: Samples to frames.
        speaker: Mel spectrogram to speaker embedding.
        tokenizer: Of the text.
        codebooks: How many of the codec's codebooks the Talker knows.
        frame_samples: Samples of a frame.
        device: Where both compute.
    """

    codec: MimiModel
    speaker: SpeakerEncoder
    tokenizer: PreTrainedTokenizerFast
    codebooks: int
    frame_samples: int
    device: torch.device

    @classmethod
    def load(
        cls, folder: Path, tokenizer: PreTrainedTokenizerFast, device: torch.device
    ) -> VoiceEncoder:
        """From a Base checkpoint's folder, in float32.

        Raises:
            ConfigurationError: A weight is missing or wrong; it is named.
        """
        config = read_json(folder / CODEC_FOLDER / "config.json")
        codec = MimiModel(MimiConfig(**(config.get("encoder_config") or {})))
        # The checkpoint's decoder is another one.
        for part in ("upsample", "decoder_transformer", "decoder"):
            setattr(codec, part, None)
        load_module(codec, folder / CODEC_FOLDER, ENCODER)
        sizes = read_json(folder / "config.json").get("speaker_encoder_config") or {}
        speaker = SpeakerEncoder(SpeakerSizes.of(sizes))
        load_module(speaker, folder, SPEAKER)
        return cls(
            codec.eval().to(device),
            speaker.eval().to(device),
            tokenizer,
            int(config.get("encoder_valid_num_quantizers", 16)),
            int(config.get("encode_downsample_rate", 1920)),
            device,
        )

    @torch.inference_mode()
    def encode(self, audio: bytes, text: str | None) -> VoicePrompt:
        """The voice of reference audio; with its text, its frames are continued as well.

        Raises:
            ValueError: The audio cannot be read.
        """
        samples = read_reference(audio, SAMPLE_RATE)
        embedding = self.speaker(log_mels(samples).to(self.device)).float().cpu().numpy()
        if not text:
            return VoicePrompt(embedding)
        words = tuple(tokens_of(self.tokenizer, text))
        return VoicePrompt(embedding, self._frames(samples), words)

    def _frames(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        values = torch.from_numpy(samples)[None, None].to(self.device)
        encoded = self.codec.encode(values, return_dict=True)
        if not isinstance(encoded, MimiEncoderOutput) or encoded.audio_codes is None:
            raise TypeError("The codec's encoder gave no codes.")
        codes = encoded.audio_codes[0, : self.codebooks]
        frames = -(-len(samples) // self.frame_samples)
        return codes[:, :frames].T.cpu().numpy()
