"""Settings of the whole process: default types, layouts, and how much is printed.

They live in memory only: nothing is read from or written to a file.
"""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import FLOATING, as_dtype
from laminar.engine.late import later
from laminar.engine.ops.core.arrays import Defaults

from .typing import DataFormat

# What ops remember of their calls was found out under the settings of then.
_forget_calls = later("laminar.engine.ops.core.remembered_calls", "forget_calls")
_BACKEND = "laminar"
_FORMATS: tuple[DataFormat, ...] = ("channels_first", "channels_last")


class _Settings:
    epsilon = 1e-7
    image_data_format: DataFormat = "channels_last"
    interactive_logging = True
    traceback_filtering = True
    max_epochs: int | None = None
    max_steps_per_epoch: int | None = None


def backend() -> str:
    """The name of the engine that computes: "laminar".

    Examples:
        >>> laminar.config.backend()
        'laminar'
    """
    return _BACKEND


def set_backend(backend: str) -> None:
    """Accept "laminar", the only engine there is.

    Raises:
        InvalidArgumentError: another name.

    Examples:
        >>> laminar.config.set_backend("laminar")
    """
    if backend != _BACKEND:
        raise InvalidArgumentError(
            f"set_backend: expected {_BACKEND!r}, got {backend!r}",
            remedy="leave it out: laminar computes on its own engine",
        )


def floatx() -> str:
    """The default floating type, as a string.

    Examples:
        >>> laminar.config.floatx()
        'float32'
    """
    return str(Defaults.floating)


def set_floatx(value: Any) -> None:
    """Set the default floating type.

    Args:
        value: "float16", "bfloat16", "float32" or "float64".

    Raises:
        InvalidArgumentError: any other type.

    Examples:
        >>> laminar.config.set_floatx("float64")
        >>> ops.ones((2,)).dtype
        'float64'
        >>> laminar.config.set_floatx("float32")
    """
    dtype = as_dtype(value)
    if dtype not in FLOATING:
        raise InvalidArgumentError(
            f"set_floatx: expected one of {', '.join(sorted(FLOATING))}, got {value!r}"
        )
    Defaults.floating = dtype
    _forget_calls()


def epsilon() -> float:
    """The small number that keeps quotients and logarithms finite.

    Examples:
        >>> laminar.config.epsilon()
        1e-07
    """
    return _Settings.epsilon


def set_epsilon(value: float) -> None:
    """Set the number that `epsilon()` gives.

    Examples:
        >>> laminar.config.set_epsilon(1e-6)
        >>> laminar.config.epsilon()
        1e-06
        >>> laminar.config.set_epsilon(1e-7)
    """
    _Settings.epsilon = float(value)
    _forget_calls()


def image_data_format() -> DataFormat:
    """Where images have their channels: "channels_last" or "channels_first".

    Examples:
        >>> laminar.config.image_data_format()
        'channels_last'
    """
    return _Settings.image_data_format


def set_image_data_format(data_format: DataFormat) -> None:
    """Set the default layout of images: "channels_last" or "channels_first".

    Examples:
        >>> laminar.config.set_image_data_format("channels_first")
        >>> layers.GlobalAveragePooling2D()(np.zeros((1, 3, 8, 8))).shape
        (1, 3)
        >>> laminar.config.set_image_data_format("channels_last")
    """
    _Settings.image_data_format = standardize_data_format(data_format)
    _forget_calls()


def standardize_data_format(data_format: str | None) -> DataFormat:
    """A layout of images as one of its two names; None means the default.

    Raises:
        InvalidArgumentError: any other name.

    Examples:
        >>> laminar.config.standardize_data_format(None)
        'channels_last'
    """
    if data_format is None:
        return _Settings.image_data_format
    found = str(data_format).lower()
    for known in _FORMATS:
        if found == known:
            return known
    raise InvalidArgumentError(
        f"data_format: expected one of {', '.join(_FORMATS)}, got {data_format!r}"
    )


def is_interactive_logging_enabled() -> bool:
    """Whether progress goes to a bar that is redrawn, rather than to log lines.

    Examples:
        >>> laminar.config.is_interactive_logging_enabled()
        True
    """
    return _Settings.interactive_logging


def enable_interactive_logging() -> None:
    """Show progress as a bar on the terminal.

    Examples:
        >>> laminar.config.enable_interactive_logging()
        >>> laminar.config.is_interactive_logging_enabled()
        True
    """
    _Settings.interactive_logging = True


def disable_interactive_logging() -> None:
    """Send progress to the log.

    Examples:
        >>> laminar.config.disable_interactive_logging()
        >>> laminar.config.is_interactive_logging_enabled()
        False
        >>> laminar.config.enable_interactive_logging()
    """
    _Settings.interactive_logging = False


def is_traceback_filtering_enabled() -> bool:
    """Whether frames of laminar's own are left out of tracebacks.

    Examples:
        >>> laminar.config.is_traceback_filtering_enabled()
        True
    """
    return _Settings.traceback_filtering


def enable_traceback_filtering() -> None:
    """Leave frames of laminar's own out of tracebacks.

    Examples:
        >>> laminar.config.enable_traceback_filtering()
        >>> laminar.config.is_traceback_filtering_enabled()
        True
    """
    _Settings.traceback_filtering = True


def disable_traceback_filtering() -> None:
    """Keep all frames in tracebacks.

    Examples:
        >>> laminar.config.disable_traceback_filtering()
        >>> laminar.config.is_traceback_filtering_enabled()
        False
        >>> laminar.config.enable_traceback_filtering()
    """
    _Settings.traceback_filtering = False


def enable_unsafe_deserialization() -> None:
    """Refuse: what laminar loads can never run code.

    Raises:
        InvalidArgumentError: always.

    Examples:
        >>> laminar.config.enable_unsafe_deserialization()
        Traceback (most recent call last):
            ...
        laminar.engine.errors.InvalidArgumentError: enable_unsafe_deserialization: ...
    """
    raise InvalidArgumentError(
        "enable_unsafe_deserialization: files that laminar loads cannot run code",
        remedy="register the objects of the file with register_keras_serializable",
    )


def max_epochs() -> int | None:
    """The number of epochs that `fit` never exceeds, None for no limit.

    Examples:
        >>> laminar.config.max_epochs() is None
        True
    """
    return _Settings.max_epochs


def set_max_epochs(max_epochs: int | None) -> None:
    """Limit the epochs of every `fit`, for trying a script out.

    Examples:
        >>> laminar.config.set_max_epochs(1)
        >>> laminar.config.max_epochs()
        1
        >>> laminar.config.set_max_epochs(None)
    """
    _Settings.max_epochs = max_epochs


def max_steps_per_epoch() -> int | None:
    """The number of steps that an epoch never exceeds, None for no limit.

    Examples:
        >>> laminar.config.max_steps_per_epoch() is None
        True
    """
    return _Settings.max_steps_per_epoch


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Limit the steps of every epoch, for trying a script out.

    Examples:
        >>> laminar.config.set_max_steps_per_epoch(2)
        >>> laminar.config.max_steps_per_epoch()
        2
        >>> laminar.config.set_max_steps_per_epoch(None)
    """
    _Settings.max_steps_per_epoch = max_steps_per_epoch


def is_flash_attention_enabled() -> bool:
    """False: attention has one way of being computed.

    Examples:
        >>> laminar.config.is_flash_attention_enabled()
        False
    """
    return False


def enable_flash_attention() -> None:
    """Accept what Keras scripts ask for; it changes nothing, see `is_flash_attention_enabled`.

    Examples:
        >>> laminar.config.enable_flash_attention()
        >>> laminar.config.is_flash_attention_enabled()
        False
    """


def disable_flash_attention() -> None:
    """Accept what Keras scripts ask for; it changes nothing, see `is_flash_attention_enabled`.

    Examples:
        >>> laminar.config.disable_flash_attention()
        >>> laminar.config.is_flash_attention_enabled()
        False
    """


def is_nnx_enabled() -> bool:
    """False: that is another framework's.

    Examples:
        >>> laminar.config.is_nnx_enabled()
        False
    """
    return False


def standardize_dtype(dtype: Any) -> str:
    """The name of an element type; None is the default floating type.

    Examples:
        >>> laminar.backend.standardize_dtype(np.float32), laminar.backend.standardize_dtype(None)
        ('float32', 'float32')
    """
    return floatx() if dtype is None else str(as_dtype(dtype))
