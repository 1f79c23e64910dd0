"""The workloads in Keras, on JAX."""

from __future__ import annotations

import jax
import keras

from ..cases import FirstUse, Program
from ..overhead import Add
from . import keras_checkpoints
from .keras_cases import Cases, cases


class AsynchronousAdd(Add):
    """`a + b`, done when the last of the sums is there."""

    def run(self) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            c = a + b
        jax.block_until_ready(c)


CASES: Cases = {
    **cases(keras),
    **keras_checkpoints.cases(keras),
    "import": lambda _: FirstUse("import keras"),
    "first-add": lambda _: FirstUse("import keras; a = keras.ops.ones((4, 4)); a + a"),
    "add": lambda _: AsynchronousAdd(keras),
    "digits": lambda p: Program("-m", "benchmarks.frameworks.digits_keras", str(p.epochs)),
}
