"""The lock that a thread waits for, read from the memory of a process that stands still, and the thread that has it.

pthread mutexes and locks for readers and writers note the number of the thread that has them, Python's RLock the
identity. A plain Python lock and a semaphore note nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from faultlens.inspection.memory import Memory, read_text, read_u64
from faultlens.records.crash import Address, Lock, Thread

SYS_FUTEX = 202
# struct __pthread_mutex_s: the futex, __count, __owner
MUTEX_OWNER = 8
# struct __pthread_rwlock_arch_t: __readers, __writers, __wrphase_futex, __writers_futex, two pads, __cur_writer
RWLOCK_FUTEXES = (8, 12)
RWLOCK_WRITER = 24
# PyObject: reference count, type; PyTypeObject: its name; rlockobject: what locks it, owner
TYPE = 8
TYPE_NAME = 24
RLOCK_LOCK, RLOCK_OWNER = 16, 24
RLOCK_REACH = 1024  # bytes of the stack in which rlock_acquire keeps its argument

_MUTEX = re.compile(r"^_*(?:GI_+)?pthread_mutex_\w*lock|^std::mutex::lock")
_RWLOCK = re.compile(r"^_*(?:GI_+)?pthread_rwlock_\w*lock")
_RLOCK = re.compile(r"^rlock_acquire|^_thread_RLock_acquire")
_PYTHON_LOCK = re.compile(r"^PyThread_acquire_lock")
_INNERMOST = 12

Registers = Mapping[int, Mapping[str, int]]  # by thread


def with_locks(
    threads: Sequence[Thread], registers: Registers, memory: Memory, numbers: Mapping[int, int]
) -> list[Thread]:
    """`numbers`: what the threads are called here, where they call themselves otherwise."""
    return [replace(thread, lock=_lock(thread, registers, memory, numbers)) for thread in threads]


def _lock(thread: Thread, registers: Registers, memory: Memory, numbers: Mapping[int, int]) -> Lock | None:
    own = registers.get(thread.id, {})
    names = [frame.function for frame in thread.frames[:_INNERMOST] if frame.kind == "native"]
    if any(_RLOCK.search(name) for name in names):
        return _rlock(own, registers, memory)
    if own.get("orig_rax") != SYS_FUTEX:
        return None
    futex = own["rdi"]
    if any(_PYTHON_LOCK.search(name) for name in names):  # of a stripped interpreter no more is known
        return _rlock(own, registers, memory, futex)
    if any(_MUTEX.search(name) for name in names):
        holder = _number(memory, futex + MUTEX_OWNER)
        return Lock(kind="mutex", address=Address(futex), holder=numbers.get(holder, holder) or None)
    if any(_RWLOCK.search(name) for name in names):
        start = next((futex - offset for offset in RWLOCK_FUTEXES if (futex - offset) % 8 == 0), futex)
        holder = _number(memory, start + RWLOCK_WRITER)
        return Lock(kind="rwlock", address=Address(start), holder=numbers.get(holder, holder) or None)
    return None


def _rlock(own: Mapping[str, int], registers: Registers, memory: Memory, futex: int | None = None) -> Lock | None:
    """`futex`: what it must be locked by."""
    for candidate in _pointers(own, memory):
        if futex is not None and read_u64(memory, candidate + RLOCK_LOCK) != futex:
            continue
        kind = read_u64(memory, candidate + TYPE)
        name = read_u64(memory, kind + TYPE_NAME) if kind else None
        if name and read_text(memory, name, 16) == "_thread.RLock":
            owner = read_u64(memory, candidate + RLOCK_OWNER)
            # Python knows threads by the address of what pthreads knows of them, to which fs points.
            holder = next((tid for tid, each in registers.items() if owner and each.get("fs_base") == owner), None)
            return Lock(kind="RLock", address=Address(candidate), holder=holder)
    return None


def _pointers(own: Mapping[str, int], memory: Memory) -> Iterator[int]:
    """What may be pointers to objects: in registers that calls preserve, and on the stack."""
    stack = memory.read(own.get("rsp", 0), RLOCK_REACH)
    words = [int.from_bytes(stack[at : at + 8], "little") for at in range(0, len(stack) - 7, 8)]
    kept = [own[name] for name in ("rbx", "rbp", "r12", "r13", "r14", "r15") if name in own]
    yield from dict.fromkeys(word for word in (*kept, *words) if word >= 1 << 16 and word % 8 == 0)


def _number(memory: Memory, address: int) -> int:
    """0 for nobody."""
    return int.from_bytes(memory.read(address, 4), "little")
