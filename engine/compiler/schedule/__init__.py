"""How a loop program runs: what is fused, in which order, and where its values live."""
