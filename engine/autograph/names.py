"""The names that a piece of a function binds and reads."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from .syntax import PREFIX

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
# Methods that change a list in place: what they do to a variable is an update of the variable.
_CHANGING = {"append", "extend", "insert", "pop", "remove", "clear", "reverse"}


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes below and including `nodes`, but none inside of nested functions and classes."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.comprehension):  # its targets have a scope of their own
            left += [node.iter, *node.ifs]
        elif not isinstance(node, _SCOPES):
            left.extend(ast.iter_child_nodes(node))


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables that are bound, or unbound, by statements: not those of nested functions."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found.add(alias or name.split(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
    return found


def changed_containers(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables whose list or dict statements change: x.append(...), x[...] = ..."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _CHANGING:
                found.add(name)
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                found |= _container(value)
    return found


def _container(node: ast.expr) -> set[str]:
    """The variable in whose list, or list of lists, an item is: a, of a[i] or items(a, "a")[i]."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Subscript(value=value):
            return _container(value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="items"), args=[value, _]):
            return _container(value) if owner == PREFIX else set()
    return set()


def read_besides_appending(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables that are read in another way than x.append(...), x.extend(...), x = x + ..."""
    reads: Counter[str] = Counter()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                reads[name] += 1
            case ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"):
                reads[name] -= 1
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=left), op=ast.Add()),
            ) if name == left:
                reads[name] -= 1
    return {name for name, count in reads.items() if count > 0}


def bound_attributes(nodes: Iterable[ast.AST]) -> set[str]:
    """The attributes of variables that statements bind: "self.count"."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            path = dotted(node)
            if path is not None:
                found.add(path)
    return found


def dotted(node: ast.expr) -> str | None:
    """A name and attributes of it as one text, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def read_names(node: ast.AST | None) -> set[str]:
    """The names that are read in an expression or statement, in nested functions too."""
    if node is None:
        return set()
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
            found.add(n.id)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            found.add(n.target.id)
    return found


def captured_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nested functions and classes may read or bind at any time."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, _SCOPES):
            for n in ast.walk(node):
                if isinstance(n, ast.Name):
                    found.add(n.id)
                elif isinstance(n, ast.Nonlocal):
                    found.update(n.names)
    return found


def parameter_names(arguments: ast.arguments) -> set[str]:
    """The parameters of a function."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return {a.arg for a in every}
