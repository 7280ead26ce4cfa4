"""Claim: under `ulimit -v` a program that needs too much memory gets a MemoryError.
Reality: no. One cause has five endings: ResourceExhaustedError, ImportError, SIGSEGV while a C++ exception is turned
into a Python one, abort on std::bad_alloc, abort because no thread can be started.
"""

import resource
import sys
from pathlib import Path

import tensorflow as tf
from endings import ending, ending_of

MIB = 1 << 20


def allow(megabytes):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + megabytes * MIB,) * 2)


def one_large_tensor():
    tf.ones([1000, 1000])
    allow(300)
    tf.ones([12_000, 12_000])


def many_tensors():
    kept = [tf.random.normal([1000, 1000])]
    allow(100)
    while True:
        kept.append(tf.random.normal([1000, 1000]))


def many_strings():
    kept = [tf.strings.as_string(tf.range(200_000), width=60)]
    allow(100)
    while True:
        kept.append(tf.strings.as_string(tf.range(200_000), width=60))


def thread_pools():
    allow(20)
    tf.random.normal([1000, 1000])


def main():
    for job in (one_large_tensor, many_tensors, many_strings, thread_pools):
        end = ending(job)
        text = "bad_alloc" if "bad_alloc" in end.text else "pthread_create" if "pthread_create" in end.text else ""
        print(f"{job.__name__}: {end.how} {text}".strip())
    end = ending_of(["prlimit", f"--as={600 * MIB}", sys.executable, "-c", "import tensorflow"])
    print("import_tensorflow:", end.how)


if __name__ == "__main__":
    main()
