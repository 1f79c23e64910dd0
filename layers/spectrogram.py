"""Sounds as pictures: which frequencies they have at which time."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from laminar import initializers, ops
from laminar.config import epsilon, standardize_data_format
from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype
from laminar.naming import who
from laminar.typing import DataFormat, Padding, Shape, TensorLike
from laminar.windows import window_points

from .data_layer import DataLayer
from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, known_dim, one_of, whole

Array = np.ndarray[Any, Any]

_MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")


class STFTSpectrogram(Layer):
    """The short-time Fourier transform of sounds, by convolutions whose kernels may be trained.

    Args:
        mode: what is given for each frequency and time: "log" (of the magnitude), "magnitude",
            "psd" (the power, of both signs of a frequency), "real", "imag", "angle", or "stft"
            (the real parts, then the imaginary ones).
        frame_length: samples of a stretch.
        frame_step: distance of the beginnings of stretches, by default half of `frame_length`.
        fft_length: samples transformed, with zeros behind a stretch; by default the power of 2 from
            `frame_length` on.
        window: by which a stretch is multiplied: a name (see `laminar.windows`), its points, or
            None.
        periodic: whether the window is a period, not symmetric.
        scaling: "density" (the window has a sum of squares of 1), "spectrum" (a sum of 1), or None.
        padding: "valid" or "same", of the sound.
        expand_dims: whether channels and frequencies have axes of their own.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, samples, channels) -> (batch, stretches, channels * frequencies), or with
        expand_dims (batch, stretches, frequencies, channels); with "channels_first",
        (batch, channels, samples) -> (batch, channels * frequencies, stretches), or
        (batch, channels, stretches, frequencies)

    Raises:
        InvalidArgumentError: a length below 1, a step above the length, or another choice.

    Examples:
        >>> layer = layers.STFTSpectrogram(frame_length=64, frame_step=32, fft_length=64)
        >>> layer(np.ones((1, 256, 1))).shape
        (1, 7, 33)
    """

    def __init__(
        self,
        mode: str = "log",
        frame_length: int = 256,
        frame_step: int | None = None,
        fft_length: int | None = None,
        window: str | TensorLike = "hann",
        periodic: bool = False,
        scaling: str | None = "density",
        padding: Padding = "valid",
        expand_dims: bool = False,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.mode = one_of(self, "mode", mode, _MODES)
        self.frame_length = whole(self, "frame_length", frame_length)
        if frame_step is not None and whole(self, "frame_step", frame_step) > self.frame_length:
            raise InvalidArgumentError(
                f"{who(self)}: frame_step must be at most frame_length, "
                f"got {frame_step} and {frame_length}"
            )
        if fft_length is not None:
            whole(self, "fft_length", fft_length, self.frame_length)
        if scaling is not None:
            one_of(self, "scaling", scaling, ("density", "spectrum"))
        self.frame_step = frame_step
        self.fft_length = fft_length
        self.window = window
        self.periodic = periodic
        self.scaling = scaling
        if window is not None:  # it is known, and of this length
            window_points(who(self), window, self.frame_length, periodic)
        self.padding: Padding = one_of(self, "padding", padding, ("valid", "same"))
        self.expand_dims = expand_dims
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(ndim=3)

    def _kernel(self, side: str) -> initializers.STFT:
        return initializers.STFT(side, self.window, self.scaling, self.periodic)

    def build(self, input_shape: Shape) -> None:
        length = self.fft_length or 2 ** math.ceil(math.log2(self.frame_length))
        shape = (self.frame_length, 1, length // 2 + 1)
        if self.mode != "imag":
            self.real_kernel = self.add_weight(shape, self._kernel("real"), name="real_kernel")
        if self.mode != "real":
            self.imag_kernel = self.add_weight(shape, self._kernel("imag"), name="imag_kernel")

    def call(self, inputs: Tensor) -> Any:
        if not as_dtype(inputs.dtype).is_floating:
            raise DTypeError(f"{who(self)}: expected floating sounds, got {inputs.dtype}")
        x = inputs if self.data_format == "channels_first" else ops.swapaxes(inputs, 1, 2)
        channels = known_dim(self, x.shape, 1, "the number of channels")
        sound = ops.reshape(x, (-1, ops.shape(x)[2], 1))

        def part(kernel: TensorLike) -> Any:
            """(batch, channels, stretches, frequencies)."""
            step = self.frame_step or self.frame_length // 2
            y = ops.conv(sound, kernel, step, self.padding, "channels_last")
            return ops.reshape(y, (-1, channels, *ops.shape(y)[1:]))

        if self.mode in ("real", "imag"):
            return self._arranged(part(getattr(self, f"{self.mode}_kernel")))
        real, imag = part(self.real_kernel), part(self.imag_kernel)
        if self.mode == "angle":
            return self._arranged(ops.arctan2(imag, real))
        if self.mode == "stft":
            return self._arranged(ops.concatenate([real, imag], axis=-1))
        power = ops.square(real) + ops.square(imag)
        if self.mode == "psd":
            inner = ops.pad(power[..., 1:-1], [(0, 0)] * 3 + [(1, 1)])
            return self._arranged(power + inner)
        magnitude = self._arranged(ops.sqrt(ops.maximum(power, epsilon())))
        if self.mode == "magnitude":
            return magnitude
        return ops.log(ops.maximum(magnitude, epsilon()))

    def _arranged(self, y: Any) -> Any:
        """The axes in the order of the output."""
        if self.data_format == "channels_last":
            if self.expand_dims:
                return ops.transpose(y, (0, 2, 3, 1))
            y = ops.transpose(y, (0, 2, 1, 3))
            return ops.reshape(y, (-1, ops.shape(y)[1], y.shape[2] * y.shape[3]))
        if self.expand_dims:
            return y
        y = ops.transpose(y, (0, 1, 3, 2))
        return ops.reshape(y, (-1, y.shape[1] * y.shape[2], ops.shape(y)[3]))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "mode",
            "frame_length",
            "frame_step",
            "fft_length",
            "window",
            "periodic",
            "scaling",
            "padding",
            "expand_dims",
            "data_format",
        )


class MelSpectrogram(DataLayer):
    """The power of a sound in bands of frequencies that are heard as equally wide.

    A frequency f has the pitch 1127 ln(1 + f / 700); bands are triangles over the pitches.

    Args:
        fft_length: samples transformed at a time.
        sequence_stride: distance of the beginnings of stretches.
        sequence_length: samples of a stretch, by default `fft_length`.
        window: by which a stretch is multiplied: "hann", "hamming", its points, or None for none.
        sampling_rate: samples of a second.
        num_mel_bins: number of bands.
        min_freq: where the first band begins, in Hz.
        max_freq: where the last one ends, by default half of `sampling_rate`.
        power_to_db: whether the result is 10 log10 of its power.
        top_db: how far values may be below the greatest.
        mag_exp: power of the magnitude: 1 for the amplitude, 2 for the power.
        min_power: what a power is at least, before the logarithm.
        ref_power: the power that has 0 dB.

    Shapes:
        x: (batch, samples) or (samples,) -> (batch, num_mel_bins, stretches) or without the batch

    Raises:
        InvalidArgumentError: a number below 1, or stretches longer than the transform.

    Source: Stevens, Volkmann and Newman, "A scale for the measurement of the psychological
        magnitude pitch", 1937.

    Examples:
        >>> layer = layers.MelSpectrogram(num_mel_bins=16, fft_length=256, sequence_stride=64)
        >>> layer(np.zeros((1, 1024))).shape
        (1, 16, 17)
    """

    def __init__(
        self,
        fft_length: int = 2048,
        sequence_stride: int = 512,
        sequence_length: int | None = None,
        window: str | TensorLike | None = "hann",
        sampling_rate: int = 16000,
        num_mel_bins: int = 128,
        min_freq: float = 20.0,
        max_freq: float | None = None,
        power_to_db: bool = True,
        top_db: float = 80.0,
        mag_exp: float = 2.0,
        min_power: float = 1e-10,
        ref_power: float = 1.0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.fft_length = whole(self, "fft_length", fft_length)
        self.sequence_stride = whole(self, "sequence_stride", sequence_stride)
        self.sequence_length = whole(self, "sequence_length", sequence_length or fft_length)
        if self.sequence_length > self.fft_length:
            raise InvalidArgumentError(
                f"{who(self)}: sequence_length must be at most fft_length, "
                f"got {sequence_length} and {fft_length}"
            )
        if isinstance(window, str):
            one_of(self, "window", window, ("hann", "hamming"))
        elif window is not None:  # it is of this length
            window_points(who(self), window, self.sequence_length, True)
        self.window = window
        self.sampling_rate = sampling_rate
        self.num_mel_bins = whole(self, "num_mel_bins", num_mel_bins)
        self.min_freq = min_freq
        self.max_freq = max_freq or int(sampling_rate / 2)
        self.power_to_db = power_to_db
        self.top_db = top_db
        self.mag_exp = mag_exp
        self.min_power = min_power
        self.ref_power = ref_power

    def _bands(self) -> Array:
        """How much each frequency counts in each band: (frequencies, bands)."""

        def pitch(frequency: Any) -> Any:
            return 1127.0 * np.log1p(frequency / 700.0)

        frequencies = np.linspace(0, self.sampling_rate / 2, self.fft_length // 2 + 1)
        edges = np.linspace(pitch(self.min_freq), pitch(self.max_freq), self.num_mel_bins + 2)
        low, middle, high = edges[:-2], edges[1:-1], edges[2:]
        pitches = pitch(frequencies)[:, None]
        rises, falls = (pitches - low) / (middle - low), (high - pitches) / (high - middle)
        weights: Array = np.maximum(0, np.minimum(rises, falls))
        weights[0] = 0  # the frequency 0 is no sound
        return weights

    def call(self, inputs: Tensor) -> Any:
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        real, imag = ops.stft(
            ops.cast(inputs, dtype),
            self.sequence_length,
            self.sequence_stride,
            self.fft_length,
            self.window,
        )
        magnitude = ops.sqrt(ops.square(real) + ops.square(imag))
        y = ops.matmul(magnitude**self.mag_exp, ops.cast(self._bands(), dtype))
        if self.power_to_db:
            floor = self.min_power
            y = 10 * ops.log10(ops.maximum(y, floor))
            y = y - 10 * math.log10(max(abs(self.ref_power), floor))
            y = ops.maximum(y, ops.max(y) - self.top_db)
        return ops.cast(ops.swapaxes(y, -1, -2), self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "fft_length",
            "sequence_stride",
            "sequence_length",
            "window",
            "sampling_rate",
            "num_mel_bins",
            "min_freq",
            "max_freq",
            "power_to_db",
            "top_db",
            "mag_exp",
            "min_power",
            "ref_power",
        )
