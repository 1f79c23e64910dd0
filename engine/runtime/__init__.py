"""Running graphs: executor, sessions, the resources they keep."""

from .config import SessionConfig as SessionConfig
from .executor import Plan as Plan
from .partitioned import Machine as Machine
from .partitioned import PartitionedPlan as PartitionedPlan
from .partitioned import default_machine as default_machine
from .pool import set_inter_op_threads as set_inter_op_threads
from .resources import SessionResources as SessionResources
from .session import InteractiveSession as InteractiveSession
from .session import Session as Session
from .session import get_default_session as get_default_session
from .step import StepContext as StepContext
