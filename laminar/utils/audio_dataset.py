"""audio_dataset_from_directory: sounds in folders, one folder for each class."""

from __future__ import annotations

import os
import wave
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, InvalidArgumentError, UnimplementedError

from .directories import Wanted, datasets

_WHO = "audio_dataset_from_directory"


def audio_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    sampling_rate: int | None = None,
    output_sequence_length: int | None = None,
    ragged: bool = False,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    verbose: bool = True,
) -> Any:
    """A Dataset of the sounds (.wav, PCM) in a folder.

    Args:
        directory: with a folder for each class.
        labels: "inferred" from the folders, None, or a list of numbers in the order of the files.
        label_mode: "int", "categorical", "binary" or None, as in `image_dataset_from_directory`.
        class_names: the classes in an order of one's own.
        batch_size: sounds in a batch; None for single sounds.
        sampling_rate: that all files must have, in Hertz; None for any.
        output_sequence_length: samples that sounds are cut or filled up to; None for those of the
            longest of the batch.
        ragged: not supported: there are no ragged tensors.
        shuffle: whether each pass has another random order.
        seed: of the order and the split.
        validation_split: fraction of the sounds to keep for validation.
        subset: "training", "validation", or "both" for a list of the two.
        follow_links: whether links to folders are followed.
        verbose: whether to say how many files there are.

    Returns:
        A Dataset of float32 (samples, channels) from -1 to 1, with targets unless there are no
        labels; with `class_names` and `file_paths`.

    Raises:
        MissingFileError: no folder, or no sounds in it.
        InvalidArgumentError: arguments that do not go together; when walked, another rate.
        DataLossError: when walked: a damaged file.

    Examples:
        >>> import pathlib, wave
        >>> for name in ("no/1.wav", "yes/2.wav"):
        ...     pathlib.Path(name).parent.mkdir()
        ...     with wave.open(name, "wb") as file:
        ...         file.setparams((1, 2, 8000, 0, "NONE", ""))
        ...         file.writeframes(np.zeros(100, "int16").tobytes())
        >>> data = laminar.utils.audio_dataset_from_directory(".", verbose=False)
        >>> sounds, labels = next(iter(data))
        >>> sounds.shape
        (2, 100, 1)
    """
    if ragged:
        raise UnimplementedError(
            f"{_WHO}: there are no ragged tensors", remedy="leave ragged out: batches are filled up"
        )
    load = partial(_load, rate=sampling_rate, length=output_sequence_length)
    return datasets(
        _WHO,
        directory,
        (".wav",),
        Wanted(
            labels,
            label_mode,
            class_names,
            batch_size,
            shuffle,
            seed,
            validation_split,
            subset,
            follow_links,
            verbose,
        ),
        load,
        is_padded=output_sequence_length is None,
    )


def _load(path: bytes, rate: int | None, length: int | None) -> Any:
    name = os.fsdecode(path)
    samples, found = read_wav(name)
    if rate is not None and rate != found:
        raise InvalidArgumentError(
            f"{_WHO}: {name} has {found} samples a second, sampling_rate={rate} was asked for",
            remedy="resample the files first",
        )
    if length is None:
        return samples
    out = np.zeros((length, samples.shape[1]), "float32")
    out[: len(samples)] = samples[:length]
    return out


def read_wav(path: str) -> tuple[Any, int]:
    """The samples (samples, channels) of a PCM file as float32 from -1 to 1, and their rate.

    Raises:
        DataLossError: it is no such file.
    """
    try:
        with wave.open(path, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as cause:
        raise DataLossError(f"{path} is not a PCM sound file: {cause}") from cause
    data = data[: len(data) - len(data) % (width * channels)]
    if width == 1:
        values = np.frombuffer(data, np.uint8).astype("float32") - 128
    elif width == 3:
        high = np.zeros((len(data) // 3, 4), np.uint8)  # as the upper bytes of 32 bits
        high[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = (high.view("<i4")[:, 0] >> 8).astype("float32")
    else:
        values = np.frombuffer(data, f"<i{width}").astype("float32")
    return (values / 2 ** (8 * width - 1)).reshape(-1, channels), rate
