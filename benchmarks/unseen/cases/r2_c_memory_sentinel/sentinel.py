import os
import signal
import sys
import time

import psutil

pid, limit_mb = int(sys.argv[1]), int(sys.argv[2])
while psutil.pid_exists(pid):
    try:
        rss = psutil.Process(pid).memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        break
    if rss > limit_mb:
        os.kill(pid, signal.SIGKILL)
        break
    time.sleep(0.05)
