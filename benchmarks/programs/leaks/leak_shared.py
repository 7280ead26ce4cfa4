"""Leak: a block of shared memory for every batch, never closed nor unlinked before the end. /dev/shm."""

from multiprocessing import shared_memory

import clock
import numpy as np

rng = np.random.default_rng(0)
blocks = []
try:
    for _ in clock.steps():
        batch = rng.normal(size=(64, 128))
        block = shared_memory.SharedMemory(create=True, size=batch.nbytes)
        np.ndarray(batch.shape, batch.dtype, buffer=block.buf)[:] = batch
        blocks.append(block)
        np.linalg.svd(np.concatenate([batch] * 12, axis=1) @ rng.normal(size=(1536, 256)))
finally:
    for block in blocks:
        block.unlink()
