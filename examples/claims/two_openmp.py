"""Claim: two OpenMP runtimes in one process are harmless once KMP_DUPLICATE_LIB_OK=TRUE is set.
Reality: half true. Two copies of libomp abort with "OMP: Error #15"; with the variable the work gets done, and what
is seen here of the exit is printed, because hangs at exit have been measured too.
"""

import ctypes
import os
import shutil

import tensorflow as tf
from endings import ending, library


def use_both():
    tf.reduce_sum(tf.ones([3]))
    work = ctypes.CDLL(None).time  # any C function that takes a null pointer
    for folder in ("a", "b"):
        ctypes.CDLL(f"./{folder}/libomp.so.5").GOMP_parallel(work, None, 2, 0)  # what "#pragma omp parallel" becomes
    print("work done", flush=True)


def use_both_allowed():
    os.environ["KMP_DUPLICATE_LIB_OK"] = "TRUE"
    use_both()


def main():
    for folder in ("a", "b"):
        os.mkdir(folder)
        shutil.copy(library("libomp.so.5"), folder)
    for job in (use_both, use_both_allowed):
        end = ending(job, seconds=5)
        print(f"{job.__name__}: {end.how}; Error #15: {'OMP: Error #15' in end.text}; done: {'work done' in end.text}")


if __name__ == "__main__":
    main()
