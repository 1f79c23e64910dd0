"""`tf.linalg`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "band_part": (
        "input, num_lower, num_upper, name=None",
        "op:BandPart(input, lower=num_lower, upper=num_upper)",
    ),
    "cholesky": ("input, name=None", "ops:cholesky"),
    "det": ("input, name=None", "ops:det"),
    "diag": ("diagonal, name=None", "op:MatrixDiag"),
    "diag_part": ("input, name=None", "ops:diagonal"),
    "eigh": ("tensor, name=None", "ops:eigh"),
    "einsum": ("equation, *inputs, name=None", "ops:einsum"),
    "eye": ".arrays:eye",
    "global_norm": ".clipping:global_norm",
    "inv": ("input, adjoint=False, name=None", "ops:inv(input)"),
    "l2_normalize": ".neural:l2_normalize",
    "logdet": ("matrix, name=None", "ops:logdet"),
    "lstsq": ("matrix, rhs, l2_regularizer=0.0, fast=True, name=None", "ops:lstsq(matrix, rhs)"),
    "matmul": ".maths:matmul",
    "norm": ".linear:norm",
    "qr": ("input, full_matrices=False, name=None", "ops:qr(input)"),
    "slogdet": ("input, name=None", "ops:slogdet"),
    "solve": ("matrix, rhs, adjoint=False, name=None", "ops:solve(matrix, rhs)"),
    "svd": ".linear:svd",
    "tensordot": ".maths:tensordot",
    "trace": ("x, name=None", "ops:trace"),
    "transpose": ".linear:matrix_transpose",
    "triangular_solve": (
        "matrix, rhs, lower=True, adjoint=False, name=None",
        "ops:solve_triangular(matrix, rhs, lower=lower)",
    ),
}

__getattr__, __dir__ = face(__name__, NAMES)
