"""Products with whole numbers of few bits."""
