"""Conditions and loops, as operations with graphs inside and as dataflow."""
