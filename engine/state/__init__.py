"""What is kept between steps."""

from .assign import assign as assign
from .assign import assign_add as assign_add
from .assign import assign_sub as assign_sub
from .collections import GraphKeys as GraphKeys
from .initialization import create_global_step as create_global_step
from .initialization import get_global_step as get_global_step
from .initialization import global_variables as global_variables
from .initialization import global_variables_initializer as global_variables_initializer
from .initialization import local_variables as local_variables
from .initialization import local_variables_initializer as local_variables_initializer
from .initialization import report_uninitialized_variables as report_uninitialized_variables
from .initialization import trainable_variables as trainable_variables
from .initialization import variables_initializer as variables_initializer
from .variable import Variable as Variable
from .variable import autocast as autocast
from .variable import variables_made as variables_made
