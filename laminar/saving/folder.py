"""Models as folders: what a `.keras` archive holds, as files of their own (`zipped=False`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laminar.engine.errors import AlreadyExistsError
from laminar.engine.io.atomic import atomic_write
from laminar.engine.io.places import make_folder

from .archive import ASSETS, CONFIG, METADATA, WEIGHTS, ModelReader, check_asset_name
from .limits import Limits, beyond, refused
from .strict_json import format_object
from .weights import Variables, WeightsReader, open_file, write_weights


class FolderReader(ModelReader):
    """A folder with the files of a model, open for reading.

    Args:
        path: the folder.
        limits: what its files may ask for; give larger ones for larger models.

    Raises:
        DataLossError: it has not the files of a model, or more of them than the limits allow.
    """

    def __init__(self, path: str | os.PathLike[str], *, limits: Limits | None = None) -> None:
        super().__init__(os.fspath(path), limits or Limits())
        self._folder = Path(self.name)
        for name in (CONFIG, METADATA, WEIGHTS):
            if not (self._folder / name).is_file():
                raise refused(f"{self.name}: it has no {name}: not the folder of a Keras 3 model")
        self._assets = self._find_assets()

    @property
    def assets(self) -> list[str]:
        """The names of the files under assets/."""
        return self._assets

    def weights(self, *, mmap: bool = False) -> WeightsReader:
        """The weights; see `ModelReader.weights`."""
        return WeightsReader(self._folder / WEIGHTS, limits=self._limits, mmap=mmap)

    def close(self) -> None:
        """Nothing stays open."""

    def _content(self, entry: str, most: int, limit: str) -> bytes:
        with open_file(self._folder / entry) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise beyond(f"{self.name}: {entry}: it is too long", limit)
        return content

    def _find_assets(self) -> list[str]:
        """The files under assets/ by their names there; links are not followed."""
        found = []
        root = self._folder / ASSETS
        for folder, _, names in os.walk(root):
            found += [(Path(folder) / name).relative_to(root).as_posix() for name in names]
            if len(found) > self._limits.max_entries:
                raise beyond(f"{self.name}: it has more than {len(found)} assets", "max_entries")
        return sorted(found)


def is_model_folder(path: str) -> bool:
    """Whether a folder is that of a model."""
    return os.path.isfile(os.path.join(path, CONFIG))


def write_folder(
    path: str,
    config: dict[str, Any],
    metadata: dict[str, Any],
    weights: Mapping[str, Variables],
    *,
    names: Mapping[str, str] | None = None,
    assets: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model as a folder, which Keras 3 opens; it is there whole, or not at all.

    Args:
        path: the folder; it may be there if it is empty, or has a model, which is replaced.
        config, metadata, weights, names, assets: as of `write_archive`.

    Raises:
        AlreadyExistsError: there is a file of that name, or a folder with other things in it.
    """
    target = Path(path)
    if os.path.lexists(target):
        is_ours = target.is_dir() and (is_model_folder(path) or not any(target.iterdir()))
        if not is_ours:
            raise AlreadyExistsError(
                f"save: {path!r} is there, and is no folder of a model", remedy="pass another name"
            )
    parent = make_folder(target.parent, "save")
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{target.name[:32]}.") as scratch:
        new = Path(scratch, "new")
        new.mkdir()
        _put(new / METADATA, format_object(metadata, METADATA))
        _put(new / CONFIG, format_object(config, CONFIG))
        write_weights(new / WEIGHTS, weights, names=names)
        for name, content in (assets or {}).items():
            check_asset_name(name)
            place = new / ASSETS / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _put(place, content)
        if target.exists():
            os.replace(target, Path(scratch, "old"))
        os.replace(new, target)


def _put(path: Path, content: bytes) -> None:
    with atomic_write(path, durable=True) as file:
        file.write(content)
