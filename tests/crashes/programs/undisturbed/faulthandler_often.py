"""faulthandler on and off sixty times; what SIGTRAP does afterwards: faulthandler_often.py {default,own}."""

import faulthandler
import os
import signal
import sys

hits = []
if sys.argv[1] == "own":
    signal.signal(signal.SIGTRAP, lambda number, _: hits.append(number))
for _ in range(60):
    faulthandler.enable()
    faulthandler.disable()
os.kill(os.getpid(), signal.SIGTRAP)
print("alive, handler called", len(hits), "times")
