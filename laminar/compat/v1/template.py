"""`tf.make_template`: a function that makes its variables once, and finds them from then on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from laminar import engine

from .adapting import in_graph
from .variables import variable_scope


class Template:
    """What `make_template` gives: call it as the function.

    Attributes:
        name: of the template.
        variable_scope: of its variables; None before it is first called.
    """

    def __init__(
        self, name: str, fn: Callable[..., Any], unique_name: str | None, custom_getter: Any
    ) -> None:
        functools.update_wrapper(self, fn)
        self.name = name
        self.variable_scope: Any = None
        self._fn = fn
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._called = False

    def open(self) -> Any:
        """Make the scope, under a name of its own."""
        getter = {"custom_getter": self._custom_getter}
        if self._unique_name is not None:
            scope = variable_scope(self._unique_name, **getter)
        else:
            scope = variable_scope(None, default_name=self.name, **getter)
        with scope as made:
            self.variable_scope = made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with in_graph():
            if self.variable_scope is None:
                self.open()
            reuse = True if self._called else None
            with variable_scope(self.variable_scope, reuse=reuse) as scope:
                result = self._fn(*args, **kwargs)
            self._called = self._called or scope is not None
            return result

    @property
    def variables(self) -> list[Any]:
        """The variables in its scope."""
        if self.variable_scope is None:
            return []
        return list(engine.get_collection("variables", f"{self.variable_scope.name}/"))

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that are trained."""
        if self.variable_scope is None:
            return []
        return list(engine.get_collection("trainable_variables", f"{self.variable_scope.name}/"))


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """A function whose variables are made when it is first called, and shared by all calls.

    Args:
        name_: of its scope; a number is added where it is taken.
        func_: uses `get_variable`.
        create_scope_now_: take the name at once.
        unique_name_: the name itself, to which nothing is added.
        custom_getter_: of its variables; see `variable_scope`.
        **kwargs: given to the function with each call.
    """
    fn = functools.partial(func_, **kwargs) if kwargs else func_
    if kwargs:
        functools.update_wrapper(fn, func_)
    made = Template(name_, fn, unique_name_, custom_getter_)
    if create_scope_now_:
        with in_graph():
            made.open()
    return made
