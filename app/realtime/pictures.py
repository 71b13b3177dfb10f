"""Pictures in a client's items, decoded before the session's actor is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.errors import ApiError
from app.pictures import decode_picture
from app.realtime.client_events import ClientEvent, ItemCreate, ResponseCreate
from app.realtime.failure import EventError
from app.realtime.item_schema import InputImage, MessageItem
from engine import PictureContent

Pictures = Mapping[str, PictureContent]
"""By the address that the client gave."""


def picture_urls(event: ClientEvent) -> dict[str, str]:
    """The addresses of an event's pictures, by the field that has them."""
    return {
        f"{where}.content[{number}].image_url": part.image_url
        for where, item in _items(event)
        for number, part in enumerate(item.content)
        if isinstance(part, InputImage) and part.image_url is not None
    }


def _items(event: ClientEvent) -> Iterator[tuple[str, MessageItem]]:
    if isinstance(event, ItemCreate) and isinstance(event.item, MessageItem):
        yield "item", event.item
    if isinstance(event, ResponseCreate):
        for number, item in enumerate(event.response.input or []):
            if isinstance(item, MessageItem):
                yield f"response.input[{number}]", item


def decode_pictures(urls: Mapping[str, str], event_id: str | None) -> Pictures:
    """Decodes pictures.

    Args:
        urls: What `picture_urls` gave.
        event_id: The client's name of the event.

    Raises:
        EventError: One cannot be read; the field is named.
    """
    try:
        return {url: decode_picture(url, param) for param, url in urls.items()}
    except ApiError as refusal:
        code = refusal.code or "invalid_value"
        raise EventError(refusal.message, code, refusal.param, event_id=event_id) from None
