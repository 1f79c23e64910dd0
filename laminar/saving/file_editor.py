"""KerasFileEditor: the weights of a file, to look at and to change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from laminar.engine.text_table import aligned

from ..callbacks.display import say
from ..paths import file_name
from .archive import open_archive
from .state import stored_objects
from .weights import WeightsReader, WeightsWriter

Tree = dict[str, Any]


class KerasFileEditor:
    """The weights of a `.keras` or `.weights.h5` file, without the model that they are of.

        editor = KerasFileEditor("model.keras")
        editor.rename_object("dense_3", "dense_4")
        editor.save("changed.weights.h5")

    Nothing in the file is run, and no model is made of it.

    Args:
        filepath: the file.

    Attributes:
        weights_dict: the arrays by the names of objects and weights, nested:
            `weights_dict["layers"]["dense"]["0"]`.
        config: of the model, None for weights alone; `metadata` likewise.

    Raises:
        InvalidArgumentError: a file of another kind.
        DataLossError: the file is damaged, or refers to other files.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2, name="head")])
        >>> model.save_weights("model.weights.h5")
        >>> laminar.saving.KerasFileEditor("model.weights.h5").summary()
        model.weights.h5
        object        weight  shape   dtype
        layers/dense  0       (3, 2)  float32
        layers/dense  1       (2,)    float32
    """

    def __init__(self, filepath: str | os.PathLike[str]) -> None:
        self.filepath = file_name(filepath, "KerasFileEditor")
        self.config: dict[str, Any] | None = None
        self.metadata: dict[str, Any] | None = None
        self.weights_dict: Tree = {}
        self._names: dict[str, str] = {}  # of objects, by path
        if self.filepath.endswith(".keras"):
            with open_archive(self.filepath) as archive:
                self.config, self.metadata = archive.config, archive.metadata
                with archive.weights() as weights:
                    self._read(weights)
        elif self.filepath.endswith(".weights.h5"):
            with WeightsReader(self.filepath) as weights:
                self._read(weights)
        else:
            raise InvalidArgumentError(
                f"KerasFileEditor: the file must end in .keras or .weights.h5, "
                f"got {self.filepath!r}"
            )

    def _read(self, weights: WeightsReader) -> None:
        for path in weights.objects():
            self._object(path).update(weights.variables(path))
            name = weights.name_of(path)
            if name is not None:
                self._names[path] = name

    def _object(self, path: str) -> Tree:
        """The dict of an object, made if it is not there."""
        found = self.weights_dict
        for part in path.split("/") if path else ():
            found = found.setdefault(part, {})
        return found

    # Looking

    def summary(self) -> None:
        """Print the objects with their weights, in the order of the file."""
        rows = [("object", "weight", "shape", "dtype")]
        for path, array in _arrays(self.weights_dict):
            owner, _, name = path.rpartition("/")
            rows.append((owner, name, str(array.shape), str(array.dtype)))
        say("\n".join([self.filepath, *aligned(rows, left=4)]))

    def compare(self, reference_model: Any) -> dict[str, Any]:
        """See whether a model can load these weights; prints what differs.

        Args:
            reference_model: a model with weights.

        Returns:
            "status" ("success" or "error"), "error_count" (an object that only one has counts
            once) and "match_count" (the weights that both have, of one shape).
        """
        wanted: Tree = {}
        for path, obj in stored_objects(reference_model):
            store: dict[str, Any] = {}
            obj.save_own_variables(store)
            if store:
                place = wanted
                for part in path.split("/") if path else ():
                    place = place.setdefault(part, {})
                place.update(store)
        differences: list[str] = []
        matches = _compare(self.weights_dict, wanted, "", differences)
        for line in differences:
            say(line)
        say(f"{matches} weights match, {len(differences)} differences")
        return {
            "status": "error" if differences else "success",
            "error_count": len(differences),
            "match_count": matches,
        }

    # Changing

    def _find(self, name: str, who: str) -> tuple[Tree, str]:
        """The dict that holds an object, by its path or its name, and its key there."""
        if "/" in name:
            owner, _, key = name.rpartition("/")
            place: Any = self.weights_dict
            for part in owner.split("/"):
                place = place.get(part) if isinstance(place, dict) else None
            if isinstance(place, dict) and isinstance(place.get(key), dict):
                return place, key
            raise NotFoundError(f"{who}: the file has no object {name!r}", remedy="see summary()")
        found = [place for place in _dicts(self.weights_dict) if isinstance(place.get(name), dict)]
        if len(found) != 1:
            raise NotFoundError(
                f"{who}: {len(found)} objects are named {name!r}",
                remedy="give the whole path" if found else "see summary()",
            )
        return found[0], name

    def rename_object(self, object_name: str, new_name: str) -> None:
        """Give an object another name, at the same place.

        Args:
            object_name: its name, or its path such as "layers/dense".
            new_name: a name, not a path.

        Raises:
            NotFoundError: there is no such object, or several.
            AlreadyExistsError: the new name is taken.
            InvalidArgumentError: the new name is a path.
        """
        if "/" in new_name or not new_name:
            raise InvalidArgumentError(
                f"rename_object: the new name must be a name, not a path, got {new_name!r}"
            )
        place, key = self._find(object_name, "rename_object")
        _require_free(place, new_name, "rename_object")
        place[new_name] = place.pop(key)

    def delete_object(self, object_name: str) -> None:
        """Take an object out, with all that is inside."""
        place, key = self._find(object_name, "delete_object")
        del place[key]

    def add_object(self, object_path: str, weights: Mapping[str, Any]) -> None:
        """Put an object in.

        Args:
            object_path: such as "layers/dense_3"; the objects around it are made if need be.
            weights: its arrays by name, "0", "1", ... as layers have them.

        Raises:
            AlreadyExistsError: the path is taken.
        """
        owner, _, key = object_path.rpartition("/")
        place = self._object(owner)
        _require_free(place, key, "add_object")
        place[key] = {}
        _put(place[key], weights, "add_object")

    def add_weights(self, object_name: str, weights: Mapping[str, Any]) -> None:
        """Give an object more arrays.

        Args:
            object_name: its path in the file, such as "layers/dense", or its name where one has it.
            weights: arrays by name.

        Raises:
            AlreadyExistsError: it has an array of such a name.
            NotFoundError: there is no such object.
        """
        place, key = self._find(object_name, "add_weights")
        _put(place[key], weights, "add_weights")

    def delete_weight(self, object_name: str, weight_name: str) -> None:
        """Take an array of an object out.

        Args:
            object_name: see `add_weights`.
            weight_name: of the array.

        Raises:
            NotFoundError: there is no such object, or array.
        """
        place, key = self._find(object_name, "delete_weight")
        if isinstance(place[key].get(weight_name), dict | None):
            raise NotFoundError(f"delete_weight: {object_name!r} has no weight {weight_name!r}")
        del place[key][weight_name]

    def save(self, filepath: str | os.PathLike[str]) -> None:
        """Write the weights, as they are now, to a `.weights.h5` file."""
        path = file_name(filepath, "KerasFileEditor.save")
        if not path.endswith(".weights.h5"):
            raise InvalidArgumentError(
                f"KerasFileEditor.save: the file must end in .weights.h5, got {path!r}"
            )
        with WeightsWriter(path) as writer:
            for place, inside in _objects(self.weights_dict, ""):
                own = {name: value for name, value in inside.items() if not isinstance(value, dict)}
                writer.write(place, own, name=self._names.get(place))

    resave_weights = save  # its older name


def _arrays(tree: Tree, path: str = "") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name, value in tree.items():
        inner = f"{path}/{name}" if path else name
        if isinstance(value, dict):
            yield from _arrays(value, inner)
        else:
            yield inner, value


def _dicts(tree: Tree) -> Iterator[Tree]:
    yield tree
    for value in tree.values():
        if isinstance(value, dict):
            yield from _dicts(value)


def _objects(tree: Tree, path: str) -> Iterator[tuple[str, Tree]]:
    yield path, tree
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _objects(value, f"{path}/{name}" if path else name)


def _require_free(place: Tree, key: str, who: str) -> None:
    if key in place:
        raise AlreadyExistsError(f"{who}: {key!r} is there already", remedy="delete it first")


def _put(place: Tree, weights: Mapping[str, Any], who: str) -> None:
    arrays = {str(name): np.asarray(value) for name, value in weights.items()}
    for name in arrays:
        _require_free(place, name, who)
    place.update(arrays)


def _compare(saved: Tree, wanted: Tree, path: str, differences: list[str]) -> int:
    """How many arrays match; what differs is added to the list, a line each."""
    matches = 0
    for name in {**wanted, **saved}:
        inner = f"{path}/{name}" if path else name
        a, b = saved.get(name), wanted.get(name)
        if a is None or b is None:
            if not _is_empty(a if b is None else b):
                missing = "the file" if a is None else "the model"
                differences.append(f"{inner}: {missing} has no such thing")
        elif isinstance(a, dict) and isinstance(b, dict):
            matches += _compare(a, b, inner, differences)
        elif isinstance(a, dict) or isinstance(b, dict) or np.shape(a) != np.shape(b):
            differences.append(f"{inner}: {_shown(a)} in the file, {_shown(b)} in the model")
        else:
            matches += 1
    return matches


def _is_empty(value: Any) -> bool:
    """Whether it is an object without weights, inside and out: files have some, models none."""
    return isinstance(value, dict) and all(map(_is_empty, value.values()))


def _shown(value: Any) -> str:
    return "an object" if isinstance(value, dict) else f"shape {np.shape(value)}"
