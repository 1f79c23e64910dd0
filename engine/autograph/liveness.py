"""Which variables may still be read: after a condition, and where an iteration of a loop begins.

A backward analysis of statements, in the structure of the program. What nested functions read, and
what is global or of an outer function, is live everywhere.
Source: Aho, Lam, Sethi, Ullman, "Compilers: Principles, Techniques, and Tools", 2007, section
    9.2.5.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import bound_names, own_nodes, read_names


class Liveness:
    """The live variables of a function.

    Attributes:
        after: by condition or loop (identity of the node), what may be read behind it.
        head: by loop, what may be read from the beginning of an iteration on, or behind it.
    """

    def __init__(self, body: Sequence[ast.stmt], always: set[str]) -> None:
        self.after: dict[int, set[str]] = {}
        self.head: dict[int, set[str]] = {}
        self._always = set(always)
        self._before(body, set())

    def _before(self, statements: Sequence[ast.stmt], after: set[str]) -> set[str]:
        live = after | self._always
        for statement in reversed(statements):
            live = self._before_one(statement, live)
        return live

    def _before_one(self, node: ast.stmt, after: set[str]) -> set[str]:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self.after[id(node)] = after
                inside = self._before(body, after) | self._before(orelse, after)
                return read_names(test) | (inside - _surely_bound(test))
            case ast.While(test=test, body=body, orelse=orelse):
                behind = self._before(orelse, after)
                head = read_names(test) | behind
                while True:
                    grown = head | self._before(body, head)
                    if grown == head:
                        break
                    head = grown
                self.after[id(node)], self.head[id(node)] = behind, head
                return head
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                behind = self._before(orelse, after)
                stops: set[str] = getattr(node, "stops", set())
                head = behind | stops
                targets = bound_names([target])
                while True:
                    grown = head | (self._before(body, head) - targets)
                    if grown == head:
                        break
                    head = grown
                self.after[id(node)], self.head[id(node)] = behind, head
                return head | read_names(iterable) | read_names(target)
            case ast.With(items=items, body=body):
                live = self._before(body, after)
                for item in reversed(items):
                    if item.optional_vars is not None:
                        live = live - bound_names([item.optional_vars])
                        live |= read_names(item.optional_vars)
                    live = live | read_names(item.context_expr)
                return live
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                behind = self._before(final, after)
                caught = set(behind)
                for handler in handlers:
                    caught |= self._before(handler.body, behind) | read_names(handler.type)
                outer, self._always = self._always, self._always | caught
                live = self._before(body, self._before(orelse, behind))
                self._always = outer
                return live
            case ast.Return(value=value):
                return read_names(value) | self._always
            case ast.Match() | ast.AsyncFor() | ast.AsyncWith():
                live = after | read_names(node)
                for inner in own_nodes([node]):
                    if isinstance(inner, ast.If | ast.While | ast.For):
                        self._before_one(inner, live)
                return live
        return (after - _surely_bound(node)) | read_names(node)


def _surely_bound(node: ast.AST) -> set[str]:
    """What a simple statement binds whatever happens."""
    match node:
        case ast.Assign(targets=targets):
            return bound_names(targets)
        case ast.AnnAssign(target=target, value=ast.expr()):
            return bound_names([target])
        case ast.FunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom() | ast.Delete():
            return bound_names([node])
    return set()
