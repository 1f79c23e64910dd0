"""Layers with one large weight that is trained by an update of low rank."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from laminar import ops
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who

from .layer import Layer
from .options import whole


class UnbuiltWeightError(FailedPreconditionError, AttributeError):
    """A weight is there once the layer is built."""


class LowRank(Layer):
    """The part of a layer that adapts its main weight W by an update of low rank.

    W stays as it is, and W + (alpha / rank) A B is used, where A and B, which training changes,
    share an axis of the size `rank`. A class says with `_main` what W is called; the variable is
    the attribute of that name with "_" before it, A and B are `lora_<name>_a` and `..._b`.

    Source: Hu et al., "LoRA: low-rank adaptation of large language models", 2021,
        arXiv:2106.09685, section 4.1.
    """

    _main: ClassVar[str] = "kernel"
    lora_rank: int | None
    lora_alpha: float | None
    lora_enabled: bool

    def _laminar_keep_low_rank(self, rank: int | None, alpha: float | None) -> None:
        self.lora_rank = None if rank is None else whole(self, "lora_rank", rank)
        self.lora_alpha = self.lora_rank if alpha is None else alpha
        self.lora_enabled = False

    def _laminar_main_made(self) -> None:
        """At the end of `build`: the update that the constructor asked for."""
        self.built = True
        if self.lora_rank is not None:
            self.enable_lora(self.lora_rank, lora_alpha=self.lora_alpha)

    @property
    def _laminar_weight(self) -> Variable | None:
        """The variable of W; None where it is kept in another form."""
        found: Variable | None = getattr(self, f"_{self._main}", None)
        return found

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        """The variable of W is known by the name that the layer shows it by."""
        hidden = f"_{self._main}"
        found = super()._laminar_checkpoint_children()
        return {self._main if name == hidden else name: part for name, part in found.items()}

    @property
    def _laminar_main_shape(self) -> tuple[int, ...]:
        """The shape of W."""
        assert self._laminar_weight is not None
        return tuple(n for n in self._laminar_weight.shape if n is not None)

    def _laminar_main_value(self) -> Any:
        """What the layer shows as its weight: W with its update."""
        if not self.built:
            raise UnbuiltWeightError(
                f"{who(self)}: {self._main!r} is made when the layer is built",
                remedy="call the layer on data, or build(input_shape), first",
            )
        return self._laminar_merged(self._laminar_weight)

    def _laminar_merged(self, weight: Any) -> Any:
        if not self.lora_enabled:
            return weight
        update = self._laminar_update()
        return ops.cast(ops.add(weight, ops.cast(update, weight.dtype)), self.compute_dtype)

    @property
    def _laminar_a(self) -> Variable:
        found: Variable = getattr(self, f"lora_{self._main}_a")
        return found

    @property
    def _laminar_b(self) -> Variable:
        found: Variable = getattr(self, f"lora_{self._main}_b")
        return found

    def _laminar_update(self) -> Any:
        """(alpha / rank) A B."""
        return self._laminar_scaled(ops.matmul(self._laminar_a, self._laminar_b))

    def _laminar_scaled(self, x: Any) -> Any:
        """(alpha / rank) x."""
        assert self.lora_alpha is not None
        assert self.lora_rank is not None
        return ops.multiply(self.lora_alpha / self.lora_rank, x)

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: InitializerLike = "he_uniform",
        b_initializer: InitializerLike = "zeros",
    ) -> None:
        """Freeze the main weight, and train an update of low rank of it instead.

        The update is kept in float32. Files hold the weight with the update added.

        Args:
            rank: of the update.
            lora_alpha: the update is multiplied by lora_alpha / rank; `rank` by default.
            a_initializer: of A.
            b_initializer: of B; zeros leave the layer as it is.

        Raises:
            InvalidArgumentError: the layer is not built, is adapted already or constrains its
                weight, or `rank` is no whole number above 0.
            UnimplementedError: the weight is in the form of a mode that takes no update.
        """
        main = self._main
        if getattr(self, f"{main}_constraint"):
            raise InvalidArgumentError(
                f"{who(self)}: lora is incompatible with {main} constraints",
                remedy=f"make the layer without {main}_constraint",
            )
        if not self.built:
            raise InvalidArgumentError(
                f"{who(self)}: cannot enable lora on a layer that isn't yet built",
                remedy="call the layer on data, or build(input_shape), first",
            )
        if self.lora_enabled:
            raise InvalidArgumentError(f"{who(self)}: lora is already enabled")
        if self._laminar_weight is None or self.quantization_mode in ("gptq", "awq"):
            raise UnimplementedError(
                f"{who(self)}: lora is not there for weights in the mode "
                f"{self.quantization_mode!r}",
                remedy="quantize to int8 or int4 instead",
            )
        shape, rank = self._laminar_main_shape, whole(self, "rank", rank)
        for side, sizes, initializer in (
            ("a", (*shape[:-1], rank), a_initializer),
            ("b", (rank, shape[-1]), b_initializer),
        ):
            made = self.add_weight(
                sizes,
                initializer,
                dtype="float32",
                regularizer=getattr(self, f"{main}_regularizer"),
                name=f"lora_{main}_{side}",
            )
            setattr(self, f"lora_{main}_{side}", made)
        self._laminar_weight.trainable = False
        self.lora_rank = rank
        self.lora_alpha = rank if lora_alpha is None else lora_alpha
        self.lora_enabled = True

    # Files

    def _laminar_stored(self) -> dict[str, Variable]:
        """What files hold, in order: variables by the names of their attributes."""
        assert self._laminar_weight is not None
        return self._laminar_with_others({self._main: self._laminar_weight})

    def _laminar_with_others(self, named: dict[str, Variable]) -> dict[str, Variable]:
        """The same, and after it what else the layer owns, A and B apart."""
        known = {id(v) for v in named.values()}
        if self.lora_enabled:
            known |= {id(self._laminar_a), id(self._laminar_b)}
        others = super()._laminar_saved_variables()
        return {**named, **{v.path: v for v in others if id(v) not in known}}

    def _laminar_saved_variables(self) -> list[Variable]:
        return list(self._laminar_stored().values()) if self.built else []

    def _laminar_merged_values(self) -> dict[str, Any]:
        """What files hold instead of the values of variables, with the update: by name."""
        return {self._main: self._laminar_merged(self._laminar_weight)}

    def save_own_variables(self, store: Any) -> None:
        """Put the variables into a mapping; W with its update of low rank."""
        merged = self._laminar_merged_values() if self.lora_enabled else {}
        stored = self._laminar_stored() if self.built else {}
        for i, (name, v) in enumerate(stored.items()):
            store[str(i)] = np.asarray(merged.get(name, v))

    def load_own_variables(self, store: Any) -> None:
        """Take the variables from such a mapping; an update of low rank begins anew."""
        super().load_own_variables(store)
        if self.lora_enabled:
            self._laminar_b.assign(ops.zeros_like(self._laminar_b.value))

    def _laminar_low_rank_config(self) -> dict[str, Any]:
        """What `get_config` says of the update."""
        if self.lora_rank is None:
            return {}
        return {"lora_rank": self.lora_rank, "lora_alpha": self.lora_alpha}
