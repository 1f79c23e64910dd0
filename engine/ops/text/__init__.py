"""Byte strings. On the host alone."""
