"""`laminar.errors`: one class for each status, which stand in engine/errors.py."""

from __future__ import annotations

from .engine.errors import AbortedError as AbortedError
from .engine.errors import AlreadyExistsError as AlreadyExistsError
from .engine.errors import ArgumentTypeError as ArgumentTypeError
from .engine.errors import CancelledError as CancelledError
from .engine.errors import DataLossError as DataLossError
from .engine.errors import DeadlineExceededError as DeadlineExceededError
from .engine.errors import DTypeError as DTypeError
from .engine.errors import FailedPreconditionError as FailedPreconditionError
from .engine.errors import InternalError as InternalError
from .engine.errors import InvalidArgumentError as InvalidArgumentError
from .engine.errors import LaminarError as LaminarError
from .engine.errors import MissingFileError as MissingFileError
from .engine.errors import NoGradientError as NoGradientError
from .engine.errors import NoTensorError as NoTensorError
from .engine.errors import NotFoundError as NotFoundError
from .engine.errors import Origin as Origin
from .engine.errors import OutOfRangeError as OutOfRangeError
from .engine.errors import PermissionDeniedError as PermissionDeniedError
from .engine.errors import ResourceExhaustedError as ResourceExhaustedError
from .engine.errors import ShapeError as ShapeError
from .engine.errors import StillRunningError as StillRunningError
from .engine.errors import UnavailableError as UnavailableError
from .engine.errors import UnimplementedError as UnimplementedError
from .engine.errors import UnknownClassError as UnknownClassError
from .engine.errors import UnknownSizeError as UnknownSizeError
from .engine.errors import UnknownTruthError as UnknownTruthError
from .engine.errors import UnknownValueError as UnknownValueError
