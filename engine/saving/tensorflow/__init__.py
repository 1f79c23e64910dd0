"""Graphs of TensorFlow, read and written: nodes as operations of laminar of the same names."""

from .exporting import tensorflow_graph_of as tensorflow_graph_of
from .graph_def import TensorFlowGraph as TensorFlowGraph
from .importing import graph_def_of as graph_def_of
