"""`tf.initializers`: the first values of variables."""

from __future__ import annotations

from .face import OWN, Line, face

NAMES: dict[str, Line] = {
    "global_variables": ".variables:global_variables_initializer",
    "local_variables": ".variables:local_variables_initializer",
    "tables_initializer": (OWN, "engine:tables_initializer"),
    "variables": ".variables:variables_initializer",
    "zeros": ".init_ops:Zeros",
    "ones": ".init_ops:Ones",
    "constant": ".init_ops:Constant",
    "random_uniform": ".init_ops:RandomUniform",
    "random_normal": ".init_ops:RandomNormal",
    "truncated_normal": ".init_ops:TruncatedNormal",
    "variance_scaling": ".init_ops:VarianceScaling",
    "uniform_unit_scaling": ".init_ops:UniformUnitScaling",
    "orthogonal": ".init_ops:Orthogonal",
    "identity": ".init_ops:Identity",
    "glorot_uniform": ".init_ops:glorot_uniform",
    "glorot_normal": ".init_ops:glorot_normal",
    "he_uniform": ".init_ops:he_uniform",
    "he_normal": ".init_ops:he_normal",
    "lecun_uniform": ".init_ops:lecun_uniform",
    "lecun_normal": ".init_ops:lecun_normal",
}

__getattr__, __dir__ = face(__name__, NAMES)
