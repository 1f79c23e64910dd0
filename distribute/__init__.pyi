from .cluster_spec import ClusterSpec as ClusterSpec
from .connecting import connect_to_cluster as connect_to_cluster
from .data_parallel import DataParallel as DataParallel
from .servers import Server as Server
from .staleness import Staleness as Staleness
from .wire import Credentials as Credentials
