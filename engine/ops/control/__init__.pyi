from . import dataflow as dataflow
from . import structured as structured
