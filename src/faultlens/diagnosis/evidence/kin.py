"""What processes of one program wait for from each other: a pipe that nobody reads, a task that nobody does any more,
items of somebody who is gone."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.diagnosis.evidence.standing import Standing, own_line
from faultlens.inspection.waiting import is_idle_in_pool, wait_of
from faultlens.records.crash import Crash, Thread
from faultlens.records.diagnosis import Fix

_POOL = "the results of a pool"


_MOST_TOLD = 3


class FullPipe(NamedTuple):
    """A process that writes, and whose reader waits for it."""

    writer: Crash
    by_parent: bool  # its parent has the other end open: known, not guessed
    feeds_queue: bool  # of multiprocessing
    by_subprocess: bool  # its parent waits in the module subprocess


def full_pipe(found: Standing) -> FullPipe | None:
    """Of a child that waits for its output to be read, by a parent that waits for it to end."""
    waiter, thread = found.waiter, found.thread
    if waiter is None or thread is None or found.wait is None or found.wait.kind != "output":
        return None
    if waiter.wait is None or waiter.wait.kind != "process":
        return None
    return FullPipe(
        found.process,
        thread.call is not None and waiter.process.pid in thread.call.processes,
        _stands_in(thread, "_feed", "/multiprocessing/queues.py"),
        waiter.thread is not None
        and any((frame.file or "").endswith("/subprocess.py") for frame in waiter.thread.frames),
    )


def lost_task(found: Standing) -> list[Crash]:
    """The workers of a pool whose results are waited for, where all of them are idle and nothing is to be handed out:
    whoever had the task is gone."""
    if found.state != "waiting" or found.wait is None or found.wait.what != _POOL:
        return []
    workers = [child for child in found.process.children if any(map(is_idle_in_pool, child.threads))]
    busy = [child for child in found.process.children if child.threads and child not in workers]
    feeds = any(thread is not found.thread and own_line(thread) for thread in found.process.threads)
    return [] if busy or feeds else workers


def is_replacement(worker: Crash) -> bool:
    """Started by the pool in place of a worker that had ended."""
    return any(_stands_in(thread, "_maintain_pool", "/multiprocessing/pool.py") for thread in worker.threads)


def nobody_writes(found: Standing) -> bool:
    """It reads from a pipe whose other end only it has open itself."""
    call = found.thread.call if found.thread else None
    return call is not None and call.name == "read" and call.processes == (found.process.pid,)


def title_of_kin(found: Standing) -> str | None:
    """None where no other process is to blame."""
    if (pipe := full_pipe(found)) is not None:
        whose = "its parent" if pipe.by_parent else "somebody"
        child = f"child process {pipe.writer.pid}"
        return f"deadlock: {child} waits for {whose} to read what it writes, and its parent waits for its end"
    if nobody_writes(found) and found.wait is not None and found.waiter is None:
        failed = [child for child in found.process.children if not child.was_running]
        who = _end_in_words(failed[0]) if len(failed) == 1 else "no process is left that could send anything"
        return f"no progress: it waits for {found.wait.what}, but {who}"
    if lost_task(found):
        return "no progress: it waits for the results of a pool, and all its workers are idle: a task was lost"
    return None


def facts_of_kin(found: Standing, crash: Crash) -> list[tuple[str, str]]:
    """What is known of the other processes, and how."""
    pipe, workers = full_pipe(found), lost_task(found)
    facts = []
    if pipe is not None and pipe.by_parent:
        facts.append(("the pipe is full, and its parent, which has the other end open, does not read", "/proc/PID/fd"))
    if nobody_writes(found):
        facts.append(("no other process of the program has the other end of the pipe open", "/proc/PID/fd"))
    if workers:
        facts.append((f"all {len(workers)} workers of the pool wait for a task", "child's stack"))
    for worker in workers:
        if is_replacement(worker):
            facts.append((f"worker process {worker.pid} was started in place of one that had ended", "child's stack"))
    told = [] if workers or found.waiter else [child for child in crash.children if child.was_running]
    ended = [child for child in crash.children if not child.was_running]
    facts += [(_child_in_words(child), "child's stack") for child in told[:_MOST_TOLD]]
    return facts + [(_end_in_words(child), "/proc/PID/stat") for child in ended[:_MOST_TOLD]]


def fixes_of_kin(found: Standing) -> tuple[Fix, ...]:
    if (pipe := full_pipe(found)) is not None:
        return _fixes_of_pipe(pipe)
    if lost_task(found):
        return (
            Fix(
                title="look at what ends a worker",
                detail="os._exit(), a crash, a kill: multiprocessing.Pool waits for its result for ever",
            ),
            Fix(
                title="use concurrent.futures.ProcessPoolExecutor",
                detail="it raises BrokenProcessPool when a worker is gone",
                grade="safe",
            ),
        )
    if nobody_writes(found):
        look = Fix(title="look at why the process that sends has ended", detail="its output, its exit code or signal")
        limit = Fix(title="give the wait a time limit", detail="get(timeout=…), and look at is_alive()", grade="safe")
        return look, limit
    return ()


def _fixes_of_pipe(pipe: FullPipe) -> tuple[Fix, ...]:
    if pipe.feeds_queue:
        detail = "get() until the end marker, then join(): a process that has put items waits until they are read"
        return (Fix(title="take everything out of the queue before join()", detail=detail),)
    if pipe.by_subprocess:
        return (
            Fix(
                title="read its output while it runs",
                detail="communicate() or subprocess.run(capture_output=True), not wait()",
            ),
            Fix(title="let nobody have to read it", detail="stdout=subprocess.DEVNULL, or a file"),
        )
    return (Fix(title="read the other end of the pipe before waiting for the child to end"),)


def _child_in_words(child: Crash) -> str:
    """ "child process 7 waits for a mutex in work (line 3)"."""
    thread = child.launching_thread or next(iter(child.threads), None)
    if thread is None:
        return f"of child process {child.pid} no stack could be read"
    wait, line = wait_of(thread), own_line(thread)
    at = f" in {line.function} (line {line.line})" if line else ""
    return f"child process {child.pid} {f'waits for {wait.what}' if wait else 'was running'}{at}"


def _end_in_words(child: Crash) -> str:
    outcome = child.outcome
    how = f"by {outcome.signal}" if outcome.signal else f"with exit code {outcome.exit_code}"
    return f"child process {child.pid} had ended {how}"


def _stands_in(thread: Thread, function: str, file: str) -> bool:
    return any(frame.function == function and (frame.file or "").endswith(file) for frame in thread.frames)
