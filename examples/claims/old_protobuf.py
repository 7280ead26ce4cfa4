"""Claim: a protobuf of the wrong version is a segmentation fault.
Reality: no. One that is too old is an ImportError.
"""

import subprocess
import sys
from importlib.metadata import version

from endings import cannot_show, ending_of

OLD = "3.19.6"


def main():
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--retries", "0", "--timeout", "5"]
    if subprocess.run([*pip, "--target", "old", f"protobuf=={OLD}"], capture_output=True).returncode:
        cannot_show(f"pip cannot fetch protobuf {OLD}")
    end = ending_of([sys.executable, "-c", "import tensorflow"], PYTHONPATH="old")
    print(f"protobuf {OLD}: {end.how}")
    code = "import tensorflow as tf; tf.train.Example().SerializeToString()"
    print(f"protobuf {version('protobuf')}: {ending_of([sys.executable, '-c', code]).how}")


if __name__ == "__main__":
    main()
