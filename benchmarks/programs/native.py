"""Calls one function of the native library with numbers as arguments; prints its seconds to standard error."""

import ctypes
import json
import sys

library, function, *numbers = sys.argv[1:]
call = getattr(ctypes.CDLL(library), function)
call.restype = ctypes.c_double
print(json.dumps({"seconds": call(*map(int, numbers))}), file=sys.stderr)
