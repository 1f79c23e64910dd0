"""Functions of values, without calls to a kernel call, for any number of lanes.

Those of floats are within 2 units in the last place of float32, and 4 of float64, everywhere:
below the normal numbers, at the borders of overflow, with the limits at the infinities and the
signs of zeros; gelu, normal_cdf and root_quotient say what they promise. In plans, numbers below
the normal ones are 0 to them (see codegen/subnormals.py). What a type is not offered for raises
NotLoweredError.
"""

from .arithmetic import absolute as absolute
from .arithmetic import ceil as ceil
from .arithmetic import floor as floor
from .arithmetic import is_finite as is_finite
from .arithmetic import is_inf as is_inf
from .arithmetic import is_nan as is_nan
from .arithmetic import logical_and as logical_and
from .arithmetic import logical_not as logical_not
from .arithmetic import logical_or as logical_or
from .arithmetic import logical_xor as logical_xor
from .arithmetic import maximum as maximum
from .arithmetic import minimum as minimum
from .arithmetic import real_part as real_part
from .arithmetic import rint as rint
from .arithmetic import shift_left as shift_left
from .arithmetic import shift_right as shift_right
from .arithmetic import sign as sign
from .arithmetic import trunc as trunc
from .division import floor_divide as floor_divide
from .division import floor_mod as floor_mod
from .division import trunc_mod as trunc_mod
from .error_functions import erf as erf
from .error_functions import erfc as erfc
from .error_functions import normal_cdf as normal_cdf
from .exponentials import cosh as cosh
from .exponentials import exp as exp
from .exponentials import exp2 as exp2
from .exponentials import expm1 as expm1
from .exponentials import sigmoid as sigmoid
from .exponentials import sinh as sinh
from .exponentials import tanh as tanh
from .floats import copysign as copysign
from .floats import select as select
from .gelu import gelu as gelu
from .gelu import gelu_slope as gelu_slope
from .logarithms import arccosh as arccosh
from .logarithms import arcsinh as arcsinh
from .logarithms import arctanh as arctanh
from .logarithms import log as log
from .logarithms import log1p as log1p
from .logarithms import log2 as log2
from .logarithms import log10 as log10
from .piecewise import has_pieces as has_pieces
from .powers import cbrt as cbrt
from .powers import hypot as hypot
from .powers import ldexp as ldexp
from .powers import next_after as next_after
from .powers import power as power
from .powers import root_quotient as root_quotient
from .powers import sqrt as sqrt
from .trigonometry import angle as angle
from .trigonometry import arccos as arccos
from .trigonometry import arcsin as arcsin
from .trigonometry import arctan as arctan
from .trigonometry import arctan2 as arctan2
from .trigonometry import cos as cos
from .trigonometry import sin as sin
from .trigonometry import tan as tan
