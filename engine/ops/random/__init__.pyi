from . import candidates as candidates
from . import distributions as distributions
from . import draws as draws
from . import philox as philox
from . import random_state as random_state
from . import rejection as rejection
from . import source as source
