"""Claim: on a CPU without AVX, TensorFlow says that it needs AVX.
Reality: no. It dies with SIGILL in `import tensorflow` and says nothing, because the code that would say it uses AVX.
"""

import shutil
import sys

from endings import cannot_show, ending_of


def main():
    emulator = shutil.which("qemu-x86_64")
    if not emulator:
        cannot_show("qemu-x86_64 is not installed (package qemu-user)")
    end = ending_of([emulator, "-cpu", "Nehalem", sys.executable, "-c", "import tensorflow; print('imported')"])
    print(f"import on a Nehalem: {end.how}; AVX mentioned: {'AVX' in end.text}")


if __name__ == "__main__":
    main()
