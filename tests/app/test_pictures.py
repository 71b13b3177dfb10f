"""Pictures in clients' messages: what is taken, and what is refused with which words."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from app.errors import ApiError
from app.pictures import MOST_PIXELS, decode_picture
from engine import PictureContent

PARAM = "messages[0].content[0].image_url.url"


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def encoded(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def refusal(url: str) -> str:
    with pytest.raises(ApiError) as refused:
        decode_picture(url, PARAM)
    assert (refused.value.status, refused.value.param) == (400, PARAM)
    return refused.value.message


@pytest.fixture
def image() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("image_format", ["PNG", "WEBP"])
def test_pixels_are_those_of_the_file(image: Image.Image, image_format: str) -> None:
    picture = decode_picture(data_url(encoded(image, image_format, lossless=True)), PARAM)
    assert isinstance(picture, PictureContent)
    assert picture.pixels.dtype == np.uint8
    assert np.array_equal(picture.pixels, np.asarray(image))


def test_a_photograph_is_turned_upright(image: Image.Image) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = decode_picture(data_url(encoded(image, "JPEG", exif=exif)), PARAM)
    assert picture.pixels.shape == (30, 20, 3)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "CMYK", "I;16"])
def test_other_colours_become_red_green_and_blue(image: Image.Image, mode: str) -> None:
    converted = image.convert("L").convert("I;16") if mode == "I;16" else image.convert(mode)
    data = encoded(converted, "JPEG" if mode == "CMYK" else "PNG")
    assert decode_picture(data_url(data), PARAM).pixels.shape == (20, 30, 3)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/a.png", "http://169.254.169.254/latest", "file:///etc/passwd", "a.png"],
)
def test_nothing_is_fetched(url: str) -> None:
    message = refusal(url)
    assert "data:image/png;base64" in message
    assert "nothing is fetched" in message


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("data:image/png,abc", "must read data:image/"),
        ("data:image/png;base64", "must read data:image/"),
        ("data:image/png;base64,%%%", "no base64"),
        (data_url(b""), "cannot be read as PNG, JPEG or WEBP"),
        (data_url(b"hello" * 100), "cannot be read as PNG, JPEG or WEBP"),
    ],
)
def test_what_is_no_picture_is_refused(url: str, words: str) -> None:
    assert words in refusal(url)


def test_other_formats_are_refused(image: Image.Image) -> None:
    """Pillow knows dozens; each is a way in."""
    for other in ("GIF", "BMP", "TIFF", "PPM"):
        assert "cannot be read as" in refusal(data_url(encoded(image, other)))


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP"])
def test_a_file_that_was_cut_off_is_refused(image: Image.Image, image_format: str) -> None:
    data = encoded(image, image_format)
    assert "cannot be read as" in refusal(data_url(data[: len(data) // 2]))


def png_bomb(width: int, height: int) -> bytes:
    """A PNG whose header promises so many pixels, in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(3 * width + 1) * min(height, 64), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def test_a_decompression_bomb_is_refused_before_it_is_unpacked() -> None:
    side = int(MOST_PIXELS**0.5) + 1
    assert f"{side} by {side} pixels" in refusal(data_url(png_bomb(side, side)))
    assert "cannot be read" in refusal(data_url(png_bomb(30_000, 30_000)))
