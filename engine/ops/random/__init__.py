"""Random numbers, and the state that they are drawn from."""
