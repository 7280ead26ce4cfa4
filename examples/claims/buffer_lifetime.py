"""Claim: memory that was freed behind a tensor or an array crashes.
Reality: half true. SIGSEGV when the pages are gone, but silent when the hole has been filled again; and memory that is
only not aligned aborts.
"""

import ctypes
import mmap

import numpy as np
import tensorflow as tf
from endings import ending

COUNT = 16 << 20  # large enough that free() gives the pages back
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def c_array(count):
    address = libc.malloc(count * 4)
    array = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), shape=(count,))
    array[:] = 1
    return address, array


def ctypes_freed():
    address, array = c_array(COUNT)
    libc.free(address)
    print(array.sum())


def ctypes_freed_and_filled():
    address, array = c_array(COUNT)
    libc.free(address)
    c_array(COUNT)[1][:] = 5
    print("the sum is", float(tf.reduce_sum(tf.constant(array))) / COUNT, "times the right one")


def dlpack_freed():
    address, array = c_array(COUNT)
    shift = -address % 64 // 4  # from_dlpack wants it aligned
    tensor = tf.experimental.dlpack.from_dlpack(array[shift:].__dlpack__())
    libc.free(address)
    tf.reduce_sum(tensor)


def frombuffer_unmapped():
    pages = mmap.mmap(-1, 4 * COUNT)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    array = np.frombuffer(pages, "float32")
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(4 * COUNT))  # what a C library does that owns the pages
    print(array.sum())


def dlpack_unaligned():
    numbers = np.arange(257, dtype="float32")
    tensor = tf.experimental.dlpack.from_dlpack(numbers[1 if numbers.ctypes.data % 64 == 0 else 0 :][:256].__dlpack__())
    block = tf.reshape(tensor, [16, 16])
    tf.matmul(block, block)


def main():
    for job in (ctypes_freed, ctypes_freed_and_filled, dlpack_freed, frombuffer_unmapped, dlpack_unaligned):
        end = ending(job)
        said = [line for line in end.text.splitlines() if line.startswith("the sum")]
        print(f"{job.__name__}: {end.how}", *said, *["IsAligned"] * ("IsAligned" in end.text))


if __name__ == "__main__":
    main()
