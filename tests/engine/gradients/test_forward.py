"""jvp: the derivative in a direction."""

from __future__ import annotations

import numpy as np

from laminar.engine.gradients import jvp
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import multiply


def test_product_rule() -> None:
    value, slope = jvp(lambda x, y: x * x * y, (2.0, 3.0), (1.0, 0.5))
    assert (float(value), float(slope)) == (12.0, 14.0)


def test_identity_and_unused_argument() -> None:
    value, slope = jvp(lambda x, y: x, (2.0, 3.0), (0.5, 1.0))
    assert (float(value), float(slope)) == (2.0, 0.5)
    _, nothing = jvp(lambda x: x * 0 + 1, (2.0,), (1.0,))
    assert float(nothing) == 0.0


def test_matrices_structures_and_aux() -> None:
    rng = np.random.default_rng(0)
    a, b, da, db = (rng.normal(size=(3, 3)) for _ in range(4))
    value, slope, aux = jvp(
        lambda t: ({"p": matmul(t[0], t[1]), "q": multiply(t[0], t[0])}, "aux"),
        ([a, b],),
        ([da, db],),
        has_aux=True,
    )
    np.testing.assert_allclose(value["p"].numpy(), a @ b)
    np.testing.assert_allclose(slope["p"].numpy(), da @ b + a @ db)
    np.testing.assert_allclose(slope["q"].numpy(), 2 * a * da)
    assert aux == "aux"
