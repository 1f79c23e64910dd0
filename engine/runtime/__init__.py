"""Running graphs: executor, sessions, the resources they keep."""

from .executor import Plan as Plan
from .executor import StepContext as StepContext
from .resources import SessionResources as SessionResources
from .session import InteractiveSession as InteractiveSession
from .session import Session as Session
from .session import get_default_session as get_default_session
