"""`laminar.config`: the settings of the process, and the global dtype policy."""

from __future__ import annotations

from .dtype_policies import dtype_policy as dtype_policy
from .dtype_policies import set_dtype_policy as set_dtype_policy
from .settings import backend as backend
from .settings import disable_flash_attention as disable_flash_attention
from .settings import disable_interactive_logging as disable_interactive_logging
from .settings import disable_traceback_filtering as disable_traceback_filtering
from .settings import enable_flash_attention as enable_flash_attention
from .settings import enable_interactive_logging as enable_interactive_logging
from .settings import enable_traceback_filtering as enable_traceback_filtering
from .settings import enable_unsafe_deserialization as enable_unsafe_deserialization
from .settings import epsilon as epsilon
from .settings import floatx as floatx
from .settings import image_data_format as image_data_format
from .settings import is_flash_attention_enabled as is_flash_attention_enabled
from .settings import is_interactive_logging_enabled as is_interactive_logging_enabled
from .settings import is_nnx_enabled as is_nnx_enabled
from .settings import is_traceback_filtering_enabled as is_traceback_filtering_enabled
from .settings import max_epochs as max_epochs
from .settings import max_steps_per_epoch as max_steps_per_epoch
from .settings import set_backend as set_backend
from .settings import set_epsilon as set_epsilon
from .settings import set_floatx as set_floatx
from .settings import set_image_data_format as set_image_data_format
from .settings import set_max_epochs as set_max_epochs
from .settings import set_max_steps_per_epoch as set_max_steps_per_epoch
from .settings import standardize_data_format as standardize_data_format
