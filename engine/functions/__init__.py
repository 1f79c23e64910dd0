"""Python functions as graphs."""

from .carve import graph_function as graph_function
from .concrete import ConcreteFunction as ConcreteFunction
from .custom_gradient import custom_gradient as custom_gradient
from .func_graph import FuncGraph as FuncGraph
from .function import Function as Function
from .function import function as function
from .signature import PYTHON_VALUE as PYTHON_VALUE
from .signature import TRACE_ON_NEW_VALUE as TRACE_ON_NEW_VALUE
