"""Ragged tensors: rows of different lengths, as their values and the places where rows end."""
