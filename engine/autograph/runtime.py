"""What rewritten code calls."""

from .calls import call as call
from .conditions import choose as choose
from .conditions import if_ as if_
from .items import items as items
from .logic import and_ as and_
from .logic import asserted as asserted
from .logic import chain as chain
from .logic import contains as contains
from .logic import not_ as not_
from .logic import or_ as or_
from .loops import for_ as for_
from .loops import while_ as while_
from .raising import raised as raised
from .state import UNBOUND as UNBOUND
from .state import of_outside as of_outside
from .state import set_attribute as set_attribute
from .state import value as value
