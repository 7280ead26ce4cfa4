"""CPython's tests of multiprocessing, for the start method of $START_METHOD."""

from __future__ import annotations

import os

from test import _test_multiprocessing

_test_multiprocessing.install_tests_in_module_dict(globals(), os.environ["START_METHOD"])
