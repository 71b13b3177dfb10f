"""Judges that travel in packages: DistillMOS and Resemblyzer's speaker encoder.

pip install --no-deps distillmos==0.9.1 xls-r-sqa==0.1.0
pip install --no-deps resemblyzer==0.1.4
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy import signal
from torch import Tensor, nn

FloatArray = npt.NDArray[np.float32]

RATE = 16_000
MEL_WINDOW, MEL_HOP, MEL_CHANNELS = 400, 160, 40
PARTIAL = 160
"""Mel frames that the speaker encoder sees at once, 1.6 s."""


def resampled(samples: FloatArray, rate: int) -> FloatArray:
    """Return the sound at 16 kHz."""
    divisor = np.gcd(rate, RATE)
    result: FloatArray = signal.resample_poly(samples, RATE // divisor, rate // divisor)
    return result.astype(np.float32)


class NaturalnessJudge:
    """DistillMOS."""

    def __init__(self) -> None:
        import distillmos

        self.model = distillmos.ConvTransformerSQAModel().eval()

    @torch.inference_mode()
    def __call__(self, samples: FloatArray) -> float:
        """Return the predicted mean opinion score of a sound at 16 kHz."""
        return float(self.model(torch.from_numpy(samples)[None]))


class SpeakerEncoder(nn.Module):
    """Resemblyzer's network, with its weights, on a mel spectrogram of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(MEL_CHANNELS, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)
        spec = find_spec("resemblyzer")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("The speaker encoder needs the package resemblyzer.")
        path = Path(spec.origin).with_name("pretrained.pt")
        stored = torch.load(path, map_location="cpu", weights_only=True)["model_state"]
        own = self.state_dict()
        self.load_state_dict({name: tensor for name, tensor in stored.items() if name in own})
        self.filters = _mel_filters()

    @torch.inference_mode()
    def embed(self, samples: FloatArray) -> Tensor:
        """Return a unit vector [256] for a sound at 16 kHz."""
        level = float(np.sqrt(np.mean(samples**2)) + 1e-9)
        loud = torch.from_numpy(samples * max(10 ** (-30 / 20) / level, 1.0))
        spectrum = torch.stft(
            loud,
            MEL_WINDOW,
            MEL_HOP,
            window=torch.hann_window(MEL_WINDOW),
            pad_mode="constant",
            return_complex=True,
        )
        mel = (self.filters @ spectrum.abs() ** 2).T
        if len(mel) < PARTIAL:
            mel = nn.functional.pad(mel, (0, 0, 0, PARTIAL - len(mel)))
        parts = mel.unfold(0, PARTIAL, PARTIAL // 2).transpose(1, 2)
        _, (hidden, _) = self.lstm(parts)
        embedded = nn.functional.normalize(torch.relu(self.linear(hidden[-1])), dim=1)
        return nn.functional.normalize(embedded.mean(0), dim=0)


def _mel_filters() -> Tensor:
    """Return Slaney's triangular mel filters [MEL_CHANNELS, bins] with unit area."""
    step, knee = 200.0 / 3, 1000.0
    ratio = np.log(6.4) / 27
    top = knee / step + np.log(RATE / 2 / knee) / ratio
    mel = np.linspace(0, top, MEL_CHANNELS + 2)
    above = knee * np.exp(ratio * (mel - knee / step))
    edges = np.where(mel < knee / step, mel * step, above)
    bins = np.arange(MEL_WINDOW // 2 + 1) * RATE / MEL_WINDOW
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    filters = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return torch.from_numpy(filters.astype(np.float32))
