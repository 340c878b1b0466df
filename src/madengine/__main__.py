"""``python -m madengine``."""

import sys

from madengine.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
