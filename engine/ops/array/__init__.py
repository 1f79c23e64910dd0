"""Shapes and places: indexing, joining, gathering, sorting."""
