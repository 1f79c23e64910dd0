"""Matrix products: plans, and the kernels that they launch."""
