"""The syntax tree of a function, found in the file that it was written in."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from collections import defaultdict
from types import CodeType, FunctionType
from typing import Any

Definition = ast.FunctionDef | ast.Lambda


class NotConvertibleError(Exception):
    """Why a function stays as it is."""


def definition_of(fn: FunctionType) -> Definition:
    """A copy of the tree of `fn`, with the lines of its file.

    Raises:
        NotConvertibleError: there is no source, or the file has changed since it was loaded.
    """
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if not lines:
        raise NotConvertibleError("its source cannot be read")
    try:
        found = _definitions("".join(lines))[code.co_firstlineno]
    except (SyntaxError, ValueError, RecursionError):
        raise NotConvertibleError("its source cannot be parsed") from None
    fitting = [node for node in found if _fits(node, code)]
    if len(fitting) > 1:
        fitting = _at_the_place_of(code, fitting)
    if len(fitting) != 1:
        raise NotConvertibleError("its source cannot be found")
    if isinstance(fitting[0], ast.AsyncFunctionDef):
        raise NotConvertibleError("it is a coroutine")
    return copy.deepcopy(fitting[0])


@functools.lru_cache(maxsize=8)
def _definitions(text: str) -> defaultdict[int, list[Definition | ast.AsyncFunctionDef]]:
    """The functions and lambdas of a file by the line that their code begins with."""
    found: defaultdict[int, list[Definition | ast.AsyncFunctionDef]] = defaultdict(list)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda):
            found[node.lineno].append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[min([node.lineno, *(d.lineno for d in node.decorator_list)])].append(node)
    return found


def _fits(node: Definition | ast.AsyncFunctionDef, code: CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return name == code.co_name and tuple(names) == code.co_varnames[:count]


def _at_the_place_of(
    code: CodeType, nodes: list[Definition | ast.AsyncFunctionDef]
) -> list[Definition | ast.AsyncFunctionDef]:
    """The innermost node around all instructions of the code, among several in a line."""
    found = set[tuple[int, int]]()
    for line, end_line, column, end_column in code.co_positions():
        if None not in (line, end_line, column, end_column) and (column, end_column) != (0, 0):
            found |= {(line, column), (end_line, end_column)}  # type: ignore[arg-type]  # none is None
    if not found:
        return []
    around = [n for n in nodes if _begin(n) <= min(found) and max(found) <= _end(n)]
    return sorted(around, key=_begin)[-1:]


def _body(node: Definition | ast.AsyncFunctionDef) -> tuple[ast.AST, ast.AST]:
    return (node.body, node.body) if isinstance(node, ast.Lambda) else (node.body[0], node.body[-1])


def _begin(node: Definition | ast.AsyncFunctionDef) -> tuple[int, int]:
    first: Any = _body(node)[0]
    return first.lineno, first.col_offset


def _end(node: Definition | ast.AsyncFunctionDef) -> tuple[int, int]:
    last: Any = _body(node)[1]
    return last.end_lineno, last.end_col_offset
