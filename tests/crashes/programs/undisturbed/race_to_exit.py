"""The same in Python: ctypes lets the others run on."""

import ctypes
import threading
import time

threading.Thread(target=lambda: ctypes.CDLL(None).memset(8, 0, 4), daemon=True).start()
time.sleep(0.1)
print("finished well")
