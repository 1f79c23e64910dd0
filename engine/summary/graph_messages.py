"""Graphs and statistics of runs as the messages that TensorBoard shows.

    GraphDef {repeated NodeDef node = 1, VersionDef versions = 4 {int32 producer = 1}}
    NodeDef {string name = 1, string op = 2, repeated string input = 3, string device = 4,
             map<string, AttrValue> attr = 5}
    AttrValue {ListValue list = 1 {repeated TensorShapeProto shape = 7}}
    TensorShapeProto {repeated Dim dim = 2 {int64 size = 1}, bool unknown_rank = 3}
    MetaGraphDef {MetaInfoDef meta_info_def = 1, GraphDef graph_def = 2, SaverDef saver_def = 3,
                  map<string, CollectionDef> collection_def = 4,
                  map<string, SignatureDef> signature_def = 5}
    RunMetadata {StepStats step_stats = 1 {repeated DeviceStepStats dev_stats = 1}}
    DeviceStepStats {string device = 1, repeated NodeExecStats node_stats = 2}
    NodeExecStats {string node_name = 1, int64 all_start_micros = 2, int64 op_end_rel_micros = 4,
                   int64 all_end_rel_micros = 5, repeated AllocatorMemoryUsed memory = 6,
                   repeated NodeOutput output = 7, string timeline_label = 8, uint32 thread_id = 10}
    AllocatorMemoryUsed {string allocator_name = 1, int64 total_bytes = 2}
    NodeOutput {TensorDescription tensor_description = 3 {
                AllocationDescription allocation_description = 4 {int64 requested_bytes = 1}}}

Source: tensorflow/core/framework/{graph,node_def,attr_value,tensor_shape,step_stats}.proto and
    tensorflow/core/protobuf/meta_graph.proto.
"""

from __future__ import annotations

from .. import wire
from ..graph import Graph, Operation, TensorShape
from ..runtime import RunMetadata

_PRODUCER = 1087  # the version of the schema


def graph_bytes(graph: Graph) -> bytes:
    """A graph as a GraphDef of TensorFlow's schema, with the sizes of all tensors."""
    nodes = b"".join(wire.field(1, _node(op)) for op in graph.operations)
    return nodes + wire.field(4, wire.integer(1, _PRODUCER))


def with_graph(meta_graph: bytes, graph: bytes) -> bytes:
    """A MetaGraphDef with another GraphDef in it."""
    message = wire.Message(meta_graph, wire.Kind("a MetaGraph", "export it again"))
    found = b""
    for number, kind in message.fields():
        if number == 2:
            message.skip(kind)
            found += wire.field(2, graph)
        else:
            found += wire.field(number, message.bytes())
    return found


def _node(op: Operation) -> bytes:
    content = wire.text(1, op.name) + wire.text(2, op.type)
    for x in op.inputs:
        source = x.op.name
        content += wire.text(3, f"{source}:{x.value_index}" if x.value_index else source)
    for c in op.control_inputs:
        content += wire.text(3, f"^{c.name}")
    if op.device:
        content += wire.text(4, op.device)
    shapes = b"".join(wire.field(7, _shape(y.shape)) for y in op.outputs)
    entry = wire.text(1, "_output_shapes") + wire.field(2, wire.field(1, shapes))
    return content + wire.field(5, entry)


def _shape(shape: TensorShape) -> bytes:
    if shape.rank is None:
        return wire.integer(3, 1)
    return b"".join(wire.field(2, wire.integer(1, -1 if size is None else size)) for size in shape)


def metadata_bytes(metadata: RunMetadata) -> bytes:
    """What a run recorded of its operations, as a RunMetadata of TensorFlow's schema."""
    devices = b""
    for device in metadata.step_stats:
        content = wire.text(1, device.device)
        for node in device.nodes:
            duration = round(node.duration_us)
            content += wire.field(
                2,
                wire.text(1, node.name)
                + wire.integer(2, round(node.start_us))
                + wire.integer(4, duration)
                + wire.integer(5, duration)
                + wire.field(6, wire.text(1, device.device) + wire.integer(2, node.output_bytes))
                + wire.field(7, _bytes_of_output(node.output_bytes))
                + wire.text(8, f"{node.name} = {node.type}")
                + wire.integer(10, node.thread & 0xFFFF_FFFF),
            )
        devices += wire.field(1, content)
    return wire.field(1, devices)


def _bytes_of_output(size: int) -> bytes:
    return wire.field(3, wire.field(4, wire.integer(1, size)))
