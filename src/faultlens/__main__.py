import sys

from faultlens.cli import main

sys.exit(main())
