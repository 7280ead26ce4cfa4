"""Has the pieces checked on a Ray cluster: the same workers, started by the tasks on its nodes.

The files must bear the same names on every node: a shared file system, or addresses that fsspec knows."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from typing import Any

import msgspec

from faultlens.data.engine.pool import Job, Pool
from faultlens.errors import FaultlensError
from faultlens.records.scan import Checked, Flaw, Piece, Place

TASK_BYTES, TASK_PIECES = 1 << 30, 256  # of one task
MAX_TRIES = 10  # nodes may be lost again and again
AHEAD = 2  # tasks for each CPU

_pools: dict[bytes, Pool] = {}


def work(batch: bytes, job: bytes) -> bytes:
    """Runs on a node. Its worker stays for the next task."""
    if job not in _pools:
        for pool in _pools.values():
            pool.__exit__()
        _pools.clear()
        _pools[job] = Pool(msgspec.msgpack.decode(job, type=Job), 1)
        atexit.register(_pools[job].__exit__)
    pieces = msgspec.msgpack.decode(batch, type=list[Piece])
    return msgspec.msgpack.encode(list(_pools[job].run(iter(pieces))))


class RayEngine:
    name = "ray"

    def __init__(self, address: str | None = None, pieces: int = TASK_PIECES) -> None:
        """`pieces`: of one task, at most."""
        self._address, self._pieces = address, pieces

    def run(self, pieces: Iterator[Piece], job: Job) -> Iterator[Checked]:
        ray = _ray()
        if not ray.is_initialized():
            try:
                ray.init(address=self._address, log_to_driver=False, logging_level="error", include_dashboard=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise FaultlensError(f"No Ray cluster can be reached: {error}.", "Name one with --address.") from error
        task = ray.remote(num_cpus=1, max_retries=MAX_TRIES)(work)
        told = msgspec.msgpack.encode(job)
        batches, running = _batches(pieces, self._pieces), dict[Any, tuple[list[Piece], int]]()
        again: list[tuple[list[Piece], int]] = []
        while True:
            while len(running) < AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1):
                batch, tries = again.pop() if again else (next(batches, None), 0)
                if batch is None:
                    break
                running[task.remote(msgspec.msgpack.encode(batch), told)] = batch, tries
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                batch, tries = running.pop(reference)
                try:
                    yield from msgspec.msgpack.decode(ray.get(reference), type=list[Checked])
                except ray.exceptions.RayTaskError as error:
                    cause = error.cause if isinstance(getattr(error, "cause", None), FaultlensError) else None
                    raise cause or FaultlensError(f"A task failed on the cluster: {error}") from error
                except ray.exceptions.RayError as error:  # its node was lost
                    if tries >= MAX_TRIES:
                        yield from (_given_up(piece, error) for piece in batch)
                    else:
                        again.append((batch, tries + 1))


def _batches(pieces: Iterator[Piece], most: int) -> Iterator[list[Piece]]:
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += piece.end - piece.start
        if size >= TASK_BYTES or len(batch) >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _given_up(piece: Piece, error: Exception) -> Checked:
    reason = f"every node that was to check it was lost ({type(error).__name__})"
    flaw = Flaw(kind="unsupported", severity="error", place=Place(path=piece.path, offset=piece.start), reason=reason)
    return Checked(piece=piece, flaws=(flaw,))


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise FaultlensError(
            "The Python of faultlens has no Ray.", "Install it: pip install 'faultlens[ray]'."
        ) from error
    return ray
