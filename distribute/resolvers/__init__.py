"""Where a process stands in its cluster, as the engine that started it says.

resolver = laminar.distribute.resolvers.resolve()
cluster, job, task = resolver.cluster_spec(), resolver.task_type, resolver.task_id
"""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
