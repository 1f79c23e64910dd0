"""Graphs of TensorFlow 1, read: their nodes as operations of laminar under the same names."""

from .graph_def import TensorFlowGraph as TensorFlowGraph
from .importing import graph_def_of as graph_def_of
