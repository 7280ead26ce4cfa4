"""Claim: NumPy 1 and NumPy 2 side by side crash.
Reality: half true. TensorFlow and careful extensions raise ImportError; an extension that goes on without NumPy's table
of functions, because `import_array()` failed or was forgotten, dies with SIGSEGV.
"""

import ctypes
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
from endings import cannot_show, ending

SOURCE = Path(__file__).with_suffix(".c")


def call_it():
    library = ctypes.PyDLL("./careless.so")
    library.make_array.restype = ctypes.py_object
    library.make_array()


def main():
    include = sysconfig.get_path("include")
    if not shutil.which("gcc") or not Path(include, "Python.h").exists():
        cannot_show("gcc or the headers of Python are not installed")
    folders = [f"-I{include}", f"-I{np.get_include()}"]
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", *folders, "-o", "careless.so", SOURCE], check=True)
    print("extension without NumPy's table:", ending(call_it).how)


if __name__ == "__main__":
    main()
