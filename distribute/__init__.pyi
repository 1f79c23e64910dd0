from . import resolvers as resolvers
from .cluster_spec import ClusterSpec as ClusterSpec
from .connecting import connect_to_cluster as connect_to_cluster
from .data_parallel import DataParallel as DataParallel
from .multi_worker import MultiWorker as MultiWorker
from .servers import Server as Server
from .staleness import Staleness as Staleness
from .wire import Credentials as Credentials
