"""The workloads in Keras on TensorFlow, whose steps XLA compiles where it can."""

from __future__ import annotations

import keras

from ..cases import FirstUse
from ..overhead import Add
from .keras_cases import Cases, cases

if keras.backend.backend() != "tensorflow":
    raise ImportError(f"Keras runs on {keras.backend.backend()} here")

CASES: Cases = {
    **cases(keras),
    "import": lambda _: FirstUse("import keras"),
    "first-add": lambda _: FirstUse("import keras; a = keras.ops.ones((4, 4)); a + a"),
    "add": lambda _: Add(keras),
}
