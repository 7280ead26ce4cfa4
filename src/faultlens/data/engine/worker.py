"""The process that checks pieces: `python -m faultlens.data.engine.worker`. Another takes over if it dies of one.

Pieces come in on stdin, what was found goes out on a descriptor of its own; what is being looked at stands in shared
memory, so that it is known when this process is not there any more to say it."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import tempfile
from typing import BinaryIO

import msgspec

from faultlens.data.decode import Decoder, Decoding
from faultlens.data.engine.checking import Signs, check
from faultlens.data.look import Wanted
from faultlens.errors import FaultlensError
from faultlens.records.scan import Checked, Piece
from faultlens.sandbox.guest import confinement, namespaces
from faultlens.system import own_process
from faultlens.text.file_names import to_name

MARK_SIZE = 4096
_TICKS, _LENGTH = struct.Struct("<Q"), struct.Struct("<I")
_TEXT = _TICKS.size + _LENGTH.size
_FRAME = struct.Struct("<Q")
MAX_MESSAGE = 1 << 30
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",  # no code is loaded because a file asks for it
    "HDF5_USE_FILE_LOCKING": "FALSE",
}


class Task(msgspec.Struct, frozen=True):
    """What a worker is for. Paths are texts: see `text/file_names.py`."""

    wanted: Wanted
    decoding: Decoding | None
    folder: str  # for temporary files; the parent removes it
    writable: list[str]
    parent: int


class Answer(msgspec.Struct, frozen=True):
    checked: Checked | None = None
    problem: str = ""  # nothing can be checked at all
    advice: str = ""


class Mark:
    """Signs of life in shared memory: a counter, and what is being looked at."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, MARK_SIZE)
        self._ticks = 0

    def tick(self) -> None:
        self._ticks += 1
        _TICKS.pack_into(self._memory, 0, self._ticks)

    def at(self, item: str) -> None:
        text = item.encode("utf-8", "surrogateescape")[: MARK_SIZE - _TEXT]
        _LENGTH.pack_into(self._memory, _TICKS.size, len(text))
        self._memory[_TEXT : _TEXT + len(text)] = text
        self.tick()

    def read(self) -> tuple[int, str]:
        (ticks,) = _TICKS.unpack_from(self._memory, 0)
        (length,) = _LENGTH.unpack_from(self._memory, _TICKS.size)
        text = self._memory[_TEXT : _TEXT + min(length, MARK_SIZE - _TEXT)]
        return ticks, text.decode("utf-8", "surrogateescape")

    def close(self) -> None:
        self._memory.close()


def send(file: BinaryIO, message: bytes) -> None:
    file.write(_FRAME.pack(len(message)) + message)
    file.flush()


def receive(file: BinaryIO) -> bytes | None:
    """None at the end."""
    head = _read(file, _FRAME.size)
    if len(head) < _FRAME.size:
        return None
    (size,) = _FRAME.unpack(head)
    if size > MAX_MESSAGE:
        return None
    message = _read(file, size)
    return message if len(message) == size else None


def _read(file: BinaryIO, size: int) -> bytes:
    """A pipe without a buffer gives what is in it, which is less than a long message."""
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main() -> None:
    answers, mark = os.fdopen(int(sys.argv[1]), "wb"), Mark(int(sys.argv[2]))
    asked = sys.stdin.buffer
    first = receive(asked)
    if first is None:
        return
    task = msgspec.msgpack.decode(first, type=Task)
    users = dict(os.environ)
    _settle(task)
    signs = Signs(mark.at, mark.tick)
    decoder = None
    try:
        if task.decoding is not None:
            decoder = Decoder(task.decoding, users, mark.tick).__enter__()
        while (message := receive(asked)) is not None:
            piece = msgspec.msgpack.decode(message, type=Piece)
            mark.at("")
            answer = Answer(checked=check(piece, task.wanted, signs, decoder))
            send(answers, msgspec.msgpack.encode(answer))
    except FaultlensError as error:
        send(answers, msgspec.msgpack.encode(Answer(problem=error.problem, advice=error.advice)))
    finally:
        if decoder is not None:
            decoder.__exit__(None, None, None)


def _settle(task: Task) -> None:
    """Ends with its parent, prints nothing, writes nowhere else, and is the first to go when memory is short."""
    own_process.die_with_parent()
    if os.getppid() != task.parent:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # our parent decides what an interruption means
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.environ.update(SETTINGS)
    tempfile.tempdir = to_name(task.folder)
    own_process.killed_first()
    if task.writable:
        _confine([to_name(path) for path in task.writable], task.decoding is not None)


def _confine(writable: list[str], decodes: bool) -> None:
    """Landlock and filters would keep a decoder from having namespaces of its own: then ours have to do."""
    if decodes and confinement.available().mounts:
        namespaces.enter(writable)
        own_process.die_with_parent()  # a new user has forgotten it
        confinement.available.cache_clear()
    else:
        means = confinement.without_namespaces()
        confinement.confine(means._replace(seccomp=means.seccomp and not decodes), writable)


if __name__ == "__main__":
    main()
