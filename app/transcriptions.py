"""Recordings to text: what a client may ask for, and the forms that the answer takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData, UploadFile

from app.ear.findings import base_language, prompt_of
from app.errors import ApiError, invalid

if TYPE_CHECKING:
    from app.ear.recognizer import Segment

_KNOWN = frozenset(
    {
        "file",
        "model",
        "keywords",
        "keywords[]",
        "language",
        "languages",
        "languages[]",
        "prompt",
        "response_format",
        "temperature",
        "timestamp_granularities[]",
        "timestamp_granularities",
        "stream",
    }
)

_HINTS = frozenset(
    {
        "include",
        "include[]",
        "chunking_strategy",
    }
)
"""Fields that are taken and change nothing here."""

_UNDETERMINED = "und"
"""The tag of a language that nobody knows: nothing was said."""


class TextFormat(StrEnum):
    """The values of `response_format`."""

    JSON = "json"
    TEXT = "text"
    SRT = "srt"
    VERBOSE_JSON = "verbose_json"
    VTT = "vtt"


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """What a client asks for.

    Attributes:
        recording: The file's bytes.
        model: What the client calls the model.
        language: A two-letter code; None finds it out.
        prompt: Words that are likely to come.
        text_format: The form of the answer.
        temperature: Of the sampling.
        words: Whether the time of each word is wanted.
        segments: Whether the time of each stretch is wanted.
        stream: Whether the answer comes as events while it is found out.
    """

    recording: bytes
    model: str
    language: str | None
    prompt: str | None
    text_format: TextFormat
    temperature: float
    words: bool
    segments: bool
    stream: bool


async def read_request(form: FormData) -> TranscriptionRequest:
    """Checks the fields of a form.

    Raises:
        ApiError: 400 that names the field at fault.
    """
    unknown = sorted(name for name in form if name not in _KNOWN | _HINTS and "[" not in name)
    if unknown:
        raise invalid(unknown[0], f"Unknown parameter: '{unknown[0]}'.", "unknown_parameter")
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise invalid("file", "Missing required parameter: 'file'.", "missing_required_parameter")
    model = _text(form, "model")
    if model is None:
        raise invalid("model", "Missing required parameter: 'model'.", "missing_required_parameter")
    granularities = {
        str(value)
        for name in ("timestamp_granularities[]", "timestamp_granularities")
        for value in form.getlist(name)
    }
    for value in granularities - {"word", "segment"}:
        raise _unsupported("timestamp_granularities", value, ("word", "segment"))
    text_format = _format(_text(form, "response_format"))
    if "word" in granularities and text_format is not TextFormat.VERBOSE_JSON:
        message = "Word times need 'response_format' to be 'verbose_json'."
        raise invalid("timestamp_granularities", message, "invalid_value")
    stream = _stream(_text(form, "stream"))
    if stream and text_format is not TextFormat.JSON:
        message = f"Events need 'response_format' to be 'json', not {text_format.value!r}."
        raise invalid("response_format", message, "invalid_value")
    return TranscriptionRequest(
        recording=await upload.read(),
        model=model,
        language=_language(form),
        prompt=prompt_of(_text(form, "prompt"), _texts(form, "keywords")) or None,
        text_format=text_format,
        temperature=_temperature(_text(form, "temperature")),
        words="word" in granularities,
        segments="segment" in granularities or not granularities,
        stream=stream,
    )


def _text(form: FormData, name: str) -> str | None:
    value = form.get(name)
    return value if isinstance(value, str) and value else None


def _texts(form: FormData, name: str) -> list[str]:
    """The values of a list, whether its name ends with brackets or not."""
    values = [*form.getlist(name), *form.getlist(f"{name}[]")]
    return [value for value in values if isinstance(value, str) and value]


def _language(form: FormData) -> str | None:
    """The one language that is spoken, if the client says one."""
    several = _texts(form, "languages")
    return _text(form, "language") or (several[0] if len(several) == 1 else None)


def _format(value: str | None) -> TextFormat:
    if value is None:
        return TextFormat.JSON
    if value not in TextFormat.__members__.values():
        raise _unsupported("response_format", value, tuple(TextFormat))
    return TextFormat(value)


def _stream(value: str | None) -> bool:
    match (value or "false").lower():
        case "true" | "1":
            return True
        case "false" | "0":
            return False
        case other:
            raise _unsupported("stream", other, ("true", "false"))


def check_language(language: str | None, known: Collection[str]) -> None:
    """Refuses a language that the recognizer does not know, whose words would be made up.

    Raises:
        ApiError: 400 that names the languages there are.
    """
    if language is not None and base_language(language) not in known:
        raise _unsupported("language", language, sorted(known))


def _unsupported(param: str, value: str, supported: Iterable[str]) -> ApiError:
    names = ", ".join(f"'{name}'" for name in supported)
    message = f"Invalid value: {value[:40]!r}. Supported values are: {names}."
    return invalid(param, message, "invalid_value")


def _temperature(value: str | None) -> float:
    try:
        temperature = float(value or 0)
    except ValueError:
        temperature = -1.0
    if not 0 <= temperature <= 1:
        message = f"Invalid value: {(value or '')[:40]!r}. 'temperature' is a number from 0 to 1."
        raise invalid("temperature", message, "invalid_value")
    return temperature


def joined(segments: Sequence[Segment]) -> str:
    """The whole text."""
    return "".join(segment.text for segment in segments).strip()


def usage_of(seconds: float) -> dict[str, Any]:
    """What was counted: the recording's length."""
    return {"type": "duration", "seconds": round(seconds, 3)}


def as_json(segments: Sequence[Segment], seconds: float) -> dict[str, Any]:
    """The plain answer."""
    return {"text": joined(segments), "usage": usage_of(seconds)}


def as_verbose_json(
    segments: Sequence[Segment], seconds: float, request: TranscriptionRequest
) -> dict[str, Any]:
    """The answer with times."""
    answer: dict[str, Any] = {
        "task": "transcribe",
        "language": segments[0].language if segments else request.language or _UNDETERMINED,
        "duration": round(seconds, 3),
        **as_json(segments, seconds),
    }
    if request.segments:
        answer["segments"] = [_segment(n, segment) for n, segment in enumerate(segments)]
    if request.words:
        answer["words"] = [
            {"word": word.text.strip(), "start": round(word.start, 3), "end": round(word.end, 3)}
            for segment in segments
            for word in segment.words
        ]
    return answer


def _segment(number: int, segment: Segment) -> dict[str, Any]:
    return {
        "id": number,
        "seek": int(segment.start * 100),
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "tokens": list(segment.tokens),
        "temperature": segment.temperature,
        "avg_logprob": segment.average_log_probability,
        "compression_ratio": segment.compression_ratio,
        "no_speech_prob": segment.no_speech_probability,
    }


def as_srt(segments: Sequence[Segment]) -> str:
    """Subtitles as SubRip has them."""
    return "".join(
        f"{number}\n{_time(segment.start, ',')} --> {_time(segment.end, ',')}\n"
        f"{segment.text.strip()}\n\n"
        for number, segment in enumerate(segments, 1)
    )


def as_vtt(segments: Sequence[Segment]) -> str:
    """Subtitles as WebVTT has them."""
    cues = "".join(
        f"{_time(segment.start, '.')} --> {_time(segment.end, '.')}\n{segment.text.strip()}\n\n"
        for segment in segments
    )
    return f"WEBVTT\n\n{cues}"


def _time(seconds: float, separator: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{separator}{rest % 1000:03}"
