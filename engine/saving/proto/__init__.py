"""MetaGraphs as protobuf has them: meta_graph.proto, and the module generated from it."""
