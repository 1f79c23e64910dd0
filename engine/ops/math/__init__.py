"""Functions of numbers: arithmetic, comparison, reductions, special functions."""
