"""The published checkpoints: their configurations are read, and every weight has its place.

Nobody here has their values. But what their files say, and which weights they hold, is public.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from transformers import MimiConfig, MimiModel, Qwen3OmniMoeConfig

from engine import (
    AudioContent,
    Chat,
    ChatMessage,
    PictureContent,
    SpeechParameters,
    TextPayload,
)
from engine.deploy_config import StageDeployment
from engine.pipeline_config import CLIENT, StageKind
from engine.text_request import TextPrompt
from pipelines.qwen.weights import require_module
from pipelines.qwen2_5_omni.checkpoint import DENOISER, VOCODER, load_config
from pipelines.qwen3_omni.decoder import Decoder, decoder_sizes
from pipelines.qwen3_tts.code2wav import CodecDecoder
from pipelines.qwen3_tts.codec import DecoderSizes
from pipelines.qwen3_tts.configuration import CODEC_FOLDER
from pipelines.qwen3_tts.sampling import SamplingDefaults
from pipelines.qwen3_tts.speaker_encoder import SpeakerEncoder, SpeakerSizes
from tests.checkpoints import published, published_tts_weights, published_weights
from tests.pipelines.published.checkpoints import (
    PUBLISHED,
    QWEN3_OMNI,
    QWEN3_TTS,
    BuiltError,
    Published,
    models_without_memory,
)
from tests.pipelines.published.conftest import Folders

DEPLOYMENT = StageDeployment(dtype="bfloat16", compile="never", max_requests=4, max_steps=2048)
TTS = [checkpoint for checkpoint in PUBLISHED if checkpoint.pipeline is QWEN3_TTS]
OMNI = [checkpoint for checkpoint in PUBLISHED if checkpoint.pipeline is not QWEN3_TTS]

each = pytest.mark.parametrize("checkpoint", PUBLISHED, ids=str)


def test_what_is_written_down_here_is_what_is_published() -> None:
    """By the counts of tensors and parameters that lists of the files give."""
    omni = published_weights.qwen3_omni()
    assert len(omni) == published_weights.QWEN3_OMNI_TENSORS
    parameters = sum(math.prod(shape) for shape in omni.values())
    assert parameters == published_weights.QWEN3_OMNI_PARAMETERS
    for size, count in published_tts_weights.TALKER_TENSORS.items():
        assert len(published_tts_weights.qwen3_tts("custom_voice", size)) == count
    decoder = [name for name in published_tts_weights.codec() if name.startswith("decoder.")]
    assert len(decoder) == published_tts_weights.CODEC_DECODER_TENSORS


@each
def test_the_folder_is_taken_and_described(checkpoint: Published, folders: Folders) -> None:
    folder, _ = folders(checkpoint)
    models = checkpoint.pipeline.resolve(str(folder), folder)
    description = checkpoint.pipeline.describe(models)
    assert checkpoint.name in description.models
    assert description.sample_rate == 24_000
    assert description.voices


@each
def test_a_checkpoint_from_the_hub_has_its_name_there(
    checkpoint: Published, folders: Folders, tmp_path: Path
) -> None:
    """In the hub's cache its folder is named after a commit."""
    folder, _ = folders(checkpoint)
    snapshots = tmp_path / f"models--Qwen--{checkpoint.name}" / "snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / ("0" * 40)).symlink_to(folder)
    models = checkpoint.pipeline.resolve(str(snapshots / ("0" * 40)), folder)
    description = checkpoint.pipeline.describe(models)
    assert description.models == (checkpoint.pipeline.name, f"Qwen/{checkpoint.name}")


@pytest.mark.parametrize("checkpoint", OMNI, ids=str)
def test_a_conversation_with_sound_becomes_a_prompt(
    checkpoint: Published, folders: Folders
) -> None:
    """With a processor and a tokenizer in the files of older versions of transformers."""
    folder, _ = folders(checkpoint)
    sound = AudioContent(0.1 * np.sin(np.arange(24_000, dtype=np.float32)))
    prompt = prompt_of(checkpoint, folder, ChatMessage("user", "What is this?", sounds=(sound,)))
    assert prompt.media
    assert sum(item.length for item in prompt.media) > 10
    assert len(prompt.token_ids) > sum(item.length for item in prompt.media)


def test_a_picture_becomes_a_part_of_the_prompt(folders: Folders) -> None:
    """One embedding for each square of 32 pixels, two patches of the published encoder a side."""
    (checkpoint,) = [checkpoint for checkpoint in OMNI if checkpoint.pipeline is QWEN3_OMNI]
    folder, _ = folders(checkpoint)
    picture = PictureContent(np.zeros((320, 640, 3), np.uint8))
    (item,) = prompt_of(checkpoint, folder, ChatMessage("user", "?", pictures=(picture,))).media
    assert (item.modality, item.length) == ("image", 10 * 20)


def prompt_of(checkpoint: Published, folder: Path, message: ChatMessage) -> TextPrompt:
    """What the pipeline's own adapter gives the Thinker."""
    models = checkpoint.pipeline.resolve(str(folder), folder)
    into_thinker = next(
        edge
        for edge in checkpoint.pipeline.edges
        if edge.source == CLIENT and "chat" in edge.routes and edge.adapter is not None
    )
    assert into_thinker.adapter is not None
    adapter = into_thinker.adapter(models, SpeechParameters())
    adapter.push(Chat((message,)))
    prompt = adapter.pull()
    assert isinstance(prompt, TextPrompt)
    return prompt


@pytest.mark.parametrize("checkpoint", TTS, ids=str)
def test_a_text_becomes_rows(checkpoint: Published, folders: Folders) -> None:
    folder, _ = folders(checkpoint)
    models = checkpoint.pipeline.resolve(str(folder), folder)
    (voice, *_) = checkpoint.pipeline.describe(models).voices
    asked = SpeechParameters(voice=voice.name, language="en")
    into_talker = next(e for e in checkpoint.pipeline.edges if e.target == "talker")
    assert into_talker.adapter is not None
    adapter = into_talker.adapter(models, asked)
    adapter.push(TextPayload("Good morning, everyone."))
    adapter.close()
    made = 0
    while (rows := adapter.pull()) is not None:
        assert rows.values.shape[1] >= 1 + 16
        made += len(rows.values)
    assert made > 5


def test_sampling_follows_the_published_defaults(folders: Folders) -> None:
    folder, _ = folders(TTS[0])
    sampling = SamplingDefaults.of(folder).of_request(SpeechParameters())
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.9, 50, 1.0)
    assert sampling.repetition_penalty == 1.05
    assert sampling.maximum_steps == 8192


@each
def test_every_weight_of_the_language_models_has_its_place(
    checkpoint: Published, folders: Folders
) -> None:
    """Thinker and Talker are built by the pipeline itself, up to vLLM's engine core."""
    folder, shapes = folders(checkpoint)
    models = checkpoint.pipeline.resolve(str(folder), folder)
    stages = [s for s in checkpoint.pipeline.stages if s.kind is StageKind.AUTOREGRESSIVE]
    for stage in stages:
        with models_without_memory(shapes), pytest.raises(BuiltError) as built:
            stage.build(models[stage.name], DEPLOYMENT)
        parameters = dict(built.value.model.named_parameters())
        assert set(parameters) == built.value.loaded
        assert all(values.is_meta for values in parameters.values())
        # Some rows of the Thinker's embedding, which a Talker has besides its own weights.
        parameters.pop("marks", None)
        made = sum(values.numel() for values in parameters.values())
        assert made == expected(checkpoint, stage.name, shapes)


def expected(checkpoint: Published, stage: str, shapes: published_weights.Shapes) -> int:
    """How many parameters of a stage's weights the model must have.

    The encoder of pictures is not loaded by a pipeline that takes none.
    """
    unused = "thinker.visual." if checkpoint.pipeline.see is None else "nothing"
    names = [n for n in shapes if n.startswith(f"{stage}.") and not n.startswith(unused)]
    return sum(math.prod(shapes[name]) for name in names)


@pytest.mark.parametrize("checkpoint", TTS, ids=str)
def test_every_weight_of_the_codec_has_its_place(checkpoint: Published, folders: Folders) -> None:
    folder, _ = folders(checkpoint)
    config = published.QWEN3_TTS_CODEC
    with torch.device("meta"):
        decoder = CodecDecoder(DecoderSizes.of(config["decoder_config"]))
        encoder = MimiModel(MimiConfig(**config["encoder_config"]))
    require_module(decoder, folder / CODEC_FOLDER, "decoder.")
    for unused in ("upsample", "decoder_transformer", "decoder"):
        setattr(encoder, unused, None)
    require_module(encoder, folder / CODEC_FOLDER, "encoder.")


@pytest.mark.parametrize("size", ["1b7", "0b6"])
def test_every_weight_of_the_speaker_encoder_has_its_place(size: str, folders: Folders) -> None:
    name = {"1b7": "Qwen3-TTS-12Hz-1.7B-Base", "0b6": "Qwen3-TTS-12Hz-0.6B-Base"}[size]
    folder, _ = folders(next(c for c in TTS if c.name == name))
    sizes = SpeakerSizes.of(published.qwen3_tts("base", size)["speaker_encoder_config"])
    with torch.device("meta"):
        encoder = SpeakerEncoder(sizes)
    require_module(encoder, folder, "speaker_encoder.")


@pytest.mark.parametrize("checkpoint", OMNI, ids=str)
def test_every_weight_of_what_makes_sound_has_its_place(
    checkpoint: Published, folders: Folders
) -> None:
    folder, _ = folders(checkpoint)
    for prefix, module in sound_modules(checkpoint, folder).items():
        require_module(module, folder, prefix)


def sound_modules(checkpoint: Published, folder: Path) -> dict[str, nn.Module]:
    """The modules by the prefix of their weights."""
    from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
        Qwen2_5OmniToken2WavBigVGANModel,
        Qwen2_5OmniToken2WavDiTModel,
    )

    with torch.device("meta"):
        if checkpoint.pipeline is QWEN3_OMNI:
            config = Qwen3OmniMoeConfig.from_pretrained(folder).code2wav_config
            return {"code2wav.": Decoder(decoder_sizes(config))}
        token2wav = load_config(folder).token2wav_config
        return {
            DENOISER: Qwen2_5OmniToken2WavDiTModel(token2wav.dit_config),
            VOCODER: Qwen2_5OmniToken2WavBigVGANModel(token2wav.bigvgan_config),
        }
