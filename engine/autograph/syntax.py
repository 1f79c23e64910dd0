"""Making pieces of syntax trees; what is known of expressions without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

# What generated code calls the functions of `runtime`; names of its own begin with it.
PREFIX = "ag__"
# Whose results are Python's, whatever they are given.
_PYTHON_TESTS = {"isinstance", "issubclass", "hasattr", "callable"}

_Node = TypeVar("_Node", bound=ast.AST)


def at(node: ast.AST, made: _Node) -> _Node:
    """`made` with the line of `node`, where it has none of its own.

    It is the first line: of a call over several, Python would name the last.
    """
    place: Any = node
    for child in ast.walk(made):
        if "lineno" in child._attributes and not hasattr(child, "lineno"):
            given: Any = child
            given.lineno = given.end_lineno = place.lineno
            given.col_offset = given.end_col_offset = place.col_offset
    return made


def load(name: str) -> ast.Name:
    """The value of a variable."""
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    """A variable as a target."""
    return ast.Name(name, ast.Store())


def assign(name: str, value: ast.expr) -> ast.Assign:
    """name = value"""
    return ast.Assign([store(name)], value)


def constant(value: Any) -> ast.Constant:
    """A constant."""
    return ast.Constant(value)


def helper(name: str) -> ast.Attribute:
    """A function of the runtime."""
    return ast.Attribute(load(PREFIX), name, ast.Load())


def call(function: ast.expr | str, *arguments: ast.expr) -> ast.Call:
    """A call; a string names a function of the runtime."""
    callee = helper(function) if isinstance(function, str) else function
    return ast.Call(callee, list(arguments), [])


def arguments(names: Sequence[str] = ()) -> ast.arguments:
    """Plain parameters."""
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def thunk(body: ast.expr) -> ast.Lambda:
    """lambda: body"""
    return ast.Lambda(arguments(), body)


def define(name: str, body: Iterable[ast.stmt], parameters: Sequence[str] = ()) -> ast.FunctionDef:
    """def name(parameters): body"""
    return ast.FunctionDef(name, arguments(parameters), list(body) or [ast.Pass()], [])


def negated(names: Sequence[str]) -> ast.expr:
    """not (a or b or ...)"""
    values: list[ast.expr] = [load(n) for n in names]
    either = values[0] if len(values) == 1 else ast.BoolOp(ast.Or(), values)
    return ast.UnaryOp(ast.Not(), either)


def is_pythons(test: ast.expr) -> bool:
    """Whether an expression gives one of Python's own truth values, whatever its parts are."""
    match test:
        case ast.Constant():
            return True
        case ast.Compare(ops=ops):
            return all(isinstance(op, ast.Is | ast.IsNot) for op in ops)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return is_pythons(operand)
        case ast.BoolOp(values=values):
            return all(map(is_pythons, values))
        case ast.Call(func=ast.Name(id=name)):
            return name in _PYTHON_TESTS
    return False
