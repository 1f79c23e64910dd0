"""Python functions as graphs."""

from . import condition_gradients as condition_gradients
from . import loop_gradients as loop_gradients
from .carve import graph_function as graph_function
from .concrete import ConcreteFunction as ConcreteFunction
from .conditions import case as case
from .conditions import cond as cond
from .conditions import switch_case as switch_case
from .converting import converted_in_graph as converted_in_graph
from .converting import do_not_convert as do_not_convert
from .custom_gradient import custom_gradient as custom_gradient
from .func_graph import FuncGraph as FuncGraph
from .function import Function as Function
from .function import function as function
from .loops import fori_loop as fori_loop
from .loops import map_slices as map_slices
from .loops import scan as scan
from .loops import while_loop as while_loop
from .py_function import numpy_function as numpy_function
from .py_function import py_function as py_function
from .remat import remat as remat
from .signature import PYTHON_VALUE as PYTHON_VALUE
from .signature import TRACE_ON_NEW_VALUE as TRACE_ON_NEW_VALUE
from .wrap_function import wrap_function as wrap_function
