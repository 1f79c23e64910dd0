"""The workloads in each framework: a module's CASES maps their names to what prepares them."""
