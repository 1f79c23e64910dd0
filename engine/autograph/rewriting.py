"""A function's syntax tree with control flow that tensors can decide."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from .expressions import Expressions
from .jumps import lower_jumps
from .liveness import Liveness
from .names import bound_names, captured_names, own_nodes, parameter_names
from .statements import Statements, binding
from .syntax import at


class Rewriting:
    """Rewrites a function and those inside of it.

    Args:
        namespace: the globals of the function.
        is_library: whether a callable is known not to be the user's.

    Attributes:
        changed: whether anything was rewritten.
    """

    def __init__(self, namespace: Mapping[str, Any], is_library: Callable[[Any], bool]) -> None:
        self.changed = False
        self._namespace = namespace
        self._is_library = is_library
        self._outside: set[str] = set()  # variables of functions that are not rewritten

    def function(self, node: ast.FunctionDef, around: set[str], *, nested: bool = False) -> None:
        """Rewrite the body of a function in place.

        Args:
            node: the function.
            around: the variables of the functions around it.
            nested: whether it stands in one that is rewritten.
        """
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(node.body)):
            return
        if not nested:
            self._outside = around
        declared = _Declarations()
        parameters = parameter_names(node.args)
        bound = parameters | bound_names(node.body)
        body = [declared.visit(s) for s in node.body]
        own = bound - declared.shared - declared.outer
        body = lower_jumps(body)
        own |= bound_names(body) - declared.shared - declared.outer
        liveness = Liveness(body, captured_names(body) | declared.shared | declared.outer)
        every = node.args.posonlyargs + node.args.args
        expressions = Expressions(
            self._namespace,
            own | around,
            None if nested or not every else every[0].arg,
            self._is_library,
            lambda inner: self.function(inner, own | around, nested=True),
        )
        body = [expressions.visit(s) for s in body]
        every_own = own | around | declared.outer
        statements = Statements(liveness, every_own, declared.shared, self._outside - own)
        body = statements.block(body)
        self.changed |= expressions.changed or statements.changed
        top: list[ast.stmt] = []
        if declared.shared:
            top.append(ast.Global(sorted(declared.shared)))
        if declared.outer:
            top.append(ast.Nonlocal(sorted(declared.outer)))
        names = sorted((statements.bound & own) - parameters)
        if names:
            top.append(binding(names))
        node.body = [*(at(node.body[0], s) for s in top), *body]


class _Declarations(ast.NodeTransformer):
    """Takes `global` and `nonlocal` out of a function, and the annotations of its variables.

    An annotated variable cannot be bound by a nested function.
    """

    def __init__(self) -> None:
        self.shared: set[str] = set()
        self.outer: set[str] = set()

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        self.shared.update(node.names)
        return at(node, ast.Pass())

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        self.outer.update(node.names)
        return at(node, ast.Pass())

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return at(node, ast.Pass())
        return at(node, ast.Assign([node.target], node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A scope of its own."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        """A scope of its own."""
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """A scope of its own."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """A scope of its own."""
        return node


class Mangling(ast.NodeTransformer):
    """Names as the body of a class has them: __x is _Class__x."""

    def __init__(self, owner: str) -> None:
        self._owner = owner.lstrip("_")

    def _mangled(self, name: str) -> str:
        hidden = name.startswith("__") and not name.endswith("__")
        return f"_{self._owner}{name}" if hidden and self._owner else name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        node.id = self._mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._mangled(node.arg)
        return node
