"""Convolutions and their gradients: plans, and the kernels that they launch."""
