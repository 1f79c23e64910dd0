"""The names that scripts for Keras 2 use: `optimizers.legacy.Adam` is `optimizers.Adam`, ..."""

from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .ftrl import Ftrl as Ftrl
from .optimizer import Optimizer as Optimizer
from .rmsprop import RMSprop as RMSprop
from .sgd import SGD as SGD
