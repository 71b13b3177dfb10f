"""Where and how often each stage runs: a YAML file, validated, unknown keys refused."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.environment import default_device
from engine.errors import ConfigurationError
from engine.quantization import check_method


class _Strict(BaseModel):
    """Refuses unknown keys and names the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    near = difflib.get_close_matches(str(key), cls.model_fields, n=1, cutoff=0.0)
                    raise ValueError(f"unknown key {key!r}; did you mean {near[0]!r}?")
        return values


class ChunkDeployment(_Strict):
    """Chunk sizes of a generation stage, in its units.

    Attributes:
        first_units: Size of the first chunk: small, for an early first sound.
        maximum_units: No chunk is larger.
        growth: Largest ratio of a chunk to the one before.
        first_units_more: What every other request adds to the first chunk: where many are served,
            the second comes later, and a listener needs more in hand.
    """

    first_units: int = Field(default=8, ge=1)
    maximum_units: int = Field(default=48, ge=1)
    growth: float = Field(default=1.6, gt=1.0)
    first_units_more: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _first_fits(self) -> ChunkDeployment:
        if self.first_units > self.maximum_units:
            raise ValueError(
                f"first_units ({self.first_units}) is larger than maximum_units "
                f"({self.maximum_units})"
            )
        return self


class StepCacheDeployment(_Strict):
    """When a diffusion stage uses an evaluation's result again instead of computing the next.

    Attributes:
        largest_change: Relative change of the module's signal below which it does.
        longest_run: How often in a row it may.
    """

    largest_change: float = Field(default=0.1, gt=0.0)
    longest_run: int = Field(default=2, ge=1)


class DiffusionDeployment(_Strict):
    """How a diffusion stage cuts its input and how it steps. Blocks are those of its attention.

    Attributes:
        steps: Denoising steps of a segment; None leaves them to the pipeline.
        first_blocks: Blocks of the first segment: few, for an early first sound.
        maximum_blocks: No segment is larger.
        growth: Ratio of a segment to the one before.
        look_ahead_blocks: Blocks behind a segment that are denoised along with it; None: the whole
            input is denoised in one piece, and nothing streams out of the stage.
        step_units: The most units in one step of a replica; the most urgent request takes part
            whatever its size.
        cache: When results are used again; None: never, and the samples are exact.
    """

    steps: int | None = Field(default=None, ge=1)
    first_blocks: int = Field(default=1, ge=1)
    maximum_blocks: int = Field(default=4, ge=1)
    growth: float = Field(default=2.0, ge=1.0)
    look_ahead_blocks: int | None = Field(default=1, ge=0)
    step_units: int = Field(default=1024, ge=1)
    cache: StepCacheDeployment | None = None

    @model_validator(mode="after")
    def _first_fits(self) -> DiffusionDeployment:
        if self.first_blocks > self.maximum_blocks:
            raise ValueError(
                f"first_blocks ({self.first_blocks}) is larger than maximum_blocks "
                f"({self.maximum_blocks})"
            )
        return self


class StageDeployment(_Strict):
    """How one stage runs.

    Attributes:
        replicas: How many copies run on the host.
        device: `cpu` or `cuda:N`; left out, it is what vLLM was built for, `cpu` or `cuda:0`.
        dtype: torch dtype name of weights and activations; `auto` chooses by the processor.
        quantization: vLLM's name of how weights are quantised (autoregressive stages); None: as the
            checkpoint says, and not at all if it says nothing.
        max_requests: The most requests in one batch of a replica.
        max_steps: The most steps of a request (autoregressive stages).
        max_step_tokens: The most positions that one step computes (autoregressive stages). Longer
            prompts are computed in pieces of this, between which other stages have their turn.
        key_value_cache_bytes: Memory for the KV cache of a replica (autoregressive stages).
        compile: `auto` uses the compiled form if it is there and has it made for the next start
            if not; `always` waits for it; `never` runs eager.
        cuda_graphs: Batch sizes at which networks of the stage are captured as CUDA graphs, beside
            those of vLLM; larger batches run without. Captured once, at the start.
        input_limit: How much unprocessed input a request may hold in the stage, in steps or units.
        chunk: Chunk sizes (generation stages).
        diffusion: Segments and steps (diffusion stages).
    """

    replicas: int = Field(default=1, ge=1, le=64)
    device: str = Field(default_factory=default_device, pattern=r"^(cpu|cuda:\d+)$")
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "float32"
    quantization: str | None = None
    max_requests: int = Field(default=24, ge=1)
    max_steps: int = Field(default=32768, ge=16)
    max_step_tokens: int = Field(default=2048, ge=16)
    key_value_cache_bytes: int = Field(default=128 * 2**20, ge=2**20)
    compile: Literal["auto", "always", "never"] = "auto"
    cuda_graphs: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    input_limit: int = Field(default=64, ge=1)
    chunk: ChunkDeployment = ChunkDeployment()
    diffusion: DiffusionDeployment = DiffusionDeployment()

    @model_validator(mode="after")
    def _can_be_quantised(self) -> StageDeployment:
        if self.quantization is not None:
            check_method(self.quantization, self.device)
        return self

    @model_validator(mode="after")
    def _graphs_fit(self) -> StageDeployment:
        if self.cuda_graphs and self.device == "cpu":
            raise ValueError(
                f"cuda_graphs is {self.cuda_graphs}, but the stage's device is 'cpu'; leave it out"
            )
        if self.cuda_graphs != sorted(set(self.cuda_graphs)):
            raise ValueError(
                f"cuda_graphs is {self.cuda_graphs}; it must name each batch size once, in order"
            )
        if self.cuda_graphs and self.cuda_graphs[-1] > self.max_requests:
            raise ValueError(
                f"cuda_graphs goes up to {self.cuda_graphs[-1]}, but max_requests is "
                f"{self.max_requests}; no batch is larger than that"
            )
        return self


class AdmissionDeployment(_Strict):
    """How many requests are taken.

    Attributes:
        max_running: The most that run at once: what the machine serves in real time.
        max_waiting: The most that wait for a turn; more are refused with a time to try again.
        retry_after: Seconds that a refused client is told to wait.
        deadline: Seconds after which a request is ended, unless it names its own.
    """

    max_running: int = Field(default=24, ge=1)
    max_waiting: int = Field(default=64, ge=0)
    retry_after: float = Field(default=2.0, gt=0)
    deadline: float = Field(default=3600.0, gt=0)


class DeployConfig(_Strict):
    """A deployment.

    Attributes:
        stages: By stage name; a stage that is not named runs with the defaults.
        admission: How many requests are taken.
    """

    stages: dict[str, StageDeployment] = Field(default_factory=dict)
    admission: AdmissionDeployment = AdmissionDeployment()

    def stage(self, name: str) -> StageDeployment:
        """A stage's deployment."""
        return self.stages.get(name, StageDeployment())


def load_deploy_config(path: Path, stage_names: list[str]) -> DeployConfig:
    """Reads and checks a deployment file.

    Args:
        path: The YAML file.
        stage_names: The pipeline's stages; others are refused.

    Raises:
        ConfigurationError: It cannot be read, or a key or value in it is wrong; the message names
            the key, the value and the mend.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        config = DeployConfig.model_validate({} if values is None else values)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The deployment {path} cannot be read: {error}.") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"The deployment {path} is no valid YAML: {error}.") from error
    except ValidationError as error:
        raise ConfigurationError(_explain(path, error)) from error
    for name in config.stages:
        if name not in stage_names:
            near = difflib.get_close_matches(name, stage_names, n=1, cutoff=0.0)
            raise ConfigurationError(
                f"{path}: stages.{name} is no stage of this pipeline; did you mean {near[0]!r}?"
            )
    for name in stage_names:
        _check_room(path, name, config)
    return config


def _check_room(path: Path, name: str, config: DeployConfig) -> None:
    """A stage must have room for every running request: held ones keep their places."""
    stage = config.stage(name)
    room = stage.replicas * stage.max_requests
    if room < config.admission.max_running:
        raise ConfigurationError(
            f"{path}: stages.{name} has room for {room} requests (replicas times max_requests), "
            f"but admission.max_running is {config.admission.max_running}; raise the one or "
            "lower the other."
        )


def _explain(path: Path, error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"]) or "the file"
        shown = repr(fault["input"])
        if len(shown) > 60:
            shown = shown[:57] + "..."
        lines.append(f"{key}: {fault['msg']} (it is {shown})")
    return f"{path}: " + "; ".join(lines)
