"""Compiled programs, and their plans for real sizes."""
