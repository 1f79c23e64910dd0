"""Conditions and loops as calls: if_(test, body, orelse, ...), while_(...), for_(...).

A branch, a body, a test becomes a nested function that binds the variables of the function around
it (`nonlocal`). `get` and `set` read and bind all variables that a statement changes: so what runs
it can go through several branches from the same values on.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .liveness import Liveness
from .names import (
    bound_attributes,
    bound_names,
    changed_containers,
    read_besides_appending,
)
from .syntax import (
    PREFIX,
    assign,
    at,
    call,
    constant,
    define,
    helper,
    is_pythons,
    load,
    store,
    thunk,
)


class Statements(ast.NodeTransformer):
    """Rewrites the conditions and loops of one function, whose jumps are lowered.

    Args:
        liveness: of the function's statements.
        own: the variables of the function, and of those around it.
        shared: those that it declares global.
        outside: those of functions around it that are not rewritten.

    Attributes:
        changed: whether anything was rewritten.
        bound: the variables that nested functions bind.
    """

    def __init__(
        self, liveness: Liveness, own: set[str], shared: set[str], outside: set[str]
    ) -> None:
        self.changed = False
        self.bound: set[str] = set()
        self._liveness = liveness
        self._own = own
        self._shared = shared
        self._outside = outside
        self._count = 0

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements, rewritten."""
        done: list[ast.stmt] = []
        for s in statements:
            found = self.visit(s)
            done += found if isinstance(found, list) else [found]
        return done

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """if test: body -> if_(test, def body, def orelse, get, set, names)"""
        parts = (*node.body, *node.orelse)
        live = self._liveness.after[id(node)]
        if is_pythons(node.test):
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        self.changed = True
        state = _State(self, parts, live, node)  # before its parts are rewritten
        body, orelse = self.block(node.body), self.block(node.orelse)
        first, second = state.name("if"), state.name("else")
        run = call(
            "if_",
            node.test,
            load(first),
            load(second),
            *state.arguments,
        )
        return [
            *state.definitions,
            at(node, define(first, [*state.declared(), *body])),
            at(node, define(second, [*state.declared(), *orelse])),
            at(node, ast.Expr(run)),
        ]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        """while test: body -> while_(def test, def body, get, set, names)"""
        self.changed = True
        live = self._liveness.head[id(node)]
        state = _State(self, (*node.body, ast.Expr(node.test)), live, node)
        test, body = state.name("test"), state.name("body")
        returned = at(node.test, ast.Return(node.test))
        binds = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test))
        run = call("while_", load(test), load(body), *state.arguments, constant(binds))
        return [
            *state.definitions,
            at(node.test, define(test, [*state.declared(), returned])),
            at(node, define(body, [*state.declared(), *self.block(node.body)])),
            at(node, ast.Expr(run)),
        ]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        """for x in xs: body -> for_(xs, def stopped, def body, get, set, names)"""
        self.changed = True
        live = self._liveness.head[id(node)]
        head = at(node, ast.Assign([node.target], load(f"{PREFIX}item")))
        state = _State(self, (*node.body, head), live, node)
        body = state.name("body")
        stops = sorted(getattr(node, "stops", ()))
        stopped: ast.expr = constant(None)
        if stops:
            either: ast.expr = load(stops[0])
            if len(stops) > 1:
                either = call("or_", either, *(thunk(load(s)) for s in stops[1:]))
            stopped = thunk(either)
        inside = [*state.declared(), head, *self.block(node.body)]
        reads = ast.Tuple([constant(n) for n in state.reads], ast.Load())
        run = call("for_", node.iter, stopped, load(body), *state.arguments, reads)
        return [
            *state.definitions,
            at(node, define(body, inside, [f"{PREFIX}item"])),
            at(node, ast.Expr(run)),
        ]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Has been rewritten by itself."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        """Stays as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Stays as it is."""
        return node


class _State:
    """The variables that a statement changes, and the functions that read and bind them."""

    def __init__(
        self, owner: Statements, parts: Sequence[ast.AST], live: set[str], node: ast.stmt
    ) -> None:
        owner._count += 1
        self._number = owner._count
        self._node = node
        bound = bound_names(parts)
        containers = {n for n in changed_containers(parts) if n in owner._own} - bound
        attributes = bound_attributes(parts) - bound
        self._outside = containers & owner._outside
        self._shared = sorted(bound & owner._shared)
        self._nonlocal = sorted(bound - owner._shared)
        owner.bound.update(self._nonlocal, containers - owner._shared)
        # What is read later stands first; attributes and containers can be read from elsewhere.
        kept = sorted(bound & live) + sorted(containers) + sorted(attributes)
        self._names = [*kept, *sorted(bound - live)]
        self.reads = sorted(read_besides_appending(parts) & {*self._names})
        get, set_ = self.name("get"), self.name("set")
        self.definitions = self._functions(get, set_, sorted(containers))
        self.arguments: list[ast.expr] = [
            load(get),
            load(set_),
            ast.Tuple([constant(n) for n in self._names], ast.Load()),
            constant(len(kept)),
        ]

    def name(self, what: str) -> str:
        """A name for a function of this statement."""
        return f"{PREFIX}{what}_{self._number}"

    def declared(self, more: Sequence[str] = ()) -> list[ast.stmt]:
        """nonlocal and global declarations of what is bound."""
        done: list[ast.stmt] = []
        if self._shared:
            done.append(ast.Global(self._shared))
        inner = sorted({*self._nonlocal, *more})
        if inner:
            done.append(ast.Nonlocal(inner))
        return done

    def _functions(self, get: str, set_: str, containers: Sequence[str]) -> list[ast.stmt]:
        given = f"{PREFIX}values"
        reads: list[ast.expr] = [call("value", thunk(_path(n))) for n in self._names]
        binds: list[ast.stmt] = self.declared(containers)
        for place, name in enumerate(self._names):
            value: ast.expr = ast.Subscript(load(given), constant(place), ast.Load())
            if "." in name:
                owner, _, attribute = name.rpartition(".")
                run = call(
                    "set_attribute",
                    thunk(_path(owner)),
                    constant(attribute),
                    value,
                )
                binds.append(ast.Expr(run))
                continue
            if name in self._outside:
                value = call("of_outside", constant(name), value)
            unbinds = ast.Compare(value, [ast.Is()], [helper("UNBOUND")])
            # It is bound first, for what is unbound already cannot be unbound.
            clear = ast.If(unbinds, [ast.Delete([ast.Name(name, ast.Del())])], [])
            binds += [assign(name, value), clear]
        found = [
            define(get, [ast.Return(ast.List(reads, ast.Load()))]),
            define(set_, binds, [given]),
        ]
        return [at(self._node, f) for f in found]


def _path(name: str) -> ast.expr:
    """The value of a variable, or of an attribute of one: "self.count"."""
    first, *attributes = name.split(".")
    node: ast.expr = load(first)
    for attribute in attributes:
        node = ast.Attribute(node, attribute, ast.Load())
    return node


def binding(names: Sequence[str]) -> ast.stmt:
    """A statement that never runs, and makes names variables of the function that it stands in."""
    return ast.If(constant(False), [ast.Assign([store(n) for n in names], constant(None))], [])
