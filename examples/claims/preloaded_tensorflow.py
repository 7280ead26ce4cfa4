"""Claim: preloading TensorFlow's own library (a remedy for "cannot allocate memory in static TLS block") is harmless.
Reality: no. With libtensorflow_framework in LD_PRELOAD, Python dies with SIGSEGV in `import hashlib`, most likely
because the BoringSSL inside takes the place of OpenSSL.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from endings import ending_of


def main():
    framework = Path(find_spec("tensorflow").origin).with_name("libtensorflow_framework.so.2")
    for module in ("math", "hashlib"):
        end = ending_of([sys.executable, "-c", f"import {module}"], LD_PRELOAD=str(framework))
        print(f"import {module}: {end.how}")


if __name__ == "__main__":
    main()
