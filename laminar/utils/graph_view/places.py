"""Where operations stand in the groups of a page: by their names, with two exceptions.

A constant stands with all that takes it; so does a weight, or else with what first takes it: the
weights of a layer are named by the layer alone, what it computes by the model too. Gradients have
names without a scope where a tape makes them: they stand under "gradients", by the layer that they
are of.
"""

from __future__ import annotations

from collections.abc import Sequence

from laminar.engine.graph import Operation, resource

_GRADIENTS = "gradients"


def places_of(named: Sequence[tuple[str, Operation, Sequence[int]]]) -> list[str]:
    """For each operation the path of the group where it stands, and its name there.

    Args:
        named: of each operation its name, itself, and the numbers of those that lead to it; these
            come before it.
    """
    places = [_own_place(name, op) for name, op, _ in named]
    first: dict[int, list[str]] = {}  # the groups around the first that takes an output
    common: dict[int, list[str]] = {}  # and those around all that do
    for number in range(len(named) - 1, -1, -1):
        _, op, sources = named[number]
        if not sources and number in first and _follows(op):
            around = common[number] or (first[number] if _is_handle(op) else [])
            places[number] = _moved(places[number], around)
        own = places[number].split("/")[:-1]
        for source in sources:
            common[source] = _shared(common[source], own) if source in common else own
            first[source] = own
    return places


def _follows(op: Operation) -> bool:
    """Whether an operation that nothing leads to stands where it is taken: inputs do not."""
    return op.type != "Placeholder" or _is_handle(op)


def _is_handle(op: Operation) -> bool:
    return any(y.dtype == resource for y in op.outputs)


def _own_place(name: str, op: Operation) -> str:
    is_gradient = "/" not in name and bool(op.layer) and op.type != "Placeholder"
    return f"{_GRADIENTS}/{op.layer}/{name}" if is_gradient else name


def _shared(a: Sequence[str], b: Sequence[str]) -> list[str]:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return list(a[:count])


def _moved(place: str, around: Sequence[str]) -> str:
    """The place of a source inside of the groups that are around all that takes it.

    It keeps the scopes that these groups do not have: "block/kernel" in "model" is
    "model/block/kernel", and in "model/block" too.
    """
    *own, label = place.split("/")
    if list(around[: len(own)]) == own or not around:
        return "/".join([*(around or own), label])
    tail = next((i for i in range(len(own), 0, -1) if list(around[-i:]) == own[:i]), 0)
    return "/".join([*around, *own[tail:], label])
