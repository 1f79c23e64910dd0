"""`tf.debugging`: what fails where something does not hold."""

from __future__ import annotations

from .face import Line, face
from .math import NAMES as MATH
from .names import NAMES as TOP

_NAMES = (
    "assert_equal assert_greater assert_greater_equal assert_integer assert_less "
    "assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive "
    "assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least "
    "assert_rank_in assert_same_float_dtype assert_scalar assert_type is_non_decreasing "
    "is_numeric_tensor is_strictly_increasing Assert"
)
NAMES: dict[str, Line] = {
    **{name: TOP[name] for name in _NAMES.split()},
    **{name: MATH[name] for name in ("is_finite", "is_inf", "is_nan")},
    "assert_all_finite": TOP["verify_tensor_all_finite"],
    "assert_shapes": ".assertions:assert_shapes",
    "get_log_device_placement": ".settings:get_log_device_placement",
    "set_log_device_placement": ".settings:set_log_device_placement",
    "check_numerics": ".arrays:check_numerics",
}

__getattr__, __dir__ = face(__name__, NAMES)
