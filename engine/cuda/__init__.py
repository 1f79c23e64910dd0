"""NVIDIA GPUs: what laminar asks of one, cupy behind that, and compiled steps as CUDA graphs."""
