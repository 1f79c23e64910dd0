"""`tf.flags`: a script's settings."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "DEFINE_bool": ".flag_values:DEFINE_bool",
    "DEFINE_boolean": ".flag_values:DEFINE_boolean",
    "DEFINE_enum": ".flag_values:DEFINE_enum",
    "DEFINE_float": ".flag_values:DEFINE_float",
    "DEFINE_integer": ".flag_values:DEFINE_integer",
    "DEFINE_list": ".flag_values:DEFINE_list",
    "DEFINE_string": ".flag_values:DEFINE_string",
    "FLAGS": ".flag_values:FLAGS",
    "FlagValues": ".flag_values:FlagValues",
}

__getattr__, __dir__ = face(__name__, NAMES)
