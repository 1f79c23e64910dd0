"""text_dataset_from_directory: texts in folders, one folder for each class."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .directories import Wanted, datasets

_WHO = "text_dataset_from_directory"


def text_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """A Dataset of the texts (.txt) in a folder.

    Args:
        directory: with a folder for each class.
        labels: "inferred" from the folders, None, or a list of numbers in the order of the files.
        label_mode: "int", "categorical", "binary" or None, as in `image_dataset_from_directory`.
        class_names: the classes in an order of one's own.
        batch_size: texts in a batch; None for single texts.
        max_length: bytes after which a text is cut.
        shuffle: whether each pass has another random order.
        seed: of the order and the split.
        validation_split: fraction of the texts to keep for validation.
        subset: "training", "validation", or "both" for a list of the two.
        follow_links: whether links to folders are followed.
        format: accepted for Keras's sake: the result is a laminar Dataset.
        verbose: whether to say how many files there are.

    Returns:
        A Dataset of texts, with targets unless there are no labels; with `class_names` and
        `file_paths`.

    Raises:
        MissingFileError: no folder, or no texts in it.
        InvalidArgumentError: arguments that do not go together.

    Examples:
        >>> import pathlib
        >>> for name in ("bad/1.txt", "good/2.txt"):
        ...     pathlib.Path(name).parent.mkdir()
        ...     _ = pathlib.Path(name).write_text("a review")
        >>> data = laminar.utils.text_dataset_from_directory(".", verbose=False)
        >>> texts, labels = next(iter(data))
        >>> sorted(labels.numpy())
        [np.int32(0), np.int32(1)]
    """

    def load(path: bytes) -> bytes:
        with open(path, "rb") as file:
            return file.read(-1 if max_length is None else max_length)

    return datasets(
        _WHO,
        directory,
        (".txt",),
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
        threads=None,
    )
