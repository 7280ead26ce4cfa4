import os
import signal
import sys
import time

job, walltime = int(sys.argv[1]), float(sys.argv[2])
deadline = time.monotonic() + walltime
while time.monotonic() < deadline:
    try:
        with open(f"/proc/{job}/stat") as f:
            ticks = f.read().split()[13:15]
    except OSError:
        sys.exit(0)
    time.sleep(0.5)
os.kill(job, signal.SIGTERM)
