"""Saves when it is interrupted; a second interruption would break that."""

import time
from pathlib import Path

try:
    print("training", flush=True)
    Path("ready").touch()
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted: saving", flush=True)
    time.sleep(0.5)
    print("saved", flush=True)
