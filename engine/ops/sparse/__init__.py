"""Arrays of which only what is not zero is held: its places and its values."""
