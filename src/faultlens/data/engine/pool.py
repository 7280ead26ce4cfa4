"""Runs workers beside each other, notices when one dies, stands still or takes too much memory, and goes on without the
item it was looking at."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from faultlens.data.decode import Decoding
from faultlens.data.engine.worker import MARK_SIZE, Answer, Mark, Task, receive, send
from faultlens.data.look import Wanted
from faultlens.errors import FaultlensError
from faultlens.fs.state_dir import home
from faultlens.inspection.siginfo import signal_name
from faultlens.records.scan import Checked, Flaw, Kind, Piece, Place
from faultlens.system.machine import machine_state
from faultlens.system.procfs import resident
from faultlens.text.file_names import to_text

AHEAD, AHEAD_BYTES = 32, 64 << 20  # pieces that a worker is given before it asks
MAX_SKIPPED = 20  # items of one piece that readers may die of
PATIENCE_S = 60.0  # without a sign of life
POLL_S, MEMORY_POLL_S = 0.25, 0.5
SHARE_OF_MEMORY = 0.5  # of what is available, for all workers
MIN_MEMORY = 1 << 30
MAX_FALSE_STARTS = 3


class Job(NamedTuple):
    """What is done with every piece."""

    wanted: Wanted = Wanted()
    decoding: Decoding | None = None
    remote: bool = False  # the network is needed
    patience: float = PATIENCE_S
    memory: int = 0  # bytes for each reader; 0: a share of what is there


class Pool:
    def __init__(self, job: Job, count: int) -> None:
        self._job = job
        self._folder = tempfile.mkdtemp(prefix="faultlens-scan-")
        self._memory = job.memory or _memory_each(count)
        self._workers: list[_Worker] = []
        self._count = count
        self._waiting: deque[Piece] = deque()  # taken back from a worker that died
        self._found: dict[tuple[str, int], list[Flaw]] = {}  # of pieces that are begun again
        self._once: set[tuple[str, int, str]] = set()  # items that one reader died of
        self._false_starts = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, pieces: Iterator[Piece]) -> Iterator[Checked]:
        """In the order in which they are finished."""
        more = True
        while True:
            while more and (idle := self._with_room()) is not None:
                piece = self._waiting.popleft() if self._waiting else next(pieces, None)
                if piece is None:
                    more = False
                    break
                idle.give(piece)
            busy = [worker for worker in self._workers if worker.queue]
            if not busy:
                return
            ready, _, _ = select.select([worker.answers for worker in busy], [], [], POLL_S)
            for worker in busy:
                if worker.answers in ready:
                    yield from self._answered(worker)
                elif (problem := worker.problem(self._job.patience, self._memory)) is not None:
                    worker.kill()
                    yield from self._lost(worker, *problem)
            more = more or bool(self._waiting)

    def _with_room(self) -> _Worker | None:
        best = min(self._workers, key=lambda worker: len(worker.queue), default=None)
        if best is not None and (not best.queue or (len(self._workers) == self._count and best.has_room())):
            return best
        if len(self._workers) < self._count:
            self._workers.append(_Worker(self._task()))
            return self._workers[-1]
        return None

    def _task(self) -> Task:
        folder = to_text(self._folder)
        writable = [] if self._job.remote else [folder, to_text(str(_home()))]
        return Task(
            wanted=self._job.wanted,
            decoding=self._job.decoding,
            folder=folder,
            writable=writable,
            parent=os.getpid(),
        )

    def _answered(self, worker: _Worker) -> Iterator[Checked]:
        message = receive(worker.answers_file)
        answer = None
        if message is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                answer = msgspec.msgpack.decode(message, type=Answer)
        if answer is None:
            status = worker.kill()
            how = signal_name(-status) if status < 0 else f"exit status {status}"
            yield from self._lost(worker, "deadly", f"its reader died ({how})")
            return
        if answer.checked is None:
            raise FaultlensError(answer.problem, answer.advice)
        self._false_starts = 0
        yield self._with_earlier(worker.done(), answer.checked)

    def _with_earlier(self, piece: Piece, checked: Checked) -> Checked:
        earlier = self._found.pop((piece.path, piece.start), [])
        if not earlier:
            return checked
        return replace(checked, piece=replace(checked.piece, skip=()), flaws=(*earlier, *checked.flaws))

    def _lost(self, worker: _Worker, kind: Kind, reason: str) -> Iterator[Checked]:
        """The first piece of its queue killed it; the others had not begun."""
        self._workers.remove(worker)
        item = worker.mark.read()[1]
        begun, words = worker.begun(), worker.words()
        worker.close()
        self._false_starts += not begun
        if self._false_starts >= MAX_FALSE_STARTS:
            raise FaultlensError("The processes that check files do not start.", f"The last one said: {words}")
        piece, *others = worker.queue
        self._waiting.extend(others)
        suspect = (piece.path, piece.start, item)
        if not begun or suspect not in self._once:  # anybody may have killed it: the second one is proof
            self._once.add(suspect)
            self._waiting.appendleft(piece)
            return
        record = int(item.split()[1]) if item.startswith("record ") and item.split()[1].isdigit() else None
        flaw = Flaw(
            kind=kind,
            severity="error",
            place=Place(path=piece.path, record=record, member="" if record is not None else item),
            reason=reason,
        )
        self._found.setdefault((piece.path, piece.start), []).append(flaw)
        if item and item not in piece.skip and len(piece.skip) < MAX_SKIPPED:
            self._waiting.appendleft(replace(piece, skip=(*piece.skip, item)))
        else:
            yield self._with_earlier(piece, Checked(piece=piece))


class _Worker:
    def __init__(self, task: Task) -> None:
        answers, theirs = os.pipe()
        shared = os.memfd_create("faultlens-mark")
        os.ftruncate(shared, MARK_SIZE)
        self.mark = Mark(shared)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-B", "-m", "faultlens.data.engine.worker", str(theirs), str(shared)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=(theirs, shared),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
            os.close(shared)
        self.answers = answers
        self.answers_file = os.fdopen(answers, "rb", buffering=0)
        self.queue: deque[Piece] = deque()
        self._queued = 0  # bytes
        self._ticks, self._changed = 0, time.monotonic()
        self._next_look = 0.0
        self._write(msgspec.msgpack.encode(task))

    def has_room(self) -> bool:
        return len(self.queue) < AHEAD and self._queued < AHEAD_BYTES

    def give(self, piece: Piece) -> None:
        if not self.queue:
            self.alive()
        self.queue.append(piece)
        self._queued += piece.end - piece.start
        self._write(msgspec.msgpack.encode(piece))

    def done(self) -> Piece:
        """The first piece of its queue."""
        piece = self.queue.popleft()
        self._queued -= piece.end - piece.start
        self.alive()
        return piece

    def alive(self) -> None:
        self._changed = time.monotonic()

    def begun(self) -> bool:
        return self.mark.read()[0] > 0

    def problem(self, patience: float, memory: int) -> tuple[Kind, str] | None:
        now = time.monotonic()
        ticks = self.mark.read()[0]
        if ticks != self._ticks:
            self._ticks, self._changed = ticks, now
        elif now - self._changed > patience:
            return "endless", f"its reader gave no sign of life for {patience:.0f} s"
        if now > self._next_look:
            self._next_look = now + MEMORY_POLL_S
            if resident(self._process.pid) > memory:
                return "greedy", f"its reader took more than {memory >> 20:,} MiB of memory"
        return None

    def words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "nothing"

    def kill(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def close(self) -> None:
        self.kill()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self.answers_file.close()
        self.mark.close()
        self._said.close()

    def _write(self, message: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its death is seen at its answers
            send(self._process.stdin, message)  # type: ignore[arg-type]


def _memory_each(count: int) -> int:
    available = machine_state().memory_available or 4 << 30
    return max(int(available * SHARE_OF_MEMORY / count), MIN_MEMORY)


def _home() -> Path:
    """Where reports of dead decoders go; Landlock can only name what is there."""
    folder = home()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
