"""Products, factors and equations of matrices."""
