"""What can go wrong: one class per status, each error with the user's line and a remedy.

The first line of a message says who, what was expected and what came; the lines after it name the
layer, the user's file and line, and what to do.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from .source import Location, layer_path, user_location


class Origin(NamedTuple):
    """Where in a cluster an error came up.

    Attributes:
        task: such as "/job:worker/task:1".
        device: full name of the device; empty where none has to do with it.
        step_id: of the step; None outside of one.

    Examples:
        >>> engine.errors.Origin("/job:worker/task:1", step_id=3).task
        '/job:worker/task:1'
    """

    task: str
    device: str = ""
    step_id: int | None = None

    def __str__(self) -> str:
        step = () if self.step_id is None else (f"step {self.step_id}",)
        return ", ".join([self.device or self.task, *step])


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str | None:
    """The remedy for a name that nothing has: those that are spelled like it; None without any.

    Args:
        name: what was asked for.
        known: the names that there are.
        most: how many are proposed.

    Examples:
        >>> engine.errors.did_you_mean("rellu", ["relu", "elu", "tanh"])
        'did you mean relu, elu?'
    """
    import difflib  # only for an error's text

    near = difflib.get_close_matches(name, known, most)
    return f"did you mean {', '.join(near)}?" if near else None


class LaminarError(Exception):
    """Base of all errors that laminar raises.

    Args:
        message: who, what was expected, what came. As TensorFlow has it, a NodeDef and an operation
            may stand before it: OutOfRangeError(None, None, "message").
        remedy: what the user can do about it.
        location: the user's line; by default the one that is running now.
        layer: the path of the layer; by default the one that is running now.

    Attributes:
        operation: the name of the operation whose kernel failed, None for errors of other origin.
        origin: the task of a cluster, device and step; None for errors of this process.
        error_code: the number of the status, as gRPC and TensorFlow count.
        op, node_def: the operation that failed, and it as data, where the caller's graph has it.

    Examples:
        >>> error = engine.errors.ShapeError("the sizes differ", remedy="transpose one")
        >>> isinstance(error, engine.errors.LaminarError), error.remedy
        (True, 'transpose one')
    """

    error_code: ClassVar[int] = 2  # unknown
    operation: str | None = None
    origin: Origin | None = None
    op: Any = None
    node_def: Any = None

    def __init__(
        self,
        message: Any,
        *rest: Any,
        remedy: str | None = None,
        location: Location | None = None,
        layer: str | None = None,
    ) -> None:
        if rest:
            self.node_def, (self.op, message) = message, rest
        super().__init__(message)
        self.message: str = message
        self.remedy = remedy
        self.location = location if location is not None else user_location()
        self.layer = layer if layer is not None else layer_path()

    def __str__(self) -> str:
        lines = [self.message]
        if self.origin is not None:
            lines.append(f"  in: {self.origin}")
        if self.layer:
            lines.append(f"  layer: {self.layer}")
        if self.location is not None:
            source = linecache.getline(self.location.filename, self.location.line).strip()
            lines.append(f"  at: {self.location}" + (f": {source}" if source else ""))
        if self.remedy:
            lines.append(f"  try: {self.remedy}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        # An error crosses process borders (input workers) with its text and place.
        return (_rebuild, (type(self), self.message, self.remedy, self.location, self.layer))


def _rebuild(
    kind: type[LaminarError],
    message: str,
    remedy: str | None,
    location: Location | None,
    layer: str,
) -> LaminarError:
    return kind(message, remedy=remedy, location=location, layer=layer)


class CancelledError(LaminarError):
    """The step was cancelled.

    Examples:
        >>> issubclass(engine.errors.CancelledError, engine.errors.LaminarError)
        True
    """

    error_code = 1


class InvalidArgumentError(LaminarError, ValueError):
    """An argument has a value that the operation does not take.

    Examples:
        >>> layers.Dense(0)
        Traceback (most recent call last):
            ...
        laminar.engine.errors.InvalidArgumentError: Dense 'dense': units must be a ...
    """

    error_code = 3


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument is of a kind that is not taken: a number in place of a tensor, say.

    Examples:
        >>> engine.Session(graph="graph")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.ArgumentTypeError: Session: graph must be a Graph, got ...
    """


class NoTensorError(ArgumentTypeError):
    """A value of several tensors, such as a ragged one, was given where a tensor is expected.

    Examples:
        >>> engine.convert_to_tensor(engine.ragged_constant([[1, 2], [3]]))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.NoTensorError: a ragged tensor is no tensor: <RaggedTensor ...
    """


class UnknownSizeError(InvalidArgumentError, TypeError):
    """Python asks for the length of what has none before run time.

    Examples:
        >>> with engine.Graph().as_default():
        ...     len(engine.placeholder("float32", [None]))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.UnknownSizeError: len() of Placeholder:0 (float32[?]) is ...
    """


class ShapeError(InvalidArgumentError):
    """A shape does not fit.

    Examples:
        >>> ops.matmul(np.ones((2, 3)), np.ones((2, 3)))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.ShapeError: MatMul: the inner dimensions differ: a is ...
    """


class DTypeError(InvalidArgumentError, TypeError):
    """An element type does not fit, or the type of an argument.

    Examples:
        >>> engine.add_n([engine.constant(1.0), engine.constant(1)])
        Traceback (most recent call last):
            ...
        laminar.engine.errors.DTypeError: AddN: the inputs must have one dtype, got ...
    """


class NotFoundError(LaminarError, KeyError, ValueError):
    """A name, key or file does not exist.

    Examples:
        >>> engine.lookup("NoSuchOp")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.NotFoundError: no op is named ...
    """

    error_code = 5


class UnknownClassError(NotFoundError, TypeError):
    """A config names a class or function that nobody knows, or that no config makes.

    Examples:
        >>> layers.deserialize({"class_name": "Nothing", "config": {}})
        Traceback (most recent call last):
            ...
        laminar.engine.errors.UnknownClassError: the config names 'Nothing', which ...
    """


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file does not exist.

    Examples:
        >>> laminar.saving.load_model("nowhere.keras")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.MissingFileError: there is no file at ...
    """


class OutOfRangeError(LaminarError):
    """An input has come to its end.

    Examples:
        >>> queue = engine.FIFOQueue(1, ["int32"])
        >>> _ = queue.close()
        >>> queue.dequeue()
        Traceback (most recent call last):
            ...
        laminar.engine.errors.OutOfRangeError: queue 'fifo_queue' is closed and has too ...
    """

    error_code = 11


class FailedPreconditionError(LaminarError, RuntimeError, ValueError):
    """The system is not in the state that the operation needs.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     session.run(engine.Variable(1.0, name="w"))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.FailedPreconditionError: variable 'w' is read before it ...
    """

    error_code = 9


class UnknownValueError(FailedPreconditionError, TypeError):
    """Python asks for the number that a tensor holds, which has no value before run time.

    Examples:
        >>> with engine.Graph().as_default():
        ...     int(engine.placeholder("int32", []))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.UnknownValueError: tensor Placeholder:0 (int32[]) is symbolic: ...
    """


class UnknownTruthError(UnknownValueError):
    """Python asks for the truth of what has no value before run time.

    Examples:
        >>> with engine.Graph().as_default():
        ...     bool(engine.placeholder("bool", []))
        Traceback (most recent call last):
            ...
        laminar.engine.errors.UnknownTruthError: data-dependent control flow: the truth ...
    """


class AbortedError(LaminarError):
    """The operation was given up, most often because another one failed.

    Examples:
        >>> issubclass(engine.errors.AbortedError, engine.errors.LaminarError)
        True
    """

    error_code = 10


class UnavailableError(LaminarError, ConnectionError):
    """A service, a network or another process cannot be reached.

    Examples:
        >>> issubclass(engine.errors.UnavailableError, ConnectionError)
        True
    """

    error_code = 14


class UnimplementedError(LaminarError, NotImplementedError):
    """Not implemented for these arguments or on this device.

    Examples:
        >>> issubclass(engine.errors.UnimplementedError, NotImplementedError)
        True
    """

    error_code = 12


class NoGradientError(UnimplementedError, LookupError):
    """An op has no gradient, and a result depends on its inputs through it.

    Examples:
        >>> issubclass(engine.errors.NoGradientError, LookupError)
        True
    """


class DeadlineExceededError(LaminarError, TimeoutError):
    """The time allowed has run out.

    Examples:
        >>> issubclass(engine.errors.DeadlineExceededError, TimeoutError)
        True
    """

    error_code = 4


class StillRunningError(DeadlineExceededError, RuntimeError):
    """Threads that were told to stop still run when the time allowed for that is over.

    Examples:
        >>> issubclass(engine.errors.StillRunningError, RuntimeError)
        True
    """


class ResourceExhaustedError(LaminarError, MemoryError):
    """Memory, or a limit set by the user, has run out.

    Examples:
        >>> issubclass(engine.errors.ResourceExhaustedError, MemoryError)
        True
    """

    error_code = 8


class DataLossError(LaminarError, ValueError):
    """Stored data is damaged, truncated or not what it claims to be.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("broken.keras").write_text("text")
        >>> laminar.saving.load_model("broken.keras")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.DataLossError: broken.keras: the archive is damaged or ...
    """

    error_code = 15


class PermissionDeniedError(LaminarError, PermissionError):
    """Refused for want of a right or because it would not be safe.

    Examples:
        >>> issubclass(engine.errors.PermissionDeniedError, PermissionError)
        True
    """

    error_code = 7


class AlreadyExistsError(LaminarError, ValueError):
    """The name is already taken.

    Examples:
        >>> issubclass(engine.errors.AlreadyExistsError, ValueError)
        True
    """

    error_code = 6


class InternalError(LaminarError, AssertionError):
    """A bug in laminar.

    Examples:
        >>> issubclass(engine.errors.InternalError, engine.errors.LaminarError)
        True
    """

    error_code = 13
