"""Running graphs: executor, sessions, the resources they keep."""

from .config import SessionConfig as SessionConfig
from .options import CostNode as CostNode
from .options import DeviceStats as DeviceStats
from .options import NodeStats as NodeStats
from .options import RunMetadata as RunMetadata
from .options import RunOptions as RunOptions
from .partitioned import Machine as Machine
from .partitioned import PartitionedPlan as PartitionedPlan
from .partitioned import default_machine as default_machine
from .plan import Plan as Plan
from .pool import set_inter_op_threads as set_inter_op_threads
from .resources import SessionResources as SessionResources
from .servers import Server as Server
from .servers import ServerDef as ServerDef
from .servers import make_server as make_server
from .servers import register_server_protocol as register_server_protocol
from .session import InteractiveSession as InteractiveSession
from .session import PartialRun as PartialRun
from .session import Session as Session
from .session import get_default_session as get_default_session
from .step import StepContext as StepContext
from .targets import SessionEngine as SessionEngine
from .targets import register_session_target as register_session_target
from .watching import run_watched as run_watched
