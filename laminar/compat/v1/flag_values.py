"""Settings of a script by name, which the command line changes, and how a script is run.

State: `FLAGS` has a `_Flag` for each name that was defined, and the values since the arguments of
the process were read, which is when one is first asked for, or by `run`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError


class _Flag(NamedTuple):
    default: Any
    read: Callable[[str], Any]
    help: str


class FlagValues:
    """The settings as attributes: those of the command line, else the defaults."""

    def __init__(self) -> None:
        self.__dict__.update(_flags={}, _values={}, _is_parsed=False)

    def __getattr__(self, name: str) -> Any:
        flags: dict[str, _Flag] = self.__dict__["_flags"]
        if name not in flags:
            raise AttributeError(f"FLAGS has no {name!r}; it has {', '.join(flags) or 'none'}")
        if not self._is_parsed:
            self(sys.argv, known_only=True)
        return self._values.get(name, flags[name].default)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"FLAGS has no {name!r}; define it first")
        self._values[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read arguments, the name of the program first; gives those that are no flags.

        Raises:
            NotFoundError: there is no flag of a name, unless `known_only`.
            InvalidArgumentError: a flag has no value, or one of another type.
        """
        rest, given = list(argv[:1]), iter(argv[1:])
        values = {}
        for text in given:
            if text == "--":
                rest += given
                break
            name, equals, value = text.lstrip("-").partition("=")
            name = name.replace("-", "_")
            if not text.startswith("-") or text == "-":
                rest.append(text)
            elif name in self._flags:
                flag = self._flags[name]
                if equals:
                    found: str | None = value
                else:
                    found = "true" if flag.read is _boolean else next(given, None)
                values[name] = _value(name, flag, found)
            elif name[:2] == "no" and getattr(self._flags.get(name[2:]), "read", None) is _boolean:
                values[name[2:]] = False
            elif known_only:
                rest.append(text)
            else:
                raise NotFoundError(
                    f"there is no flag {text!r}",
                    remedy=f"the script has {', '.join(f'--{n}' for n in self._flags)}",
                )
        self._values.update(values)
        self.__dict__["_is_parsed"] = True
        return rest

    def flag_values_dict(self) -> dict[str, Any]:
        """All settings."""
        return {name: getattr(self, name) for name in self._flags}

    def define(self, name: str, flag: _Flag) -> None:
        """Add a setting."""
        if name in self._flags:
            raise AlreadyExistsError(f"the flag {name!r} is defined already")
        self._flags[name] = flag


FLAGS = FlagValues()


def _value(name: str, flag: _Flag, text: str | None) -> Any:
    try:
        if text is not None:
            return flag.read(text)
    except ValueError as cause:
        raise InvalidArgumentError(f"--{name}: {text!r}: {cause}") from cause
    raise InvalidArgumentError(f"--{name} needs a value", remedy=f"--{name}=value")


def _boolean(text: str) -> bool:
    found = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if text.lower() not in found:
        raise ValueError("expected true or false")
    return found[text.lower()]


def _definer(read: Callable[[str], Any], what: str) -> Callable[..., None]:
    def define(name: str, default: Any, help: str = "", **more: Any) -> None:
        FLAGS.define(name, _Flag(default, read, help))

    define.__doc__ = f"A setting that is {what}: its name, default and meaning."
    return define


DEFINE_string = _definer(str, "a text")
DEFINE_integer = _definer(int, "a whole number")
DEFINE_float = _definer(float, "a number")
DEFINE_boolean = DEFINE_bool = _definer(_boolean, "true or false")
DEFINE_list = _definer(lambda text: text.split(",") if text else [], "texts with commas between")


def DEFINE_enum(name: str, default: Any, enum_values: Sequence[str], help: str = "") -> None:  # noqa: N802  # its name there
    """A setting that is one of some texts."""

    def read(text: str) -> str:
        if text not in enum_values:
            raise ValueError(f"expected one of {', '.join(enum_values)}")
        return text

    FLAGS.define(name, _Flag(default, read, help))


def run(
    main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None
) -> NoReturn:
    """Read the command line, call `main` with what is no flag, and exit with what it gives.

    Args:
        main: by default the function of that name of the script.
        argv: by default the process's arguments, the name of the program first.
    """
    rest = FLAGS(sys.argv if argv is None else argv, known_only=True)
    sys.exit((main or sys.modules["__main__"].__dict__["main"])(rest))
