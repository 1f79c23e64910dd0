"""What laminar costs beside its peers: `python -m benchmarks --help`.

A workload is declared once in `workloads` (its arrays, what its results must satisfy) and once for
each framework in `frameworks`. Each framework runs in a process of its own (`worker`, started by
`processes`); `measurement` takes short blocks of each in turn, `report` prints medians and ratios.
"""
