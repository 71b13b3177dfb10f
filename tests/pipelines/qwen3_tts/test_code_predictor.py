"""The code predictor alone: in half precision, as graphs, and without waiting for the device."""

from __future__ import annotations

import pytest
import torch

from engine.code_choice import CodeChoice, CodeChooser, CodeSampling, CodeStream
from engine.code_graphs import CodeGraphs
from pipelines.qwen3_tts.code_predictor import CodePredictor
from pipelines.qwen3_tts.frame_transformer import FrameKernels
from pipelines.qwen3_tts.model_configuration import Qwen3TTSPredictorConfig
from tests.graphs import RepeatRecorder
from tests.pipelines.qwen3_tts.torch_kernels import TorchKernels
from tests.synchronisation import DEVICE, no_synchronisation

CPU = torch.device("cpu")
HIDDEN, CODES, CODEBOOKS = 48, 96, 6
CONFIG = Qwen3TTSPredictorConfig(
    vocab_size=CODES,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    rms_norm_eps=1e-6,
    rope_theta=10_000.0,
    num_code_groups=CODEBOOKS,
)
WARM = CodeSampling(1.0, top_k=50, top_p=0.8)
SAMPLINGS = [WARM, CodeSampling(), CodeSampling(0.9, top_k=50), CodeSampling(1.2)]
"""How the requests of a batch choose, in turn."""


class Talker:
    """What graphs need of a model: a code predictor, and the Talker's embedding of codes."""

    row_width, vector_width, begin_token, end_token = 1, 0, 0, None
    codebooks, residual_codes = CODEBOOKS, CODES

    def __init__(self, kernels: FrameKernels, device: torch.device = CPU) -> None:
        torch.manual_seed(0)
        self.predictor = CodePredictor(CONFIG, HIDDEN, kernels)
        for parameter in self.predictor.parameters():
            parameter.data.normal_(0.0, 0.3)
        self.table = torch.randn(CODES, HIDDEN)
        self.predictor.to(device)
        self.table = self.table.to(device)

    def to(self, dtype: torch.dtype) -> Talker:
        self.predictor.to(dtype)
        self.predictor.turns = self.predictor.turns.float()  # as the loader leaves it
        self.table = self.table.to(dtype)
        return self

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        embedded = torch.nn.functional.embedding(tokens, self.table)
        return self.predictor(hidden_states, tokens, embedded, choice)


def vllm_kernels() -> FrameKernels:
    """vLLM's kernels, where its build is one for processors."""
    pytest.importorskip("vllm")
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        pytest.skip("vLLM is built for another device")
    current_platform.import_kernels()
    from pipelines.qwen3_tts.frame_kernels import VllmKernels

    return VllmKernels()


def inputs(batch: int, device: torch.device = CPU) -> tuple[torch.Tensor, torch.Tensor]:
    """States and tokens."""
    generator = torch.Generator().manual_seed(batch)
    states = torch.randn(batch, HIDDEN, generator=generator)
    return states.to(device), torch.randint(CODES, (batch,), generator=generator).to(device)


def choice_of(batch: int, device: torch.device = CPU, *, greedy: bool = False) -> CodeChoice | None:
    """A step's choices; the same for the same batch size."""
    samplings = [CodeSampling() if greedy else SAMPLINGS[i % len(SAMPLINGS)] for i in range(batch)]
    streams = [CodeStream(sampling, i, device) for i, sampling in enumerate(samplings)]
    return CodeChooser(CODEBOOKS - 1, CODES, device).choice(streams)


@torch.inference_mode()
def test_torchs_operations_do_what_vllms_kernels_do() -> None:
    states, tokens = inputs(5)
    ours, theirs = Talker(vllm_kernels()), Talker(TorchKernels())
    for greedy in (True, False):
        choice = choice_of(5, greedy=greedy)
        made = ours.predict_codes(states, tokens, choice)
        assert torch.equal(made, theirs.predict_codes(states, tokens, choice))
        assert torch.equal(made[:, 0], tokens)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.inference_mode()
def test_half_precision_gives_nearly_the_same_codes(dtype: torch.dtype) -> None:
    states, tokens = inputs(16)
    kernels = vllm_kernels()
    wanted = Talker(kernels).predict_codes(states, tokens, None)
    made = Talker(kernels).to(dtype).predict_codes(states.to(dtype), tokens, None)
    # Where two codes are about as probable the other one may win, and all that follow it differ.
    assert (made[:, 1] == wanted[:, 1]).float().mean() > 0.8


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@torch.inference_mode()
def test_graphs_give_the_codes_of_the_model(greedy: bool) -> None:
    talker, recorder = Talker(TorchKernels()), RepeatRecorder()
    graphs = CodeGraphs(talker, (1, 2, 4), CPU, recorder)
    graphs.capture(torch.zeros(1, HIDDEN))
    assert len(recorder.graphs) == 6
    for batch, replayed in ((4, 1), (1, 1), (3, 1), (2, 1), (5, 0)):
        before = sum(recorder.replays)
        states, tokens = inputs(batch)
        choice = choice_of(batch, greedy=greedy)
        wanted = talker.predict_codes(states, tokens, choice)
        assert torch.equal(graphs.predict_codes(states, tokens, choice), wanted)
        assert sum(recorder.replays) == before + replayed


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
def test_nobody_waits_for_the_device(greedy: bool) -> None:
    talker = Talker(TorchKernels(), DEVICE)
    states, tokens = inputs(3, DEVICE)
    chooser = CodeChooser(CODEBOOKS - 1, CODES, DEVICE)
    # There is no generator of a GPU here; what draws is not looked at by what finds waiting.
    streams = [CodeStream(CodeSampling() if greedy else WARM, 0, CPU), None, None]
    with torch.inference_mode(), no_synchronisation():
        codes = talker.predict_codes(states, tokens, chooser.choice(streams))
        on_host = codes.to("cpu", non_blocking=True)
    assert codes.device == DEVICE
    assert on_host.shape == (3, CODEBOOKS)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@torch.inference_mode()
def test_graphs_on_a_gpu_give_the_codes_of_the_model(greedy: bool, dtype: torch.dtype) -> None:
    device = torch.device("cuda:0")
    talker = Talker(TorchKernels(), device).to(dtype)
    graphs = CodeGraphs(talker, (1, 2, 4), device)
    graphs.capture(torch.zeros(1, HIDDEN, dtype=dtype, device=device))
    for batch in (4, 1, 3, 2, 5):
        states, tokens = inputs(batch, device)
        choice = choice_of(batch, device, greedy=greedy)
        wanted = talker.predict_codes(states.to(dtype), tokens, choice)
        torch.cuda.set_sync_debug_mode("error")
        made = graphs.predict_codes(states.to(dtype), tokens, choice)
        torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(made, wanted)
