"""laminar under other names, for programs and packages that import those."""
