from . import siphash as siphash
from . import string as string
from . import string_match as string_match
from . import tokens as tokens
