"""Text in other encodings: of characters, and of bytes as letters. On the host alone."""

from __future__ import annotations

import base64
import binascii
import codecs
import re

from ...errors import InvalidArgumentError
from ...graph import STRING, Array, TensorSpec
from ..core.registry import define, no_gradient
from .string import map_strings

_MARK = "\udcff"  # what stands for bytes that are no character: no text has it


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _MARK, error.end


codecs.register_error("laminar.marked", _marked)

# Others of Python's are no encodings of text, or take time without bound.
_INPUT = re.compile(
    r"utf-(8|(16|32)(-?[bl]e)?)|(us-)?ascii|iso[-_]8859-[0-9]{1,2}|windows-125[0-8]|koi8-[ru]|big5|"
    r"gb18030|shift_jis|euc[-_](jp|kr)",
    re.IGNORECASE,
)
_OUTPUT = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
# Without an order of bytes in their name: the mark that begins the text says it, else it is BE.
_MARKED = {
    "UTF-16": ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")),
    "UTF-32": ((codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF32_LE, "utf-32-le")),
}


def codec_of(item: bytes, encoding: str) -> tuple[str, int]:
    """Python's name of the encoding of a text, and how long the mark is that begins it."""
    marks = _MARKED.get(encoding.upper())
    if marks is None:
        return encoding, 0
    for mark, codec in marks:
        if item.startswith(mark):
            return codec, len(mark)
    return marks[0][1], 0


def _characters(item: bytes, encoding: str) -> str:
    codec, mark = codec_of(item, encoding)
    return item[mark:].decode(codec, "laminar.marked")


def check_encoding(who: str, encoding: str, errors: str, replacement_char: int) -> None:
    """InvalidArgumentError unless these are an encoding, a way to treat errors and a character."""
    if errors not in ("strict", "replace", "ignore"):
        raise InvalidArgumentError(
            f"{who}: errors must be 'strict', 'replace' or 'ignore', got {errors!r}"
        )
    if not 0 <= replacement_char <= 0x10FFFF or 0xD800 <= replacement_char < 0xE000:
        raise InvalidArgumentError(f"{who}: {replacement_char} is not the number of a character")
    if not _INPUT.fullmatch(encoding):
        raise InvalidArgumentError(f"{who}: no encoding is named {encoding!r}")


@define("UnicodeTranscode", dtypes=STRING)
def unicode_transcode(
    x: TensorSpec,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
) -> TensorSpec:
    """Each text in another encoding.

    `errors` says what becomes of bytes that are no character: "strict" is an error, "replace" puts
    the character of the number `replacement_char` there, "ignore" leaves them out. It holds for
    control characters (0 to 31), too, where `replace_control_characters` says so. A mark of the
    order of bytes is left out where it was needed: at the front of UTF-16 and UTF-32.
    """
    if output_encoding not in _OUTPUT:
        raise InvalidArgumentError(
            f"UnicodeTranscode: output_encoding must be one of {', '.join(_OUTPUT)}, "
            f"got {output_encoding!r}"
        )
    check_encoding("UnicodeTranscode", input_encoding, errors, replacement_char)
    return x


@unicode_transcode.kernel("cpu")
def _transcode_kernel(
    x: Array,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> Array:
    instead = chr(replacement_char) if errors == "replace" else ""
    control = dict.fromkeys(range(32), instead)

    def transcode(item: bytes) -> bytes:
        text = _characters(item, input_encoding)
        if _MARK in text:
            if errors == "strict":
                raise InvalidArgumentError(
                    f"UnicodeTranscode: {item!r} is no text in {input_encoding}",
                    remedy="errors='replace' or 'ignore' take it",
                )
            text = text.replace(_MARK, instead)
        if replace_control_characters:
            text = text.translate(control)
        return text.encode(_OUTPUT[output_encoding])

    return map_strings(transcode, x)


unicode_transcode.grad(no_gradient)


@define("EncodeBase64", dtypes=STRING)
def encode_base64(x: TensorSpec, *, pad: bool = False) -> TensorSpec:
    """The bytes of each string as letters, digits, - and _; filled with = where `pad` says so.

    Source: RFC 4648, section 5.
    """
    return x


@encode_base64.kernel("cpu")
def _encode_kernel(x: Array, *, pad: bool) -> Array:
    def letters(item: bytes) -> bytes:
        found = base64.urlsafe_b64encode(item)
        return found if pad else found.rstrip(b"=")

    return map_strings(letters, x)


encode_base64.grad(no_gradient)


@define("DecodeBase64", dtypes=STRING)
def decode_base64(x: TensorSpec) -> TensorSpec:
    """The bytes that `EncodeBase64` wrote, with or without = at the end."""
    return x


@decode_base64.kernel("cpu")
def _decode_kernel(x: Array) -> Array:
    def read(item: bytes) -> bytes:
        letters = item.rstrip(b"=")
        if b"+" in letters or b"/" in letters:
            raise InvalidArgumentError(f"DecodeBase64: {item!r} has + or /, expected - and _")
        padded = letters + b"=" * (-len(letters) % 4)
        try:
            return base64.b64decode(padded, b"-_", validate=True)
        except binascii.Error as cause:
            raise InvalidArgumentError(f"DecodeBase64: {item!r} is not base64: {cause}") from cause

    return map_strings(read, x)


decode_base64.grad(no_gradient)
