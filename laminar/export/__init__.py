"""Functions of models as files: graphs and variables, which run without the code that made them.

Reading a file loads what running needs; what writes one is loaded when it is asked for.
"""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
