"""Plans as functions of Python: the driver, its threads, and what a cluster calls."""
