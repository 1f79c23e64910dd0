"""A dictionary whose keys are attributes too, and that can be frozen."""

from __future__ import annotations

import json
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any

from laminar.engine.errors import FailedPreconditionError


class Config:
    """Settings by name: `config.rate` is `config["rate"]`.

    Args:
        **kwargs: what it begins with.

    Raises:
        FailedPreconditionError: it is changed after `freeze()`.

    Examples:
        >>> config = laminar.utils.Config(rate=0.1, units=8)
        >>> config.rate, config["units"]
        (0.1, 8)
    """

    _config: dict[str, Any]
    _frozen: bool

    def __init__(self, **kwargs: Any) -> None:
        object.__setattr__(self, "_config", dict(kwargs))
        object.__setattr__(self, "_frozen", False)

    @property
    def frozen(self) -> bool:
        """Whether it refuses to be changed."""
        return self._frozen

    def freeze(self) -> None:
        """Refuse changes from now on."""
        object.__setattr__(self, "_frozen", True)

    def unfreeze(self) -> None:
        """Take changes again."""
        object.__setattr__(self, "_frozen", False)

    def as_dict(self) -> dict[str, Any]:
        """The settings as a dictionary of their own."""
        return dict(self._config)

    def to_json(self) -> str:
        """The settings as JSON."""
        return json.dumps(self._config)

    def keys(self) -> KeysView[str]:
        return self._config.keys()

    def values(self) -> ValuesView[Any]:
        return self._config.values()

    def items(self) -> ItemsView[str, Any]:
        return self._config.items()

    def get(self, key: str, default: Any = None) -> Any:
        return self._config.get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Take a setting out, and give it."""
        self._refuse_if_frozen()
        return self._config.pop(key, *default)

    def update(self, other: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        """Set several."""
        self._refuse_if_frozen()
        self._config.update(other or {}, **kwargs)

    def __getattr__(self, key: str) -> Any:
        try:
            return self._config[key]
        except KeyError:
            raise AttributeError(f"the config has no setting {key!r}") from None

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value

    def __delattr__(self, key: str) -> None:
        del self[key]

    def __getitem__(self, key: str) -> Any:
        return self._config[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._refuse_if_frozen()
        self._config[key] = value

    def __delitem__(self, key: str) -> None:
        self._refuse_if_frozen()
        del self._config[key]

    def __contains__(self, key: object) -> bool:
        return key in self._config

    def __len__(self) -> int:
        return len(self._config)

    def __iter__(self) -> Any:
        return iter(self._config)

    def __repr__(self) -> str:
        return f"<Config {self._config}>"

    def _refuse_if_frozen(self) -> None:
        if self._frozen:
            raise FailedPreconditionError(
                "Config: it is frozen", remedy="call unfreeze() to change it"
            )
