"""Imports what it is told to, starts threads, says that it is ready and waits."""

import importlib
import os
import sys
import threading

threads, modules = int(sys.argv[1]), sys.argv[2:]
for module in modules:
    importlib.import_module(module)
if "tensorflow" in modules:
    tensorflow = sys.modules["tensorflow"]
    tensorflow.matmul(tensorflow.ones([500, 500]), tensorflow.ones([500, 500]))
wait, started = threading.Event(), threading.Barrier(2)


def work() -> None:
    started.wait()
    wait.wait()


for _ in range(threads):
    threading.Thread(target=work, daemon=True).start()
    started.wait()
print("ready", os.getpid(), 0, flush=True)
sys.stdin.readline()
os._exit(0)
