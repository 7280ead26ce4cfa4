"""`python -m faultlens`."""

import sys

# Python puts the working folder first, where a program may have a random.py or types.py of its own.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from faultlens.cli import main

sys.exit(main())
