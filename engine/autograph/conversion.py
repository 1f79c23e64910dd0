"""Functions whose `if`, `while` and `for` tensors can decide: made once for each code object.

State: `_converted[id of a code object]` is that object (by a weak reference, which drops the entry)
and its rewritten code, None where it stays as it is. Rewritten code has the user's file and lines.
Dict operations are whole by themselves, and two threads would make the same: there is no lock.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib
import inspect
import os
import types
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from .. import source
from ..functions.converting import is_to_be_converted
from .rewriting import Mangling, Rewriting
from .source_tree import NotConvertibleError, definition_of
from .syntax import PREFIX, at

_CALL = "__call__"
_FACTORY = f"{PREFIX}factory"
_FUNCTION = f"{PREFIX}function"
_NOT_FUNCTIONS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SITE = f"{os.sep}site-packages{os.sep}"
# Builtins that have a meaning for tensors which Python's own do not give them.
STAGED_BUILTINS = (range, len, enumerate, zip, print, int, float, bool, max, min, any, all)

_Entry = tuple["weakref.ref[CodeType]", CodeType | None]
_converted: dict[int, _Entry] = {}


def convert(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with control flow on tensors; itself where it has none, or cannot be rewritten."""
    if isinstance(fn, MethodType):
        inner = fn.__func__
        found = convert(inner)
        return fn if found is inner else MethodType(found, fn.__self__)
    if isinstance(fn, functools.partial):
        found = convert(fn.func)
        return fn if found is fn.func else functools.partial(found, *fn.args, **fn.keywords)
    if not isinstance(fn, FunctionType):
        return _convert_call(fn)
    if not is_to_be_converted(fn):
        return fn
    code = _code_for(fn)
    if code is None:
        return fn
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[PREFIX] = types.CellType(_runtime())
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__dict__.update(fn.__dict__)
    made.__qualname__, made.__module__, made.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    return made


def _convert_call(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An object that is called by a method which its class defines in Python."""
    method = getattr(type(fn), _CALL, None)
    if isinstance(fn, type) or not isinstance(method, FunctionType) or is_library(method):
        return fn
    found = convert(method)
    return fn if found is method else MethodType(found, fn)


def is_library(fn: Any) -> bool:
    """Whether a callable is not the user's: of laminar, Python, or an installed package."""
    if isinstance(fn, MethodType):
        fn = fn.__func__
    if isinstance(fn, FunctionType):
        return is_library_file(fn.__code__.co_filename)
    if isinstance(fn, functools.partial):
        return is_library(fn.func)
    if isinstance(fn, type | types.BuiltinFunctionType | types.BuiltinMethodType | ModuleType):
        return fn not in STAGED_BUILTINS
    method = getattr(type(fn), _CALL, None)
    return not isinstance(method, FunctionType) or is_library(method)


def is_library_file(filename: str) -> bool:
    """Whether a file is of laminar, Python, or an installed package."""
    return source.is_own_file(filename) or _SITE in filename


@functools.cache
def _runtime() -> ModuleType:
    """The functions that rewritten code calls; they in turn convert what they call."""
    return importlib.import_module(f"{__package__}.runtime")


def _code_for(fn: FunctionType) -> CodeType | None:
    key = id(fn.__code__)
    entry = _converted.get(key)
    if entry is None:
        try:
            made = _rewritten(fn)
        except NotConvertibleError as reason:
            made = None
            source.unconverted[key] = f"{fn.__qualname__} as it is, for {reason}"
        except RecursionError:  # of what nests deep, or where the user's calls do: not for ever
            return None
        reference = weakref.ref(fn.__code__, functools.partial(_forget, key))
        entry = _converted[key] = reference, made
    return entry[1]


def _forget(
    key: int,
    _: weakref.ref[CodeType],
    tables: Sequence[dict[int, Any]] = (_converted, source.unconverted),
) -> None:
    for table in tables:  # in hand, for it is called when the interpreter ends, too
        table.pop(key, None)


def _rewritten(fn: FunctionType) -> CodeType | None:
    """The code of `fn` rewritten, None if there is nothing to rewrite.

    Raises:
        NotConvertibleError: it has no source, or holds what cannot be rewritten.
    """
    code = fn.__code__
    if PREFIX in code.co_freevars or source.is_own_file(code.co_filename):
        return None
    if code.co_flags & _NOT_FUNCTIONS:
        raise NotConvertibleError("it is a generator or a coroutine")
    node = definition_of(fn)
    if isinstance(node, ast.Lambda):
        body = at(node.body, ast.Return(node.body))
        node = at(node, ast.FunctionDef("", node.args, [body], []))
    node.name = _FUNCTION  # under its own name it would hide what that stands for outside
    node.decorator_list, node.returns = [], None
    node.args.defaults = []
    node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    for argument in (*every, node.args.vararg, node.args.kwarg):
        if argument is not None:
            argument.annotation = None
    owner = fn.__qualname__.split(".")[-2:-1]
    if owner and owner[0] != "<locals>":
        Mangling(owner[0]).visit(node)
    rewriting = Rewriting(fn.__globals__, is_library)
    rewriting.function(node, set(code.co_freevars))
    if not rewriting.changed:
        return None
    names = [PREFIX, *(n for n in code.co_freevars if n != PREFIX)]
    parameters = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    factory = at(node, ast.FunctionDef(_FACTORY, parameters, [node], []))
    tree = ast.fix_missing_locations(ast.Module([factory], []))
    try:
        future = code.co_flags & __future__.annotations.compiler_flag
        module = compile(tree, code.co_filename, "exec", future, dont_inherit=True)
    except (SyntaxError, RecursionError) as cause:
        raise NotConvertibleError(
            f"it is too deeply nested, or rewritten wrongly ({cause})"
        ) from cause
    made = _inner(_inner(module, _FACTORY), _FUNCTION)
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _inner(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
