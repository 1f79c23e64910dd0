"""Folders of examples, one folder for each class: which files, which labels, which part.

The order of the files, the labels and the parts are Keras's for the same seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laminar.callbacks.display import say
from laminar.datasets.dataset import AUTOTUNE, Dataset
from laminar.engine.errors import InvalidArgumentError, MissingFileError
from laminar.random import make_default_seed

SUBSETS = ("training", "validation", "both")
LABEL_MODES = ("int", "categorical", "binary", None)


@dataclass
class Files:
    """Files with their labels; `labels` is None where there are none."""

    paths: list[str]
    labels: list[int] | None
    class_names: list[str]

    def part(self, rows: slice) -> Files:
        """Some of them."""
        labels = None if self.labels is None else self.labels[rows]
        return Files(self.paths[rows], labels, self.class_names)


def find_files(
    who: str,
    directory: str | os.PathLike[str],
    endings: tuple[str, ...],
    *,
    labels: Any,
    class_names: Sequence[str] | None,
    follow_links: bool,
) -> Files:
    """The files of a folder in alphabetical order, with their labels.

    Args:
        who: asks, for errors.
        directory: with a folder for each class, or with all files where labels are not inferred.
        endings: of the files that count, as ".png".
        labels: "inferred" from the folders, None, or a list of numbers in the order of the files.
        class_names: the classes in an order of one's own.
        follow_links: whether folders that are links count.

    Raises:
        MissingFileError: there is no such folder.
        InvalidArgumentError: there is no file in it.
        InvalidArgumentError: classes that are not there, or another number of labels than files.
    """
    folder = os.fspath(directory)
    if not os.path.isdir(folder):
        raise MissingFileError(f"{who}: there is no folder {folder!r}")
    if isinstance(labels, str):
        found = sorted(
            name
            for name in os.listdir(folder)
            if os.path.isdir(os.path.join(folder, name)) and not name.startswith(".")
        )
        if class_names is not None and set(class_names) != set(found):
            raise InvalidArgumentError(
                f"{who}: class_names must be those of the folders: {found}, got {list(class_names)}"
            )
        names = list(class_names) if class_names is not None else found
        paths, numbers = [], []
        for number, name in enumerate(names):
            inside = _walk(os.path.join(folder, name), endings, follow_links)
            paths += inside
            numbers += [number] * len(inside)
        result = Files(paths, numbers, names)
    else:
        paths = _walk(folder, endings, follow_links)
        if labels is not None and len(labels) != len(paths):
            raise InvalidArgumentError(
                f"{who}: there are {len(labels)} labels for {len(paths)} files in {folder!r}",
                remedy="give one label for each file, in alphabetical order of the files",
            )
        given = None if labels is None else [int(n) for n in labels]
        kinds = [str(n) for n in sorted(set(given or ()))]
        result = Files(paths, given, kinds)
    if not result.paths:
        raise InvalidArgumentError(f"{who}: there are no files {', '.join(endings)} in {folder!r}")
    return result


def _walk(folder: str, endings: tuple[str, ...], follow_links: bool) -> list[str]:
    found = []
    for place, _, names in sorted(os.walk(folder, followlinks=follow_links)):
        found += [os.path.join(place, n) for n in sorted(names) if n.lower().endswith(endings)]
    return found


def checked_labels(who: str, labels: Any, label_mode: str | None, class_names: Any) -> Any:
    """`labels` as a list, "inferred" or None, if it goes with the other two."""
    if isinstance(labels, str) and labels != "inferred":
        raise InvalidArgumentError(
            f"{who}: labels must be 'inferred', None or a list of numbers, got {labels!r}"
        )
    if label_mode not in LABEL_MODES:
        raise InvalidArgumentError(
            f"{who}: label_mode must be 'int', 'categorical', 'binary' or None, got {label_mode!r}"
        )
    if class_names is not None and not isinstance(labels, str):
        raise InvalidArgumentError(f"{who}: class_names go with labels='inferred' only")
    return None if labels is None or label_mode is None else labels


def split_files(
    who: str,
    files: Files,
    *,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
    verbose: bool,
) -> list[Files]:
    """The part that `subset` asks for, or both; all without a split.

    Raises:
        InvalidArgumentError: arguments that do not go together.
    """
    _check_split(who, validation_split, subset, shuffle, seed)
    if shuffle:
        number = make_default_seed() if seed is None else seed
        for values in (files.paths, files.labels):
            if values is not None:
                np.random.RandomState(number).shuffle(values)
    count = len(files.paths)
    if verbose:
        kinds = f" belonging to {len(files.class_names)} classes" if files.class_names else ""
        say(f"Found {count} files{kinds}.")
    if validation_split is None:
        return [files]
    kept = int(validation_split * count)
    first, last = files.part(slice(0, count - kept)), files.part(slice(count - kept, None))
    for name, part in (("training", first), ("validation", last)):
        if subset in (name, "both"):
            if not part.paths:
                raise InvalidArgumentError(
                    f"{who}: validation_split={validation_split} of {count} files leaves none "
                    f"for {name}"
                )
            if verbose:
                say(f"Using {len(part.paths)} files for {name}.")
    return {"training": [first], "validation": [last], "both": [first, last]}[str(subset)]


def _check_split(
    who: str, fraction: float | None, subset: str | None, shuffle: bool, seed: int | None
) -> None:
    if fraction is not None and not 0 < fraction < 1:
        raise InvalidArgumentError(
            f"{who}: validation_split must be between 0 and 1, got {fraction!r}"
        )
    if (fraction is None) != (subset is None):
        raise InvalidArgumentError(
            f"{who}: validation_split and subset go together, got {fraction!r} and {subset!r}",
            remedy="validation_split=0.2, subset='both'",
        )
    if subset is not None and subset not in SUBSETS:
        raise InvalidArgumentError(
            f"{who}: subset must be 'training', 'validation' or 'both', got {subset!r}"
        )
    if fraction is not None and shuffle and seed is None:
        raise InvalidArgumentError(
            f"{who}: a split of shuffled files needs a seed: otherwise the two parts overlap",
            remedy="seed=1, the same for both parts",
        )


def labels_of(who: str, files: Files, label_mode: str | None) -> Any:
    """The labels as targets: int32 numbers, one-hot rows, or float columns of 0 and 1."""
    if files.labels is None:
        return None
    numbers = np.array(files.labels, "int32")
    count = len(files.class_names)
    if label_mode == "binary":
        if count != 2:
            raise InvalidArgumentError(
                f"{who}: label_mode='binary' needs two classes, got {count}: {files.class_names}"
            )
        return numbers.astype("float32")[:, None]
    if label_mode == "categorical":
        return np.eye(count, dtype="float32")[numbers]
    return numbers


@dataclass(frozen=True)
class Wanted:
    """What the functions that make data sets of folders have in common: their arguments."""

    labels: Any
    label_mode: str | None
    class_names: Sequence[str] | None
    batch_size: int | None
    shuffle: bool
    seed: int | None
    validation_split: float | None
    subset: str | None
    follow_links: bool
    verbose: bool


def datasets(
    who: str,
    directory: str | os.PathLike[str],
    endings: tuple[str, ...],
    wanted: Wanted,
    load: Callable[[bytes], Any],
    *,
    threads: int | None = AUTOTUNE,
    is_padded: bool = False,
) -> Any:
    """(loaded file, target) for each file in a folder, in batches: a Dataset, or a list of two.

    Args:
        who: asks, for errors.
        directory: with a folder for each class.
        endings: of the files that count.
        wanted: the arguments of the user.
        load: reads a file; it gets its path as bytes.
        threads: to read in.
        is_padded: whether batches are filled up to their longest element.
    """
    labels = checked_labels(who, wanted.labels, wanted.label_mode, wanted.class_names)
    files = find_files(
        *(who, directory, endings),
        labels=labels,
        class_names=wanted.class_names,
        follow_links=wanted.follow_links,
    )
    parts = split_files(
        *(who, files),
        shuffle=wanted.shuffle,
        seed=wanted.seed,
        validation_split=wanted.validation_split,
        subset=wanted.subset,
        verbose=wanted.verbose,
    )
    made = []
    for number, part in enumerate(parts):
        targets = labels_of(who, part, wanted.label_mode)
        found = Dataset.from_tensor_slices(part.paths if targets is None else (part.paths, targets))
        if wanted.shuffle and wanted.subset != "validation" and number == 0:
            found = found.shuffle(seed=wanted.seed)
        found = found.map(_loading(load), num_parallel_calls=threads)
        if wanted.batch_size is None:
            found = found.prefetch(8)
        elif is_padded:
            found = found.padded_batch(wanted.batch_size).prefetch()
        else:
            found = found.batch(wanted.batch_size).prefetch()
        found.file_paths, found.class_names = part.paths, part.class_names or None
        made.append(found)
    return made[0] if len(made) == 1 else made


def _loading(load: Callable[[bytes], Any]) -> Callable[..., Any]:
    def loaded(path: bytes, *target: Any) -> Any:
        return (load(path), *target) if target else load(path)

    return loaded
