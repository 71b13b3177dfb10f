"""Step 2: k-means codebooks, and the corpus as codes.

    python -m recipes.lark.codec --data build/lark

Writes `codec.safetensors` (codebooks) and `codes.npz` (every phoneme's group of five codes).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from pipelines.lark.codec import POINTS, Codebooks
from recipes.lark import features as feature_step
from recipes.lark.contours import (
    BETWEEN_SILENCE,
    FIRST_SILENCE,
    Contours,
    contours,
    pitch_statistics,
    trimmed,
)
from recipes.lark.teacher_decoder import first_layer_weight

SIZES = {"duration": 32, "pitch": 512, "energy": 256, "encoding": 512}
STAGES = 2
GLIDE = 3
TEMPO = 0.98
"""Greedy durations are 2 % shorter than the teacher's on the whole."""

ENERGY_RANGE = 1.1
"""A tenth more range of loudness: worth 0.01 DistillMOS on sentences that are in no other set."""

VOICING_WEIGHT = 2.0
"""Weight of a voicing error against one deviation of log-f0 in the pitch metric."""


def nearest(points: Tensor, centroids: Tensor) -> Tensor:
    """Return the index of the nearest centroid [N] for points [N, D] and centroids [C, D]."""
    offsets = 0.5 * (centroids**2).sum(1)
    return torch.cat([(offsets - part @ centroids.T).argmin(1) for part in points.split(65_536)])


def k_means(points: Tensor, weights: Tensor, size: int, rounds: int, seed: int) -> Tensor:
    """Return [size, D] centroids of weighted points; empty clusters restart at bad points."""
    generator = torch.Generator().manual_seed(seed)
    distinct = torch.unique(points, dim=0) if points.shape[1] <= 2 * POINTS else points
    order = torch.randperm(len(distinct), generator=generator)[:size]
    centroids = distinct[order].clone()
    if len(centroids) < size:
        centroids = torch.cat([centroids, centroids[:1].expand(size - len(centroids), -1)])
    for _ in tqdm(range(rounds), desc=f"k-means {size}", leave=False, mininterval=5):
        assigned = nearest(points, centroids)
        mass = torch.zeros(size).index_add_(0, assigned, weights)
        total = torch.zeros_like(centroids).index_add_(0, assigned, points * weights[:, None])
        empty = mass < 1e-9
        centroids = torch.where(empty[:, None], centroids, total / mass.clamp_min(1e-9)[:, None])
        if empty.any():
            error = ((points - centroids[assigned]) ** 2).sum(1) * weights
            count = min(int(empty.sum()), len(points))
            worst = torch.multinomial(error + 1e-9, count, generator=generator)
            centroids[empty.nonzero()[:count, 0]] = points[worst]
    return centroids


def encoding_metric() -> Tensor:
    """Return [128, 128] L so that |(a − b) L| weighs h as the decoder's first layer does."""
    weight = first_layer_weight()[:, :128].double()
    summed = weight.sum(-1)
    metric = summed.T @ summed + torch.einsum("oik,ojk->ij", weight, weight)
    metric += 1e-3 * metric.diagonal().mean() * torch.eye(128)
    return torch.linalg.cholesky(metric).float()


def pitch_points(shapes: Contours) -> Tensor:
    """Return pitch contours in the metric of their codebook, [P, 8]."""
    points = torch.from_numpy(shapes.pitch).clone()
    points[:, :POINTS] *= VOICING_WEIGHT
    return points


def train(
    features: feature_step.Features, sample: int, rounds: int, seed: int
) -> dict[str, Tensor]:
    """Return the codebooks and the pitch statistics as named tensors."""
    statistics = pitch_statistics(features)
    starts, durations = trimmed(features, BETWEEN_SILENCE)
    shapes = contours(features, starts, durations, statistics)
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(durations), generator=generator)[:sample]
    weights = torch.from_numpy(durations)[chosen].float()
    pitch = k_means(pitch_points(shapes)[chosen], weights, SIZES["pitch"], rounds, seed)
    pitch[:, :POINTS] /= VOICING_WEIGHT
    energy = k_means(
        torch.from_numpy(shapes.energy)[chosen], weights, SIZES["energy"], rounds, seed
    )
    metric = encoding_metric()
    residual = torch.from_numpy(features.h[chosen.numpy()]).float() @ metric
    variance = float(((residual - residual.mean(0)) ** 2).sum(1).mul(weights).sum())
    stages = []
    for stage in range(STAGES):
        centroids = k_means(residual, weights, SIZES["encoding"], rounds, seed + stage)
        residual = residual - centroids[nearest(residual, centroids)]
        left = float((residual**2).sum(1).mul(weights).sum()) / variance
        print(f"h: {100 * left:.1f} % of the variance unexplained after stage {stage + 1}")
        stages.append(torch.linalg.solve_triangular(metric, centroids, upper=False, left=False))
    return {
        "pitch": pitch,
        "energy": energy,
        "encoding": torch.stack(stages),
        "statistics": torch.tensor([*statistics, GLIDE]),
    }


def to_codebooks(tensors: dict[str, Tensor]) -> Codebooks:
    """Return the tables that `pipelines.lark.codec.Codec` needs."""
    mean, deviation, glide = (float(value) for value in tensors["statistics"])
    arrays = {name: tensors[name].float().numpy() for name in ("pitch", "energy", "encoding")}
    return Codebooks(**arrays, pitch_mean=mean, pitch_deviation=deviation, glide=int(glide))


def encode(
    features: feature_step.Features, tensors: dict[str, Tensor], silence: int
) -> npt.NDArray[np.int16]:
    """Return the codes [P, 5] of the corpus with `silence` units kept of leading pads."""
    statistics = (float(tensors["statistics"][0]), float(tensors["statistics"][1]))
    starts, durations = trimmed(features, silence)
    shapes = contours(features, starts, durations, statistics)
    table = tensors["pitch"].clone()
    table[:, :POINTS] *= VOICING_WEIGHT
    columns = [torch.from_numpy(durations - 1), nearest(pitch_points(shapes), table)]
    columns.append(nearest(torch.from_numpy(shapes.energy), tensors["energy"]))
    metric = encoding_metric()
    residual = torch.from_numpy(features.h).float() @ metric
    for stage in tensors["encoding"]:
        centroids = stage @ metric
        columns.append(nearest(residual, centroids))
        residual -= centroids[columns[-1]]
    return torch.stack(columns, 1).numpy().astype(np.int16)


def run(data: Path, sample: int, rounds: int, seed: int = 5) -> None:
    """Train the codebooks unless they exist, then encode the corpus."""
    features = feature_step.load(data)
    path = data / "codec.safetensors"
    if not path.exists():
        with torch.no_grad():
            save_file(train(features, sample, rounds, seed), path)
    tensors = load_file(path)
    codes = encode(features, tensors, BETWEEN_SILENCE)
    first = encode(features, tensors, FIRST_SILENCE)[features.phoneme_offsets[:-1]]
    np.savez(
        data / "codes.npz",
        ids=features.ids,
        codes=codes,
        first_codes=first,
        offsets=features.phoneme_offsets,
    )
    used = [len(np.unique(codes[:, column])) for column in range(codes.shape[1])]
    print(json.dumps({"phonemes": len(codes), "utterances": len(features), "codes used": used}))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--sample", type=int, default=300_000, help="phonemes that k-means sees")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    run(options.data, options.sample, options.rounds)


if __name__ == "__main__":
    main()
