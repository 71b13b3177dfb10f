"""Sound (or pictures) in a text stage's prompt, preprocessed by the pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from vllm.multimodal.inputs import MultiModalFeatureSpec, MultiModalKwargsItem, PlaceholderRange

AUDIO, IMAGE = "audio", "image"
"""vLLM's words for what prompts hold beside text."""


@dataclass(frozen=True, slots=True)
class MediaItem:
    """One item of a prompt that the model's own encoder reads.

    Attributes:
        modality: vLLM's word for it.
        offset: Its first placeholder token in the prompt.
        length: How many placeholder tokens it has; as many embeddings come out of the encoder.
        identifier: The same for the same content: equal items are encoded once.
        data: What the model's `embed_multimodal` reads.
    """

    modality: str
    offset: int
    length: int
    identifier: str
    data: MultiModalKwargsItem


def feature_specs(media: tuple[MediaItem, ...]) -> list[MultiModalFeatureSpec] | None:
    """A prompt's media as vLLM's requests carry them; None for none."""
    ordered = sorted(media, key=lambda item: item.offset)
    return [feature_spec(item) for item in ordered] or None


def feature_spec(item: MediaItem) -> MultiModalFeatureSpec:
    """One item as vLLM's requests carry it."""
    return MultiModalFeatureSpec(
        data=item.data,
        modality=item.modality,
        identifier=item.identifier,
        mm_position=PlaceholderRange(offset=item.offset, length=item.length),
        mm_hash=item.identifier,
    )
