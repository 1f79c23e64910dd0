"""What neural networks are made of: activations, convolutions, normalization, losses."""
