"""Expressions: `and`, `or`, `not`, chained comparisons, conditional expressions, calls."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from .source_tree import NotConvertibleError
from .syntax import PREFIX, at, call, constant, is_pythons, load, thunk

# Functions that look at the frame which calls them: they would see that of the rewritten code.
_OF_FRAMES = {"locals", "vars", "eval", "exec", "dir"}


class Expressions(ast.NodeTransformer):
    """Rewrites expressions; nested functions among them, whose statements `nested` rewrites.

    Attributes:
        changed: whether anything was rewritten.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        bound: set[str],
        first_parameter: str | None,
        is_library: Callable[[Any], bool],
        nested: Callable[[ast.FunctionDef], None],
    ) -> None:
        self.changed = False
        self._namespace = namespace
        self._bound = bound
        self._first = first_parameter
        self._is_library = is_library
        self._nested = nested

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """a and b and c -> and_(a, lambda: b, lambda: c)"""
        self.generic_visit(node)
        if is_pythons(node) or _names_a_value(node):
            return node
        self.changed = True
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        first, *others = node.values
        return at(node, call(name, first, *(at(v, thunk(v)) for v in others)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """not a -> not_(a)"""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not) or is_pythons(node.operand):
            return node
        self.changed = True
        return at(node, call("not_", node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """a < b < c -> chain(a, (lambda x, y: x < y, lambda: b), ...); a in b -> contains(b, a)"""
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            self.changed = True
            found = at(node, call("contains", node.left, node.comparators[0]))
            return found if isinstance(node.ops[0], ast.In) else at(node, call("not_", found))
        if len(node.ops) == 1 or _names_a_value(node):
            return node
        self.changed = True
        pairs: list[ast.expr] = []
        for op, operand in zip(node.ops, node.comparators, strict=True):
            x, y = f"{PREFIX}x", f"{PREFIX}y"
            test = ast.Lambda(
                ast.arguments([], [ast.arg(x), ast.arg(y)], None, [], [], None, []),
                ast.Compare(load(x), [op], [load(y)]),
            )
            pairs.append(at(operand, ast.Tuple([test, thunk(operand)], ast.Load())))
        return at(node, call("chain", node.left, *pairs))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """b if a else c -> choose(a, lambda: b, lambda: c)"""
        self.generic_visit(node)
        if is_pythons(node.test) or _names_a_value(node):
            return node
        self.changed = True
        return at(node, call("choose", node.test, thunk(node.body), thunk(node.orelse)))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """f(x) -> call(f)(x), where f may be a function of the user's."""
        self.generic_visit(node)
        match node.func:
            case ast.Name(id="super") if not node.args and "super" not in self._bound:
                if self._first is None:
                    raise NotConvertibleError(
                        f"line {node.lineno} has super() in a nested function"
                    )
                node.args = [at(node, load("__class__")), at(node, load(self._first))]
                return node
            case ast.Name(id=name) if name in _OF_FRAMES and name not in self._bound:
                raise NotConvertibleError(f"line {node.lineno} calls {name}()")
        found = self._static(node.func)
        if found is not None and self._is_library(found[0]):
            return node
        self.changed = True
        node.func = at(node.func, call("call", node.func))
        return node

    def _static(self, node: ast.expr) -> tuple[Any] | None:
        """What a global name, or an attribute of a module, stands for; None if nobody knows."""
        match node:
            case ast.Name(id=name) if name not in self._bound:
                if name in self._namespace:
                    return (self._namespace[name],)
                return (getattr(builtins, name),) if hasattr(builtins, name) else None
            case ast.Attribute(value=value, attr=attr):
                owner = self._static(value)
                if owner is not None and isinstance(owner[0], ModuleType | type):
                    return (getattr(owner[0], attr),) if hasattr(owner[0], attr) else None
        return None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """a[i] -> items(a)[i], to read and to bind, where a tensor may be i"""
        text = ast.unparse(node.value)
        self.generic_visit(node)
        if _is_fixed(node.slice):
            return node
        self.changed = True
        node.value = at(node.value, call("items", node.value, constant(text)))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """assert a, b -> assert asserted(a, lambda: b), b; where a is False, raise"""
        if isinstance(node.test, ast.Constant) and not node.test.value:
            said = [] if node.msg is None else [node.msg]
            made = at(node, ast.Call(load("AssertionError"), said, []))
            return at(node, self.visit_Raise(ast.Raise(made)))
        if is_pythons(node.test):
            return node
        self.generic_visit(node)
        self.changed = True
        message = node.msg if node.msg is not None else at(node, constant(None))
        node.test = at(node.test, call("asserted", node.test, thunk(message)))
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        """raise a -> raise raised(a)"""
        self.generic_visit(node)
        if node.exc is not None:
            self.changed = True
            node.exc = at(node.exc, call("raised", node.exc))
        return node

    # Scopes of their own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A nested function is rewritten as a whole."""
        self._nested(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Its body is an expression of ours; its defaults are, too."""
        first, self._first = self._first, None
        bound = self._bound
        self._bound = bound | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        if not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node.body)):
            self.generic_visit(node)
        self._first, self._bound = first, bound
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        """Stays as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Stays as it is."""
        return node


def _is_fixed(index: ast.expr | None) -> bool:
    """Whether an index is written out, or one of several axes, which no list has."""
    match index:
        case None | ast.Constant() | ast.Tuple():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_fixed(operand)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return all(map(_is_fixed, (lower, upper, step)))
    return False


def _names_a_value(node: ast.AST) -> bool:
    """Whether := is in it, which cannot bind a variable from inside a lambda."""
    return any(isinstance(n, ast.NamedExpr | ast.Await) for n in ast.walk(node))
