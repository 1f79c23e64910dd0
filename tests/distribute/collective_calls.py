"""A program of two processes that call each collective; what they get goes into a folder."""

import sys
from pathlib import Path

import numpy as np

from laminar.distribute import all_gather, all_reduce, barrier, broadcast
from laminar.distribute.collectives.mpi import world

rank = world().rank
mine = np.array([rank, 2.0])
total = all_reduce(mine)
most = all_reduce(mine, "max")
rows = all_gather(np.full(rank + 1, rank))
first = broadcast(mine)
barrier()
found = {"total": total, "most": most, "rows": rows, "first": first}
arrays = {name: np.asarray(value) for name, value in found.items()}
np.savez(Path(sys.argv[1], f"{rank}.npz"), allow_pickle=False, **arrays)
