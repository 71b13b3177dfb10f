"""The topology of `conversation`: a Thinker whose words flow into the voice as they are written.

Three routes: `speech` speaks the client's own text, `chat` answers in text and speech, `chat_text`
in text alone. Importing this module is cheap.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from engine import PipelineDescription
from engine.catalogue import Catalogue
from engine.locate import locate
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    Models,
    PipelineConfig,
    StageConfig,
    StageKind,
)
from pipelines.costs import characters, one
from pipelines.lark.pipeline import (
    CODE2WAV,
    SAMPLE_RATE,
    TALKER,
    TEXT_CAPACITY,
    TEXT_EDGE,
    check,
    text_to_phonemes,
    voice_edges,
    weights_folder,
)
from pipelines.lark.text import inspect_text
from pipelines.lark.voices import VOICES

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from engine.adapter import Adapter
    from engine.deploy_config import StageDeployment
    from engine.request import SpeechParameters
    from engine.stage import Replica

FOLDER = Path(__file__).parent
DEFAULT_THINKER = "smollm2-135m-instruct"
LONGEST_DELTA = 64
"""Characters that one token may become."""

UNHEARD_TEXT = 4_096
"""Characters that the Thinker may be ahead of a client that does not read."""


def resolve(model: str | None, cache: Path) -> Models:
    """The voice from the package, the Thinker from a folder, the catalogue or the hub.

    Raises:
        ConfigurationError: A model is not on this machine.
    """
    voice = weights_folder(None)
    thinker = locate(Catalogue.installed(cache), model or DEFAULT_THINKER)
    return {"thinker": thinker, "talker": voice, "code2wav": voice}


def describe(models: Models) -> PipelineDescription:
    """What clients may know."""
    voices = tuple(voice.description for voice in VOICES)
    names = ("conversation", "lark", models["thinker"].name)
    routes = ("speech", "chat", "chat_text")
    return PipelineDescription("conversation", names, voices, SAMPLE_RATE, True, routes)


@functools.cache
def _tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def build_thinker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with the language model."""
    from vllm.tokenizers import get_tokenizer

    from engine.core import CoreSettings
    from engine.text_replica import TextReplica

    settings = CoreSettings.of(folder, deployment, conditioned=False)
    return TextReplica(settings, get_tokenizer(str(folder)))


def chat_to_prompt(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the Thinker."""
    del parameters
    from pipelines.conversation.thinker import ChatToPrompt

    return ChatToPrompt(_tokenizer(models["thinker"]))


BOTH = ("chat", "chat_text")

PIPELINE = PipelineConfig(
    name="conversation",
    stages=(StageConfig("thinker", StageKind.AUTOREGRESSIVE, build_thinker), TALKER, CODE2WAV),
    edges=(
        TEXT_EDGE,
        EdgeConfig(CLIENT, "thinker", chat_to_prompt, 1, 1, one, BOTH),
        EdgeConfig("thinker", CLIENT, None, UNHEARD_TEXT, LONGEST_DELTA, characters, BOTH),
        EdgeConfig(
            "thinker",
            "talker",
            text_to_phonemes,
            TEXT_CAPACITY,
            LONGEST_DELTA,
            characters,
            ("chat",),
        ),
        *voice_edges(("speech", "chat")),
    ),
    describe=describe,
    resolve=resolve,
    check=check,
    inspect=inspect_text,
    warm_up_text="Hello there, and welcome. This is how I sound.",
    deploy=FOLDER / "deploy.yaml",
)
