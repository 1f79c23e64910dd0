"""Native functions by their code: compiled or read from the cache once, then known by address.

Object code has a key: the digest of all that decides about it. For code that is written from a few
parameters these stand for its IR, which is then only written where the object code is missing. All
that is asked for together is linked together. Every compile is noted (see compile_log.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ... import forks
from . import compile_log, compile_pool, disk_cache, llvm
from .code import Code, same
from .fingerprint import NoDigestError, digest, encoded, sources

_SUFFIX = ".o"
_SHORT = 16  # figures of a key that tell functions of one name apart


class Native(NamedTuple):
    """A function in object code.

    Attributes:
        key: of the object code.
        symbol: its name there.
        labels: the operations that it is for.
    """

    key: str
    symbol: str
    labels: tuple[str, ...] = ()


_keys: dict[Code, str] = {}
_codes: dict[str, Code] = {}
_contents: dict[str, bytes] = {}
_addresses: dict[tuple[str, str], int] = {}
_symbols: set[str] = set()  # of those
_lock = forks.lock()


def native(code: Code, labels: tuple[str, ...] = ()) -> Native:
    """The function of `code`."""
    key = _keys.get(code)
    if key is None:
        key = _key(code)
        _codes.setdefault(key, code)
        _keys[code] = key
    return Native(key, code.symbol, labels)


def _key(code: Code) -> str:
    identity = llvm.identity(code.vector_bytes)
    if code.writer is same:
        return digest(identity, code.text())
    try:
        description = encoded((code.writer, code.parameters))
    except NoDigestError:
        return digest(identity, code.text())
    return digest(identity, sources(), description)


def is_loaded(code: Code) -> bool:
    """Whether the function of `code` has an address."""
    if code.symbol not in _symbols:  # this takes no digest
        return False
    return are_loaded([native(code)])


def are_loaded(natives: Sequence[Native]) -> bool:
    """Whether all of these have an address."""
    return all((f.key, f.symbol) in _addresses for f in natives)


def kept_of(natives: Sequence[Native]) -> dict[str, bytes] | None:
    """The object code of those that have no address, by its key; None if some is not on disk."""
    found = dict[str, bytes]()
    for f in natives:
        if (f.key, f.symbol) not in _addresses and f.key not in found:
            content = _contents.get(f.key) or disk_cache.read(f.key + _SUFFIX)
            if content is None:
                return None
            found[f.key] = content
    return found


def num_loaded() -> int:
    """How many functions have an address."""
    return len(_addresses)


def address_of(code: Code) -> int:
    """Where the function of `code` is."""
    (found,) = addresses_of([native(code)])
    return found


def addresses_of(
    natives: Sequence[Native], contents: Mapping[str, bytes] | None = None
) -> list[int]:
    """Where functions are.

    Args:
        natives: the functions.
        contents: object code that has been read, by its key.
    """
    if not are_loaded(natives):
        with _lock:
            _load(natives, contents or {})
    return [_addresses[f.key, f.symbol] for f in natives]


def content_of(key: str) -> bytes:
    """The object code of functions that have been asked for."""
    return _contents[key]


def _load(natives: Sequence[Native], contents: Mapping[str, bytes]) -> None:
    """Link what is not known yet."""
    wanted: dict[str, list[Native]] = {}
    for f in natives:
        if (f.key, f.symbol) not in _addresses:
            wanted.setdefault(f.key, []).append(f)
    seconds = dict.fromkeys(wanted, 0.0)
    missing = []
    for key in wanted:
        start = time.perf_counter()
        content = contents.get(key) or _contents.get(key) or disk_cache.read(key + _SUFFIX)
        if content is None:
            missing.append(key)
            continue
        _contents[key] = content
        seconds[key] = time.perf_counter() - start

    def make(key: str, to_object: compile_pool.Compile) -> None:
        start, code = time.perf_counter(), _codes[key]
        content = to_object(code.text(), code.vector_bytes, _suffix(key))
        disk_cache.write(key + _SUFFIX, content)
        _contents[key] = content
        seconds[key] = time.perf_counter() - start

    compile_pool.compile_all(missing, make)
    fresh = set(missing)
    for key, (first, *_) in wanted.items():
        label = "+".join(first.labels) or first.symbol
        size = len(_contents[key])
        compile_log.note(compile_log.Compile(label, key in fresh, seconds[key], size))
    objects = [_contents[key] for key in wanted]
    names = {(f.key, f.symbol): f.symbol + _suffix(f.key) for fs in wanted.values() for f in fs}
    addresses = llvm.load_objects(objects, list(names.values()))
    _addresses.update({pair: addresses[name] for pair, name in names.items()})
    _symbols.update(symbol for _, symbol in names)


def _suffix(key: str) -> str:
    return "_" + key[:_SHORT]
