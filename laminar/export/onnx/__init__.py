"""Models as ONNX files: the operations of a graph as nodes of ONNX.

library     the package `onnx`, which is loaded when a file is written
writer      the nodes of a graph, as they are made
table       which rule writes which operation
scalars     elementwise expressions as nodes: all elementwise ops come from these
rules/      a rule for each other op
model       tracing, writing, checking
"""

from .model import export_onnx as export_onnx
