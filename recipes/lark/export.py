"""Step 5: export the moving averages as the weights that the server loads.

    python -m recipes.lark.export --data build/lark --to pipelines/lark/weights

Writes `config.json`, `talker.safetensors` and `code2wav.safetensors` in half precision. May run
while the training goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pipelines.lark.decoder import DecoderConfig
from recipes.lark.codec import ENERGY_RANGE, GLIDE, TEMPO
from recipes.lark.sharpening import sharpened
from recipes.lark.talker_model import TalkerConfig


def halved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous half-precision copies."""
    return {name: tensor.half().contiguous() for name, tensor in tensors.items()}


def configuration(talker: TalkerConfig, decoder: DecoderConfig, pitch: Tensor) -> dict[str, object]:
    """Return the content of `config.json`."""
    return {
        "architectures": ["LarkTalker"],
        "model_type": "lark_talker",
        "torch_dtype": "float32",
        "tie_word_embeddings": False,
        **asdict(talker),
        "code2wav": {
            **asdict(decoder),
            "pitch_mean": float(pitch[0]),
            "pitch_deviation": float(pitch[1]),
            "glide": GLIDE,
            "tempo": TEMPO,
            "energy_range": ENERGY_RANGE,
        },
    }


def run(data: Path, folder: Path) -> None:
    """Write the weights below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    talker = torch.load(data / "talker.pt", map_location="cpu", weights_only=True)
    decoder = torch.load(data / "code2wav.pt", map_location="cpu", weights_only=True)
    books = load_file(data / "codec.safetensors")
    save_file(halved(talker["average"]), folder / "talker.safetensors")
    named = {f"codebook.{name}": books[name] for name in ("pitch", "energy", "encoding")}
    average = decoder["average"]
    head = sharpened({name: average[f"head.{name}"] for name in ("weight", "bias")})
    decoding = average | {f"head.{name}": tensor for name, tensor in head.items()}
    save_file(halved(decoding | named), folder / "code2wav.safetensors")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)
    config = configuration(
        TalkerConfig(), DecoderConfig(right=tuple(decoder["right"])), books["statistics"]
    )
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in sorted(folder.glob("*.safetensors"))}
    print(json.dumps({"talker steps": talker["steps"], "decoder steps": decoder["steps"], **sizes}))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--to", type=Path, default=Path("pipelines/lark/weights"))
    options = parser.parse_args()
    run(options.data, options.to)


if __name__ == "__main__":
    main()
