"""Pictures as the Thinker's encoder reads them: the reference's own processor, one at a time."""

from __future__ import annotations

import hashlib
import threading
import weakref

import torch
from PIL import Image
from transformers import Qwen2_5OmniProcessor, Qwen3OmniMoeProcessor
from vllm.model_executor.models.qwen2_5_omni_thinker import (
    create_qwen2_5_omni_thinker_field_factory,
)
from vllm.multimodal.inputs import MultiModalKwargsItems

from engine import InvalidRequestError, PictureContent
from engine.multimodal import IMAGE, MediaItem


class Seeing:
    """Makes what the encoder reads of pictures, and keeps it while the pictures live.

    Its methods may be called from any thread.
    """

    def __init__(self, processor: Qwen2_5OmniProcessor | Qwen3OmniMoeProcessor) -> None:
        """Has seen nothing yet; takes the checkpoint's processor."""
        self._processor = processor
        self._seen: weakref.WeakKeyDictionary[PictureContent, MediaItem] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    def see(self, picture: PictureContent) -> MediaItem:
        """What the encoder reads of a picture; made once for each. Its offset is left at 0.

        Raises:
            InvalidRequestError: The picture is too long for its width, or too wide.
        """
        with self._lock:
            item = self._seen.get(picture)
        if item is None:
            item = self._item(picture)
            with self._lock:
                self._seen[picture] = item
        return item

    def _item(self, picture: PictureContent) -> MediaItem:
        processor = self._processor.image_processor
        try:
            inputs = processor(images=[Image.fromarray(picture.pixels)], return_tensors="pt")
        except ValueError as error:
            height, width = picture.pixels.shape[:2]
            raise InvalidRequestError(
                "messages",
                f"A picture of {width} by {height} pixels cannot be seen: {error}. Cut it.",
            ) from error
        fields = create_qwen2_5_omni_thinker_field_factory(processor.merge_size)
        (data,) = MultiModalKwargsItems.from_hf_inputs(inputs, fields(inputs))[IMAGE]
        pixels: torch.Tensor = inputs["pixel_values"]
        grid: torch.Tensor = inputs["image_grid_thw"]
        digest = hashlib.blake2b(pixels.numpy().tobytes(), digest_size=16)
        digest.update(grid.numpy().tobytes())
        tokens = int(grid.prod()) // processor.merge_size**2
        return MediaItem(IMAGE, 0, tokens, digest.hexdigest(), data)
