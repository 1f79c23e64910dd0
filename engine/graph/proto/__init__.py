"""The interchange format of graphs: graph.proto, and the module generated from it."""
