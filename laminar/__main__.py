"""`python -m laminar`: the command line."""

import sys

from laminar.commands import main

if __name__ == "__main__":
    sys.exit(main())
