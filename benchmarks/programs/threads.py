"""Starts threads that all live at the same time, and joins them; prints the seconds per thread to standard error."""

import json
import sys
import threading
import time

COUNT = int(sys.argv[1])

go = threading.Event()
start = time.perf_counter()
threads = [threading.Thread(target=go.wait) for _ in range(COUNT)]
for thread in threads:
    thread.start()
go.set()
for thread in threads:
    thread.join()
print(json.dumps({"thread": (time.perf_counter() - start) / COUNT}), file=sys.stderr)
