"""The machine in general terms: enough to judge the numbers, nothing that names it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

VERSIONS = """
import platform, tensorflow as tf
print(platform.python_version(), tf.__version__, tf.keras.__version__)
"""


def describe(python: str) -> str:
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    asked = subprocess.run([python, "-c", VERSIONS], env=environment, capture_output=True, check=True)
    inner, tensorflow, keras = asked.stdout.decode().split()[-3:]
    cores, kernel = len(os.sched_getaffinity(0)), platform.release().split("-")[0]
    return (
        f"{model[1] if model else platform.machine()}, {cores} cores, {memory:.0f} GiB, Linux {kernel}; "
        f"TensorFlow {tensorflow} and Keras {keras} on Python {inner}; "
        f"faultlens on Python {platform.python_version()}"
    )
