"""What an op is like stands with the op: what rewrites and runs graphs keeps no names of ops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from laminar.engine.ops.core.registry import all_ops

ENGINE = Path(__file__).resolve().parents[2] / "engine"
ROOMS = ("passes", "compiler", "runtime")
COLLECTIONS = {"dict", "frozenset", "list", "set", "tuple"}


def names_of_ops(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """The lines that compare or collect names of ops, or give one a name of its own.

    A name as an argument of a call is none of these: it registers a rule or begins a message.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            parts = node.args if called in COLLECTIONS else []
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Set | ast.Tuple | ast.List):
            parts = node.elts
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.MatchValue):
            parts = [] if node.value is None else [node.value]
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        else:
            continue
        for part in parts:
            if isinstance(part, ast.Constant) and part.value in names:
                yield part.lineno, str(part.value)


def test_no_names_of_ops_far_from_the_ops() -> None:
    names = {type for type, op in all_ops().items() if op.rule.__module__.startswith("laminar.")}
    found = [
        f"{path.relative_to(ENGINE)}:{line} names {name!r}: state a trait, or compare definitions"
        for room in ROOMS
        for path in sorted((ENGINE / room).rglob("*.py"))
        for line, name in names_of_ops(path.read_text(), names)
    ]
    assert not found, "\n".join(found)


def test_the_search_finds_them() -> None:
    source = """
lowers("Add")
raise_for("Add", x)
message = f"{Add} of"
KINDS = frozenset({"Add", "Other"})
if op.type == "Add" or op.type in ("Mul", "Other"):
    pass
RULES = {"Mul": rule}
NAME = "Add"
OTHERS = set(["Mul"])
rule = RULES["Add"]
"""
    found = list(names_of_ops(source, {"Add", "Mul"}))
    assert sorted(found) == [
        (5, "Add"),
        (6, "Add"),
        (6, "Mul"),
        (8, "Mul"),
        (9, "Add"),
        (10, "Mul"),
        (11, "Add"),
    ]
