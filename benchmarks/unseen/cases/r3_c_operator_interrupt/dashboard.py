"""Tiny job dashboard: stops the jobs which the operator has marked."""
import os
import signal
import sys
import time

marked = {int(sys.argv[1]): time.monotonic() + 8}
while marked:
    for pid, when in list(marked.items()):
        if time.monotonic() >= when:
            os.kill(pid, signal.SIGINT)
            del marked[pid]
    time.sleep(0.2)
