"""How tasks of a cluster reach each other: calls, tensors, credentials, errors.

Nothing that comes over the wire can run code, is believed before it is checked, or takes memory
before its size is within its limits. What the calls mean is the cluster's concern.
"""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
