"""Which loss is for which outputs: structures of losses over structures of outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.tree import flatten, flatten_with_path, is_nested, pack_sequence_as

from .outputs import Outputs

Path = tuple[Any, ...]


class Share(NamedTuple):
    """A loss, its factor, and the part of the outputs that it is for: a leaf, or a structure."""

    path: Path
    loss: Any
    factor: float


def shares(loss: Any, weights: Any, outputs: Outputs) -> list[Share]:
    """Match losses with outputs.

    One loss is for each output, also in a structure of them if it is laminar's own; a function may
    take a structure. A dict goes by key, or by the names of the outputs; a list as long as there
    are outputs, or one that nests as they do, by position. Any other list holds several losses for
    the same part of the outputs.

    Args:
        loss: the losses; None for none.
        weights: a factor for all, or structured as the losses, or as the outputs.
        outputs: what they are matched with.

    Raises:
        InvalidArgumentError: a list of another length, or a dict where the outputs are none.
        NotFoundError: a key that the outputs do not have.
    """
    form = outputs.form
    leaves = [path for path, _ in flatten_with_path(form)]
    if not is_nested(loss):
        factors = outputs.split(weights, "compile: loss_weights", same_for_all=True)
        given = [Share(path, loss, _factor(f)) for path, f in zip(leaves, factors, strict=True)]
        return [share for share in given if share.loss is not None]
    by_name = isinstance(loss, Mapping) and all(key in outputs.names for key in loss)
    if by_name or _is_by_leaf(loss, form):
        if _is_flat(weights):
            weights = outputs.split(weights, "compile: loss_weights", same_for_all=True)
        elif isinstance(weights, Mapping):
            weights = [weights.get(name) for name in outputs.names]
        loss = outputs.split(loss, "compile: loss")
        found: list[Share] = []
        for i, path in enumerate(leaves):
            found += _walk(loss[i], _inner(weights, i, loss), None, path)
        return found
    if isinstance(loss, Mapping) and not isinstance(form, Mapping):
        unknown = ", ".join(repr(key) for key in loss if key not in outputs.names)
        raise InvalidArgumentError(
            f"compile: loss: no output is named {unknown}; the outputs are "
            f"{', '.join(outputs.names)}",
            remedy="use the names of the output layers",
        )
    if _is_flat(loss) and isinstance(loss, list | tuple) and isinstance(form, list | tuple):
        raise InvalidArgumentError(
            f"compile: loss: expected {len(outputs.names)} entries, one for each output "
            f"({', '.join(outputs.names)}), got {len(loss)}"
        )
    return list(_walk(loss, weights, form, ()))


def _walk(loss: Any, weights: Any, form: Any, path: Path) -> Iterator[Share]:
    if loss is None:
        return
    if not is_nested(loss):
        if is_nested(form) and _is_of_one(loss):
            loss = [loss] * len(flatten(form))
            for i, (inner_path, _) in enumerate(flatten_with_path(form)):
                yield Share((*path, *inner_path), loss[i], _factor(_inner(weights, i, loss)))
        else:
            yield Share(path, loss, _factor(weights))
    elif isinstance(loss, Mapping):
        if not isinstance(form, Mapping):
            raise InvalidArgumentError(
                f"compile: loss: {_at(path)} is no dict, the losses for it have the keys "
                f"{', '.join(map(str, loss))}",
                remedy="use the names of the output layers, or nest the losses as the outputs",
            )
        for key, inner in loss.items():
            if key not in form:
                raise NotFoundError(
                    f"compile: loss: {_at(path)} has no {key!r}, it has "
                    f"{', '.join(map(str, form))}",
                    remedy="name the losses as the outputs are named",
                )
            yield from _walk(inner, _inner(weights, key, loss), form[key], (*path, key))
    elif _is_by_leaf(loss, form):
        for i, (inner_path, _) in enumerate(flatten_with_path(form)):
            yield from _walk(loss[i], _inner(weights, i, loss), None, (*path, *inner_path))
    elif _is_by_position(loss, form, path):
        for i, inner in enumerate(loss):
            yield from _walk(inner, _inner(weights, i, loss), form[i], (*path, i))
    else:
        for i, inner in enumerate(loss):
            yield from _walk(inner, _inner(weights, i, loss), form, path)


def _is_of_one(loss: Any) -> bool:
    """Whether a loss takes one output: laminar's own do, functions may take a structure."""
    return isinstance(loss, str) or type(loss).__module__.partition(".")[0] == "laminar"


def _is_by_leaf(loss: Any, form: Any) -> bool:
    """Whether it is a list of one loss for each of the outputs."""
    return (
        isinstance(loss, list | tuple)
        and len(loss) == len(flatten(form))
        and not any(map(is_nested, loss))
    )


def _is_by_position(loss: Any, form: Any, path: Path) -> bool:
    if not isinstance(form, list | tuple):
        return False
    if len(loss) != len(form):
        if type(loss) is type(form) or not any(map(is_nested, loss)):
            raise InvalidArgumentError(
                f"compile: loss: expected {len(form)} entries for {_at(path)}, got {len(loss)}"
            )
        return False
    fits = not any(is_nested(x) and not is_nested(y) for x, y in zip(loss, form, strict=True))
    return fits or type(loss) is type(form)


def _is_flat(weights: Any) -> bool:
    values = weights.values() if isinstance(weights, Mapping) else weights
    return not is_nested(weights) or not any(map(is_nested, values))


def _inner(weights: Any, key: Any, loss: Any) -> Any:
    """The factors of the losses at `key`: those of a structure like theirs, or one for all."""
    if isinstance(weights, Mapping):
        return weights.get(key)
    if isinstance(weights, list | tuple):
        if len(weights) != len(loss):
            raise InvalidArgumentError(
                f"compile: loss_weights: expected {len(loss)} entries, one for each loss, "
                f"got {len(weights)}"
            )
        return weights[key]
    return weights


def _factor(weight: Any) -> float:
    if is_nested(weight):
        raise InvalidArgumentError(
            f"compile: loss_weights: expected a number for a loss, got {weight!r}"
        )
    return 1.0 if weight is None else weight


def _at(path: Path) -> str:
    return f"the output at {'/'.join(map(str, path))!r}" if path else "the output"


def name_of(path: Path, outputs: Outputs) -> str:
    """What a part of the outputs is called: by its keys, and by the names of what is in it."""
    form, names, parts = outputs.form, list(outputs.names), []
    leaves = [leaf for leaf, _ in flatten_with_path(form)]
    has_keys = any(isinstance(key, str) for key in path)
    if path in leaves and not has_keys:
        return names[leaves.index(path)]
    inner = pack_sequence_as(form, outputs.layer_names)
    for key in path:
        is_keyed = isinstance(inner, Mapping)
        inner = inner[key]
        parts.append(str(key) if is_keyed else "_".join(flatten(inner)))
    if parts:
        return "/".join(parts)
    return "_".join(map(str, sorted(inner)) if isinstance(inner, Mapping) else flatten(inner))


def part_at(structure: Any, path: Path) -> Any:
    """The part of a structure that the keys in `path` lead to."""
    for key in path:
        structure = structure[key]
    return structure
