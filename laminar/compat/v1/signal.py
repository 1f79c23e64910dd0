"""`tf.signal`: Fourier transforms."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    f"{kind}{axes}": f".transforms:{kind}{axes}"
    for kind in ("fft", "ifft", "rfft", "irfft")
    for axes in ("", "2d", "3d")
}

__getattr__, __dir__ = face(__name__, NAMES)
