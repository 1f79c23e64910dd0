from . import decompositions as decompositions
from . import einsum as einsum
from . import lu as lu
from . import matmul as matmul
from . import norms as norms
from . import products as products
from . import solve as solve
