"""Pictures that clients send, decoded for what sees."""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageOps

from app.errors import invalid
from engine import PictureContent

FORMATS = ("PNG", "JPEG", "WEBP")

MOST_PIXELS = 2**24
"""A small file may hold a picture that fills the memory, so its header is looked at first."""

MOST_PIXELS_TOGETHER = 2**26
"""Of the pictures in one conversation, which are kept unpacked: 200 MB."""

_DAMAGED = (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError)
"""How Pillow says that a file is no picture or is damaged."""


def decode_picture(url: str, param: str) -> PictureContent:
    """A picture in a `data:` URL, turned upright, in colours of 8 bits.

    Other addresses are refused: a server that fetches what clients name can be made to fetch what
    only it can reach.

    Args:
        url: The address.
        param: What the client calls it.

    Raises:
        ApiError: 400; it is no such URL, no picture, or too large a one.
    """
    data = _data(url, param)
    try:
        # The first frame of what moves.
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise invalid(
                    param,
                    f"The picture has {width} by {height} pixels; at most {MOST_PIXELS} in all "
                    "are taken. Send it smaller.",
                    "invalid_value",
                )
            upright = ImageOps.exif_transpose(opened).convert("RGB")
    except _DAMAGED as error:
        raise invalid(
            param,
            f"The picture cannot be read as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}: {error}.",
            "invalid_value",
        ) from None
    return PictureContent(np.asarray(upright))


def check_together(pictures: Iterable[PictureContent], param: str) -> None:
    """Refuses pictures that fill the memory together.

    Args:
        pictures: All of a conversation.
        param: What the client calls them.

    Raises:
        ApiError: 400; they are too many or too large.
    """
    pixels = sum(picture.pixels.size // 3 for picture in pictures)
    if pixels > MOST_PIXELS_TOGETHER:
        raise invalid(
            param,
            f"The pictures of the conversation have {pixels} pixels; at most "
            f"{MOST_PIXELS_TOGETHER} pixels are kept. Send fewer or smaller ones.",
            "invalid_value",
        )


def _data(url: str, param: str) -> bytes:
    scheme, colon, rest = url.partition(":")
    head, comma, encoded = rest.partition(",")
    if not colon or scheme.lower() != "data":
        shown = f"{scheme[:20]}:" if colon else "no URL"
        raise invalid(
            param,
            f"Pictures are sent as data: URLs, such as data:image/png;base64,…; this is {shown}"
            " and nothing is fetched from other addresses.",
            "invalid_value",
        )
    if not comma or not head.lower().endswith(";base64"):
        raise invalid(param, "A picture's URL must read data:image/…;base64,….", "invalid_value")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise invalid(param, f"The picture is no base64: {error}.", "invalid_value") from None
