"""Objects that follow training, and may steer it."""

from .callback import Callback as Callback
from .callback import CallbackList as CallbackList
from .history import History as History
from .progress import ProgbarLogger as ProgbarLogger
