"""What processes that compute together tell each other."""
