"""Calls one function of the native library: its first number says how often something is done.

Prints the seconds for each time to standard error; standard output may be what is measured."""

import ctypes
import json
import sys

library, function, *numbers = sys.argv[1:]
call = getattr(ctypes.CDLL(library), function)
call.restype = ctypes.c_double
print(json.dumps({"seconds_each": call(*map(int, numbers)) / int(numbers[0])}), file=sys.stderr)
