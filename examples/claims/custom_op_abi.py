"""Claim: a custom op that was built for another C++ ABI, or another TensorFlow, crashes.
Reality: not today. It is not loaded: NotFoundError, undefined symbol.
"""

import shutil
import subprocess
from pathlib import Path

import tensorflow as tf
from endings import cannot_show

SOURCE = Path(__file__).with_name("custom_op_abi.cc")
OTHER_VERSION = """
namespace tensorflow { void a_function_that_this_version_does_not_have(); }
__attribute__((constructor)) void use() { tensorflow::a_function_that_this_version_does_not_have(); }
"""


def load(source, *flags):
    link = tf.sysconfig.get_link_flags()
    subprocess.run(["g++", "-shared", "-fPIC", "-std=c++17", *flags, "-o", "./op.so", source, *link], check=True)
    try:
        tf.load_op_library("./op.so")
        return "loaded"
    except tf.errors.NotFoundError as error:
        return f"NotFoundError, {'undefined symbol' if 'undefined symbol' in str(error) else error}"


def main():
    if not shutil.which("g++"):
        cannot_show("g++ is not installed")
    Path("other.cc").write_text(OTHER_VERSION)
    print("old C++ ABI:", load(SOURCE, "-D_GLIBCXX_USE_CXX11_ABI=0"))
    print("other version:", load("other.cc"))
    print("right C++ ABI:", load(SOURCE, "-D_GLIBCXX_USE_CXX11_ABI=1"))


if __name__ == "__main__":
    main()
