"""The variables of a model in the layout of Keras 3: an object at each path, see `state`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.source import warn
from laminar.optimizers import Optimizer

from .loading import Loading
from .report import ABSENT, UNUSED, LoadReport, listed
from .state import stored_objects
from .weights import ArraySpec

Array = npt.NDArray[Any]


class Store(Protocol):
    """A file, or several, in which variables stand by path."""

    def __iter__(self) -> Iterator[str]: ...

    def spec(self, path: str) -> ArraySpec:
        """Shape and dtype of an array."""
        ...

    def objects(self) -> list[str]:
        """The paths of all objects that keep variables."""
        ...

    def variables(self, path: str) -> dict[str, Array]:
        """The variables of an object by name."""
        ...

    def name_of(self, path: str) -> str | None:
        """What the object was called."""
        ...


def collect(
    model: Any, skipped: Iterable[Any] = ()
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The variables of each stored object by path, and the names of the objects."""
    weights: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for path, obj in stored_objects(model, skipped):
        weights[path] = own_variables(obj)
        names[path] = obj.name
    return weights, names


def own_variables(obj: Any) -> dict[str, Any]:
    """What an object puts into a file."""
    store: dict[str, Any] = {}
    obj.save_own_variables(store)
    return store


def restore(
    model: Any,
    store: Store,
    file: str,
    *,
    skip_mismatch: bool = False,
    partial: bool = False,
    is_keras_2: bool = False,
    verify: Callable[[], None] | None = None,
    skipped: Sequence[Any] = (),
) -> LoadReport:
    """Set all variables from a file; on an error, all keep the values they had.

    Args:
        model: what is loaded into.
        store: the content of the file.
        file: its name, for messages.
        skip_mismatch: leave objects as they are that do not fit, with a warning.
        partial: load what fits, and report the rest; objects whose path is another one now are
            found by name.
        is_keras_2: whether Keras 2 wrote the file, whose optimizers keep no learning rate.
        verify: is called when all was read; its error is one of the loading.
        skipped: objects that keep their values, whatever the file has.

    Raises:
        InvalidArgumentError: an object has another number of variables, or of other shapes.
        NotFoundError: the file belongs to another model.
    """
    objects = stored_objects(model, skipped)
    stored = {path: path for path in store.objects()}
    places = _by_name(objects, store) if partial else stored
    for path, _ in objects:  # Keras 2 kept some layers under private names
        head, _, last = path.rpartition("/")
        private = f"{head}/_{last}".lstrip("/")
        if path not in places and private in stored:
            places[path] = private
    if any(path not in places for path, _ in objects):
        former = {id(o): p for p, o in stored_objects(model, skipped, are_nested=False)}
        old = {path: former.get(id(obj), "") for path, obj in objects if path not in places}
        free = stored.keys() - places.values() if partial else stored.keys()
        places |= {path: place for path, place in old.items() if place in free}
    with Loading(model, file, skip_mismatch=skip_mismatch, partial=partial) as loading:
        for path, obj in objects:
            _restore_one(loading, path, obj, places.get(path), store, is_keras_2)
        known = {places.get(path, path) for path, _ in stored_objects(model)}
        unknown = _unknown(store, known)
        if unknown and not partial:
            _check_common(unknown, store, known, file, model.name)
        for path in unknown:
            loading.report.add(path, UNUSED)
        if verify is not None:
            verify()
    if unknown and not partial:
        warn(
            f"{file}: the model {model.name!r} has no place for {len(unknown)} layers of the file, "
            f"which are left out: {listed(unknown)}"
        )
    return loading.report


def _restore_one(
    loading: Loading, path: str, obj: Any, place: str | None, store: Store, is_keras_2: bool
) -> None:
    what = path or "the model"
    values = {} if place is None else {k: _frozen(v) for k, v in store.variables(place).items()}
    if isinstance(obj, Optimizer):
        if len(values) != len(obj.variables) and not any(v.ndim for v in values.values()):
            return  # written without slots, before the first step
        if is_keras_2 and len(values) == len(obj.variables) - 1:
            values = _with_learning_rate(values, obj)
    elif not values:
        count = len(own_variables(obj))
        if count and place is None:
            who = f"{type(obj).__name__} {obj.name!r}"
            error = InvalidArgumentError(
                f"{loading.file}: {what!r}: the file has no weights for it, {who} has {count}",
                remedy="load the file into the architecture that wrote it, or with partial=True",
            )
            if loading.partial:
                loading.report.add(what, ABSENT)
            else:
                loading.misfit(what, error)
            return
        if not count and type(obj).load_own_variables.__module__.startswith("laminar."):
            return  # a method of the user's own is told that there is nothing
    loading.load(what, lambda: obj.load_own_variables(values))


def _frozen(array: Array) -> Array:
    """The array, which nobody will change: a variable may keep it without a copy."""
    array.flags.writeable = False
    return array


def _with_learning_rate(values: Mapping[str, Array], optimizer: Any) -> dict[str, Array]:
    rest = [values[str(i)] for i in range(len(values)) if str(i) in values]
    ordered = [*rest[:1], np.asarray(optimizer.variables[1]), *rest[1:]]
    return {str(i): array for i, array in enumerate(ordered)}


# Which objects of a file belong to which of a model


def _by_name(objects: Iterable[tuple[str, Any]], store: Store) -> dict[str, str]:
    """Where the variables of each object stand: at its path, or where its name stands.

    A layer put between others moves the paths of those of its class behind it. So names decide
    where more objects fit by name than by path, or as many and all of the file.
    """
    by_path = {path: path for path in store.objects()}
    shapes: dict[str, list[tuple[int, ...]]] = {path: [] for path in by_path}
    for path in sorted(store):
        head = path.rpartition("/")[0].removesuffix("vars").removesuffix("/")
        shapes.setdefault(head, []).append(store.spec(path).shape)
    named: dict[str, list[str]] = {}
    for path in by_path:
        name = store.name_of(path)
        if name is not None and shapes[path]:
            named.setdefault(name, []).append(path)
    pairs: dict[str, str] = {}
    fit_by_path = fit_by_name = 0
    for path, obj in objects:
        mine = sorted(tuple(np.shape(value)) for value in own_variables(obj).values())
        if not mine:
            continue
        fit_by_path += sorted(shapes.get(path, ())) == mine
        places = named.get(obj.name, [])
        if len(places) == 1:
            pairs[path] = places[0]
            fit_by_name += sorted(shapes[places[0]]) == mine
    are_all_named = fit_by_name == sum(map(bool, shapes.values()))
    if fit_by_name < fit_by_path + (not are_all_named):
        return by_path
    taken = set(pairs.values())
    return pairs | {path: path for path in by_path if path not in taken and path not in pairs}


def _unknown(store: Store, known: set[str]) -> list[str]:
    """The objects of a file that have variables and that the model does not have."""
    stored = {path.rpartition("/")[0].removesuffix("vars").removesuffix("/") for path in store}
    return sorted(path for path in stored - known if path and not _is_state(path))


def _is_state(path: str) -> bool:
    """Whether what stands at a path are no weights: files may have it or not."""
    parts = path.split("/")
    return parts[0] in ("optimizer", "metrics") or parts[-1] in (
        "seed_generator",
        "_random_generator",
    )


def _check_common(unknown: list[str], store: Store, known: set[str], file: str, name: str) -> None:
    """Refuse a file of another model: one of whose layers the model has none."""
    stored = {path.rpartition("/vars/")[0] for path in store if not path.startswith("vars/")}
    weights = {path for path in stored if not _is_state(path)}
    if not weights & known:
        raise NotFoundError(
            f"{file}: none of the {len(weights)} layers in the file ({listed(unknown)}) "
            f"is in the model {name!r}",
            remedy="load the file into the architecture that wrote it, or use load_model",
        )


# Files beside the variables


def assets_of(model: Any) -> dict[str, bytes]:
    """The files, such as vocabularies, that objects keep beside their variables, by path."""
    assets: dict[str, bytes] = {}
    for path, obj in stored_objects(model):
        if hasattr(obj, "save_assets"):
            own = _saved_assets(obj)
            assets |= {f"{path}/{name}" if path else name: data for name, data in own.items()}
    return assets


def restore_assets(model: Any, assets: Sequence[str], read: Callable[[str], bytes]) -> None:
    """Give each object the files that it kept; those of objects inside it are theirs.

    Args:
        model: what is loaded into.
        assets: the names of all files.
        read: gives the content of one by its name.
    """
    for path, obj in stored_objects(model):
        if hasattr(obj, "load_assets"):
            head = f"{path}/" if path else ""
            names = [n.removeprefix(head) for n in assets if n.startswith(head)]
            own = {n: read(head + n) for n in names if "/" not in n}
            if _takes_mapping(obj):
                obj.load_assets(own)
            else:
                _load_from_folder(obj, own)


def _takes_mapping(obj: Any) -> bool:
    """Whether the class is laminar's own; others get a folder, as in Keras."""
    module: str = type(obj).save_assets.__module__
    return module.partition(".")[0] == "laminar"


def _saved_assets(obj: Any) -> dict[str, bytes]:
    if _takes_mapping(obj):
        store: dict[str, bytes] = {}
        obj.save_assets(store)
        return store
    with tempfile.TemporaryDirectory() as folder:
        obj.save_assets(folder)
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def _load_from_folder(obj: Any, files: Mapping[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        obj.load_assets(folder)
