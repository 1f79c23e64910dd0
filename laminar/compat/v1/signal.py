"""`tf.signal`: Fourier transforms, frames of signals and their spectra."""

from __future__ import annotations

from .face import Line, face

SPECTRAL: dict[str, Line] = {
    **{
        f"{kind}{axes}": f".transforms:{kind}{axes}"
        for kind in ("fft", "ifft", "rfft", "irfft")
        for axes in ("", "2d", "3d")
    },
    "dct": ".frames:dct",
    "idct": ".frames:idct",
}
NAMES: dict[str, Line] = {
    **SPECTRAL,
    **{
        name: f".frames:{name}"
        for name in (
            "fftshift",
            "frame",
            "hamming_window",
            "hann_window",
            "ifftshift",
            "inverse_stft",
            "inverse_stft_window_fn",
            "linear_to_mel_weight_matrix",
            "mfccs_from_log_mel_spectrograms",
            "overlap_and_add",
            "stft",
        )
    },
}

__getattr__, __dir__ = face(__name__, NAMES)
