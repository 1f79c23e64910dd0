"""Summaries as messages: numbers, distributions, pictures, sounds, texts, each under a tag.

    Summary {repeated Value value = 1}
    Value {string tag = 1, float simple_value = 2, Image image = 4, HistogramProto histo = 5,
           Audio audio = 6, TensorProto tensor = 8, SummaryMetadata metadata = 9}
    Image {int32 height = 1, int32 width = 2, int32 colorspace = 3, bytes encoded = 4}
    HistogramProto {double min = 1, double max = 2, double num = 3, double sum = 4,
                    double sum_squares = 5, repeated double bucket_limit = 6, bucket = 7}
    Audio {float sample_rate = 1, int64 num_channels = 2, int64 length_frames = 3,
           bytes encoded = 4, string content_type = 5}

in protobuf's wire format. Source: tensorflow/core/framework/summary.proto.
"""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import wire
from ..errors import InvalidArgumentError, ShapeError
from ..wire import BYTES, FIXED32, FIXED64, Kind, Message

_STRING = 7  # DataType
_BUCKETS = 30
_SUMMARY = Kind("a Summary", "read event files, or what a summary operation gives")


@dataclass(frozen=True)
class Histogram:
    """How numbers are spread.

    Attributes:
        min, max, num, sum, sum_squares: of the numbers.
        bucket_limit: where each bucket ends; it begins where the one before it ends.
        bucket: how many numbers each has.

    Examples:
        >>> engine.summary.Histogram(min=0.0, max=2.0, num=3.0).num
        3.0
    """

    min: float = 0.0
    max: float = 0.0
    num: float = 0.0
    sum: float = 0.0
    sum_squares: float = 0.0
    bucket_limit: tuple[float, ...] = ()
    bucket: tuple[float, ...] = ()


@dataclass(frozen=True)
class Image:
    """A picture: its size in pixels, its channels, the PNG file.

    Examples:
        >>> engine.summary.Image(height=4, width=6, colorspace=3).width
        6
    """

    height: int = 0
    width: int = 0
    colorspace: int = 0
    encoded_image_string: bytes = b""


@dataclass(frozen=True)
class Audio:
    """A sound: frames per second, channels, frames, the WAV file.

    Examples:
        >>> engine.summary.Audio(sample_rate=8000.0, num_channels=1).sample_rate
        8000.0
    """

    sample_rate: float = 0.0
    num_channels: int = 0
    length_frames: int = 0
    encoded_audio_string: bytes = b""
    content_type: str = ""


@dataclass(frozen=True)
class SummaryValue:
    """What a summary says under one tag: one of the fields beside it.

    Examples:
        >>> engine.summary.SummaryValue("loss", simple_value=0.5).simple_value
        0.5
    """

    tag: str = ""
    simple_value: float | None = None
    histo: Histogram | None = None
    image: Image | None = None
    audio: Audio | None = None
    text: tuple[bytes, ...] | None = None

    def to_bytes(self) -> bytes:
        """The message."""
        content = wire.text(1, self.tag)
        if self.simple_value is not None:
            content += wire.float32(2, self.simple_value)
        if self.image is not None:
            content += wire.field(4, _image_message(self.image))
        if self.histo is not None:
            content += wire.field(5, _histogram_message(self.histo))
        if self.audio is not None:
            content += wire.field(6, _audio_message(self.audio))
        if self.text is not None:
            shape = wire.field(2, wire.field(2, wire.integer(1, len(self.text))))
            texts = b"".join(wire.field(8, t) for t in self.text)
            content += wire.field(8, wire.integer(1, _STRING) + shape + texts)
            content += wire.field(9, wire.field(1, wire.text(1, "text")))
        return content


@dataclass
class Summary:
    """Values that belong to one step.

    Examples:
        >>> engine.summary.Summary([engine.summary.SummaryValue("loss", simple_value=0.5)]).value[
        ...     0
        ... ].tag
        'loss'
    """

    value: list[SummaryValue] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """The message."""
        return b"".join(wire.field(1, v.to_bytes()) for v in self.value)

    @staticmethod
    def from_bytes(data: bytes) -> Summary:
        """Read a message.

        Raises:
            DataLossError: the bytes are no Summary.
        """
        return Summary([_read_value(v) for v in Message(bytes(data), _SUMMARY).inside(1)])


def scalar_value(tag: str, value: float) -> SummaryValue:
    """A number; beyond float32 it is infinite."""
    with np.errstate(over="ignore"):
        return SummaryValue(tag, simple_value=float(np.float32(value)))


def histogram_value(tag: str, values: Any) -> SummaryValue:
    """How numbers are spread, in 30 buckets; those that are not finite are left out."""
    numbers = np.asarray(values).astype("float64").ravel()
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return SummaryValue(tag, histo=Histogram())
    counts, edges = np.histogram(numbers, bins=_BUCKETS)
    found = Histogram(
        float(numbers.min()),
        float(numbers.max()),
        float(numbers.size),
        float(numbers.sum()),
        float(np.square(numbers).sum()),
        # A bucket reaches from the limit before it to its own; the first begins at the minimum.
        (float(edges[0]), *edges[1:].tolist()),
        (0.0, *counts.astype("float64").tolist()),
    )
    return SummaryValue(tag, histo=found)


def image_value(tag: str, pixels: Any) -> SummaryValue:
    """A picture.

    Args:
        tag: its name.
        pixels: (height, width, channels), uint8, or floats from 0 to 1; 1, 3 or 4 channels.

    Raises:
        ShapeError: another shape.
    """
    array = np.asarray(pixels)
    if array.ndim != 3 or array.shape[-1] not in (1, 3, 4):
        raise ShapeError(
            f"image {tag!r}: expected (height, width, 1, 3 or 4), got {array.shape}",
            remedy="give one image, with its channels last",
        )
    if array.dtype.kind == "f":
        array = np.round(np.clip(np.nan_to_num(array), 0, 1) * 255)
    array = array.astype(np.uint8)
    height, width, channels = array.shape
    return SummaryValue(tag, image=Image(height, width, channels, _png(array)))


def audio_value(tag: str, samples: Any, sample_rate: float) -> SummaryValue:
    """A sound, written with 16 bits.

    Args:
        tag: its name.
        samples: (frames, channels), floats from -1 to 1.
        sample_rate: frames per second.

    Raises:
        ShapeError: another shape.
        InvalidArgumentError: a rate that is not positive.
    """
    array = np.asarray(samples, np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise ShapeError(f"audio {tag!r}: expected (frames, channels), got {array.shape}")
    if not sample_rate > 0:
        raise InvalidArgumentError(f"audio {tag!r}: the rate must be positive, got {sample_rate}")
    frames, channels = array.shape
    levels = np.round(np.clip(np.nan_to_num(array), -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(round(sample_rate))
        writer.writeframes(levels.tobytes())
    found = Audio(float(sample_rate), channels, frames, file.getvalue(), "audio/wav")
    return SummaryValue(tag, audio=found)


def text_value(tag: str, *texts: str | bytes) -> SummaryValue:
    """A text, which may be Markdown, or rows of a table."""
    return SummaryValue(tag, text=tuple(t if isinstance(t, bytes) else t.encode() for t in texts))


# Writing


def _histogram_message(h: Histogram) -> bytes:
    return (
        wire.float64(1, h.min)
        + wire.float64(2, h.max)
        + wire.float64(3, h.num)
        + wire.float64(4, h.sum)
        + wire.float64(5, h.sum_squares)
        + wire.field(6, np.asarray(h.bucket_limit, "<f8").tobytes())
        + wire.field(7, np.asarray(h.bucket, "<f8").tobytes())
    )


def _image_message(x: Image) -> bytes:
    return (
        wire.integer(1, x.height)
        + wire.integer(2, x.width)
        + wire.integer(3, x.colorspace)
        + wire.field(4, x.encoded_image_string)
    )


def _audio_message(x: Audio) -> bytes:
    return (
        wire.float32(1, x.sample_rate)
        + wire.integer(2, x.num_channels)
        + wire.integer(3, x.length_frames)
        + wire.field(4, x.encoded_audio_string)
        + wire.text(5, x.content_type)
    )


# Portable Network Graphics, second edition, 2003: signature, header, one compressed stream, end.
_COLOURS: Mapping[int, int] = {1: 0, 3: 2, 4: 6}


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    height, width, channels = pixels.shape
    if not height or not width:
        raise InvalidArgumentError(f"an image of {height} x {width} pixels cannot be written")
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


# Reading


def _read_value(message: Message) -> SummaryValue:
    found: dict[str, Any] = {}
    for number, kind in message.fields():
        if number == 1 and kind == BYTES:
            found["tag"] = message.text()
        elif number == 2 and kind == FIXED32:
            found["simple_value"] = message.float32()
        elif number == 4 and kind == BYTES:
            found["image"] = Image(*_read(message.span(), (0, 0, 0, b"")))
        elif number == 5 and kind == BYTES:
            found["histo"] = _read_histogram(message.span())
        elif number == 6 and kind == BYTES:
            found["audio"] = Audio(*_read(message.span(), (0.0, 0, 0, b"", "")))
        elif number == 8 and kind == BYTES:
            texts = message.span().inside(8)
            found["text"] = tuple(t.data[t.position : t.end] for t in texts)
        else:
            message.skip(kind)
    return SummaryValue(**found)


def _read(message: Message, defaults: Sequence[float | bytes | str]) -> list[Any]:
    """The fields 1, 2, ... of a message, each of the type of its default."""
    found: list[Any] = list(defaults)
    for number, kind in message.fields():
        default = defaults[number - 1] if number <= len(defaults) else None
        if isinstance(default, float) and kind == FIXED32:
            found[number - 1] = message.float32()
        elif isinstance(default, bytes) and kind == BYTES:
            found[number - 1] = message.bytes()
        elif isinstance(default, str) and kind == BYTES:
            found[number - 1] = message.text()
        elif isinstance(default, int) and kind == wire.VARINT:
            found[number - 1] = message.signed()
        else:
            message.skip(kind)
    return found


def _read_histogram(message: Message) -> Histogram:
    numbers = [0.0] * 5
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, kind in message.fields():
        if number <= 5 and kind == FIXED64:
            numbers[number - 1] = message.float64()
        elif number in lists and kind == FIXED64:
            lists[number].append(message.float64())
        elif number in lists and kind == BYTES:
            data = message.bytes()
            if len(data) % 8:
                raise message.damage("a list of numbers that is cut off")
            lists[number] += np.frombuffer(data, "<f8").tolist()
        else:
            message.skip(kind)
    low, high, num, total, squares = numbers
    return Histogram(low, high, num, total, squares, tuple(lists[6]), tuple(lists[7]))
