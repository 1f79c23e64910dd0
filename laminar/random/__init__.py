"""Random numbers: the draws, and the generators that give each draw its state."""

from .candidates import Candidates as Candidates
from .candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from .candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from .candidates import uniform_candidate_sampler as uniform_candidate_sampler
from .draws import beta as beta
from .draws import binomial as binomial
from .draws import categorical as categorical
from .draws import dropout as dropout
from .draws import gamma as gamma
from .draws import normal as normal
from .draws import randint as randint
from .draws import shuffle as shuffle
from .draws import truncated_normal as truncated_normal
from .draws import uniform as uniform
from .seeds import SeedGenerator as SeedGenerator
from .seeds import draw_seed as draw_seed
from .seeds import global_seed_generator as global_seed_generator
from .seeds import make_default_seed as make_default_seed
from .seeds import set_random_seed as set_random_seed
