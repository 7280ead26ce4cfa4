"""What a TensorFlow program needs of the machine: below these values it was seen to fail.

Measured by `benchmarks/needs.py` on TensorFlow 2.12 to 2.21; the least that any of them needs stands here. How it ended
below is told in docs/needs.md. "Importing" is `import tensorflow`, "training" a `fit` of a small model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from faultlens.text.sizes import KIB, MIB

# How many threads the pools have is set by these, else by the number of CPUs.
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
INTRA_VARIABLE, INTER_VARIABLE = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
MOST_BLAS_THREADS = 64  # OpenBLAS in NumPy's wheels is built for so many
KERAS_3 = (2, 16)  # the first TensorFlow with it

Version = tuple[int, int]  # of TensorFlow; where it is not known, the least that any needs is taken


class Need(NamedTuple):
    importing: int
    training: int


MEMORY = Need(importing=168 * MIB, training=195 * MIB)  # less is an out-of-memory kill
STACK = Need(importing=84 * KIB, training=84 * KIB)  # RLIMIT_STACK: less is a SIGSEGV without a word
OPEN_FILES = Need(importing=5, training=5)
INTERLEAVED_FILES = 16
OPEN_FILES_INTERLEAVED = 49  # for a pipeline that reads 16 files at once
# RLIMIT_CPU, of all threads together. The import took 2 s at least: with 2 s it came through now and then, with 1 s
# never. How long training takes is not known beforehand; with less than a minute little is trained.
CPU_SECONDS = Need(importing=2, training=60)
CPU_SECONDS_SEEN = 4  # an import and a small training, of TensorFlow 2.21
MAPS = Need(importing=883, training=1095)  # entries of /proc/PID/maps: seen, not a limit that was tried

# Batches of 32 float32 pictures of 224 x 224 x 3: what a loader with so many worker processes holds in /dev/shm.
SHARED_BY_ONE_WORKER = 56 * MIB
SHARED_BY_TWO_WORKERS = 96 * MIB

# What saving a model of a million parameters takes of a disk, with the state of Adam.
SAVED = 12_000_000
SAVED_FILES = 7  # a SavedModel has most

# Without what the threads map; the row of the newest version that is not newer than the one installed.
_ADDRESS_SPACE = {
    (0, 0): Need(importing=620 * MIB, training=1220 * MIB),
    (2, 16): Need(importing=700 * MIB, training=1480 * MIB),
    (2, 21): Need(importing=880 * MIB, training=1750 * MIB),
}
_DATA = {
    (0, 0): Need(importing=139 * MIB, training=155 * MIB),
    (2, 21): Need(importing=163 * MIB, training=190 * MIB),
}
_BLAS_BUFFER = 32 * MIB  # OpenBLAS maps one for each of its threads


class Threads(NamedTuple):
    """How many threads there are at once. Where they cannot be started, OpenBLAS goes on without, TensorFlow aborts."""

    blas: int  # OpenBLAS', the main thread among them
    compute: int  # TensorFlow's own pools, from the first op on
    training: int  # those of tf.data and of the graph optimiser, while a model is trained

    @property
    def to_compute(self) -> int:
        return self.blas + self.compute

    @property
    def to_train(self) -> int:
        return self.blas + self.compute + self.training


def threads(cpus: int, variables: Mapping[str, str], version: Version | None) -> Threads:
    """While a small model is trained with `fit` for two epochs: the second begins before the first is cleared away."""
    keras_3 = version is not None and version >= KERAS_3
    return Threads(
        blas=_set(variables, *BLAS_VARIABLES) or min(cpus, MOST_BLAS_THREADS),
        compute=(_set(variables, INTRA_VARIABLE) or cpus) + (_set(variables, INTER_VARIABLE) or cpus) + 1,
        training=3 * cpus + 6 if keras_3 else cpus + 4,
    )


def address_space(running: Threads, stack: int, version: Version | None) -> Need:
    """RLIMIT_AS."""
    return _with_threads(_ADDRESS_SPACE, running, stack, version)


def data(running: Threads, stack: int, version: Version | None) -> Need:
    """RLIMIT_DATA: private memory that may be written, used or not."""
    return _with_threads(_DATA, running, stack, version)


def _with_threads(rows: Mapping[Version, Need], running: Threads, stack: int, version: Version | None) -> Need:
    """Each thread maps its stack."""
    need = rows[max(row for row in rows if row <= (version or (0, 0)))]
    buffers = running.blas * _BLAS_BUFFER
    return Need(
        importing=need.importing + buffers + running.blas * stack,
        training=need.training + buffers + running.to_train * stack,
    )


def _set(variables: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if (text := variables.get(name, "").strip()).isdigit() and int(text) > 0:
            return int(text)
    return None
