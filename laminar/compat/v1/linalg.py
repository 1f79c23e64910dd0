"""`tf.linalg`."""

from __future__ import annotations

from .face import Line, face

_OPERATORS = {
    "linear_operators": ("",),
    "simple_operators": (
        "Diag",
        "FullMatrix",
        "Householder",
        "Identity",
        "LowerTriangular",
        "ScaledIdentity",
        "Zeros",
    ),
    "composed_operators": (
        "Adjoint",
        "BlockDiag",
        "Composition",
        "Inversion",
        "Kronecker",
        "LowRankUpdate",
    ),
    "spectral_operators": ("Circulant", "Circulant2D", "Circulant3D", "Toeplitz"),
}
NAMES: dict[str, Line] = {
    **{
        f"LinearOperator{kind}": f".{room}:LinearOperator{kind}"
        for room, kinds in _OPERATORS.items()
        for kind in kinds
    },
    "normalize": ".linear:normalize",
    "band_part": (
        "input, num_lower, num_upper, name=None",
        ".arrays:matrix_band_part",
    ),
    "adjoint": ".linear:adjoint",
    "cholesky": ("input, name=None", "ops:cholesky"),
    "cholesky_solve": ".linear:cholesky_solve",
    "cross": ("a, b, name=None", "ops:cross"),
    "det": ("input, name=None", "ops:det"),
    "diag": ("diagonal, name=None", ".arrays:matrix_diag"),
    "diag_part": ("input, name=None", "ops:diagonal"),
    "eigh": ("tensor, name=None", "ops:eigh"),
    "eigvalsh": ".linear:self_adjoint_eigvals",
    "einsum": ("equation, *inputs, name=None", "ops:einsum"),
    "eye": ".arrays:eye",
    "global_norm": ".clipping:global_norm",
    "inv": ".linear:matrix_inverse",
    "l2_normalize": ".neural:l2_normalize",
    "expm": ".matrices:matrix_exponential",
    "logm": ("input, name=None", "op:MatrixLogarithm"),
    "sqrtm": ("input, name=None", "op:MatrixSquareRoot"),
    "logdet": ("matrix, name=None", "ops:logdet"),
    "lstsq": ".matrices:matrix_solve_ls",
    "lu": ".matrices:lu",
    "lu_matrix_inverse": ".matrices:lu_matrix_inverse",
    "lu_reconstruct": ".matrices:lu_reconstruct",
    "lu_solve": ".matrices:lu_solve",
    "matrix_rank": ("a, tol=None, validate_args=False, name=None", "ops:matrix_rank(a, tol)"),
    "matrix_transpose": ".linear:matrix_transpose",
    "matvec": ".linear:matvec",
    "matmul": ".maths:matmul",
    "norm": ".linear:norm",
    "pinv": ("a, rcond=None, validate_args=False, name=None", "ops:pinv(a, rcond)"),
    "qr": ("input, full_matrices=False, name=None", "ops:qr(input)"),
    "slogdet": ("input, name=None", "ops:slogdet"),
    "set_diag": ".linear:matrix_set_diag",
    "solve": ".linear:matrix_solve",
    "svd": ".linear:svd",
    "tensor_diag": ".arrays:tensor_diag",
    "tensor_diag_part": ".arrays:tensor_diag_part",
    "tensordot": ".maths:tensordot",
    "trace": ("x, name=None", "ops:trace"),
    "transpose": ".linear:matrix_transpose",
    "tridiagonal_matmul": ".tridiagonal:tridiagonal_matmul",
    "tridiagonal_solve": ".tridiagonal:tridiagonal_solve",
    "triangular_solve": ".linear:matrix_triangular_solve",
}

__getattr__, __dir__ = face(__name__, NAMES)
