"""IR text to object code, by llvmlite alone; also a program that does it for another process.

    python -I -S llvm_worker.py FOLDER

FOLDER is where llvmlite is. The program imports nothing of laminar, so that it starts quickly. It
prints the version of llvmlite; then it answers requests, until there are no more: a line of JSON
with the `size` of a text, its `features` and `suffix`, then the text. A reply is a line with a
size, then the object code. It ends at the first request that it cannot fulfil.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

# How much of LLVM's code generator to use. The IR comes in its final form, so the middle end is
# skipped; at 0 the code is three times slower, above 2 it is not faster.
LEVEL = 2
# Passes that find little to improve in such IR and take a third of the time: loop strength
# reduction, moving addresses to where they are used, scheduling after register allocation.
_OMITTED = ("disable-lsr", "disable-cgp", "disable-post-ra")
_KNOWN = range(14, 23)  # versions of LLVM with these options; one without them ends the process
_MOST_SECONDS = 60  # for a request to come and be answered: nobody is waiting any more


@functools.cache
def binding() -> Any:
    """llvmlite's binding, ready for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def version() -> str:
    """The version of llvmlite."""
    import llvmlite

    found: str = llvmlite.__version__
    return found


@functools.cache
def machine(features: str) -> Any:
    """What makes code for this processor with these features only."""
    llvm = binding()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features,
        opt=LEVEL,
        reloc="pic",
        codemodel="default",
        jit=True,
    )


def object_code(text: str, features: str, suffix: str) -> bytes:
    """Object code of IR text.

    Args:
        text: the IR.
        features: what it may use of the processor.
        suffix: goes behind the name of each function.

    Raises:
        RuntimeError: the IR is not valid.
    """
    llvm, target = binding(), machine(features)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(target.target_data)
    if suffix:
        for function in [f for f in module.functions if not f.is_declaration]:
            function.name += suffix
    module.verify()
    with omitted_passes():
        found: bytes = target.emit_object(module)
    return found


@contextmanager
def omitted_passes() -> Iterator[None]:
    """A block in which code is made without the passes of `_OMITTED`, where that is known to pay.

    LLVM has one set of options for a process: who else uses it there has all passes again after it.
    """
    llvm = binding()
    is_known = llvm.llvm_version_info[0] in _KNOWN
    is_measured = llvm.get_default_triple().startswith("x86_64")
    options = _OMITTED if is_known and is_measured else ()
    for option in options:
        llvm.set_option("laminar", f"-{option}=true")
    try:
        yield
    finally:
        for option in options:
            llvm.set_option("laminar", f"-{option}=false")


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests."""

    def reply(line: str, content: bytes = b"") -> None:
        replies.write(line.encode() + b"\n" + content)
        replies.flush()
        if hasattr(signal, "alarm"):  # not on Windows
            signal.alarm(_MOST_SECONDS)

    binding()
    reply(version())
    while line := requests.readline():
        request = json.loads(line)
        text = requests.read(request["size"]).decode()
        content = object_code(text, request["features"], request["suffix"])
        reply(str(len(content)), content)


if __name__ == "__main__":
    sys.path.append(sys.argv[1])  # behind the standard library, as everywhere
    serve(sys.stdin.buffer, sys.stdout.buffer)
