"""Workers that crash a moment after their parent has ended, one after the other: late_workers.py COUNT HOW."""

import ctypes
import os
import sys
import time

for place in range(int(sys.argv[1])):
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.0005)
        time.sleep(place * 0.002)
        ctypes.string_at(8)
time.sleep(0.2)
if sys.argv[2] == "crash":
    ctypes.string_at(8)
sys.exit(int(sys.argv[2]))
