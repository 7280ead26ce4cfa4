"""Which lock a thread waits for, and which thread has it: by what the lock itself says, the interpreter, or the source.

A Python lock does not know its holder. The user's lines tell it: who stands within `with lock:`, or behind
`lock.acquire()` and before its release, while another waits for a lock of this name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from faultlens.diagnosis.evidence import traced
from faultlens.inspection.frames import is_main, is_own
from faultlens.inspection.waiting import GIL, PYTHON_LOCK, wait_of
from faultlens.records.crash import Crash, Frame, Lock, Thread

AWAKE = 0.01  # of the time: a thread that ran so much between two looks was not waiting all along
_KINDS = {"mutex": "the mutex", "rwlock": "the lock for readers and writers", "RLock": "the RLock"}


class Blocked(NamedTuple):
    """A thread that waits for a lock."""

    thread: Thread
    lock: str  # "`results_lock`", "the mutex at 0x7f…"
    waits_at: Frame | None  # the user's line
    holder: Thread | None
    taken_at: int | None  # the line that took it
    source: str  # how the holder is known
    same_name: bool = False  # only by a name that may stand for another lock there


def blocked_threads(crash: Crash) -> list[Blocked]:
    by_id = {thread.id: thread for thread in crash.threads}
    found = [_blocked(thread, by_id, crash) for thread in crash.threads if not _woke(thread, crash)]
    return [each for each in found if each is not None]


def deadlock(crash: Crash) -> list[Blocked]:
    """Threads that wait for each other, in this order; one that waits for itself stands alone."""
    blocked = {each.thread.id: each for each in blocked_threads(crash)}
    for first in blocked:
        chain: list[int] = []
        at: int | None = first
        while at in blocked and at not in chain:
            chain.append(at)
            holder = blocked[at].holder
            at = holder.id if holder else None
        if at in chain:
            return [blocked[tid] for tid in chain[chain.index(at) :]]
    return []


def thread_in_words(thread: Thread, crash: Crash) -> str:
    """ "the main thread", "thread 4711 (load_images)"."""
    if is_main(thread, crash):
        return "the main thread"
    entry = [frame for frame in thread.frames if is_own(frame) and frame.kind == "python"]
    name = entry[-1].function if entry else thread.name
    return f"thread {thread.id} ({name})" if name else f"thread {thread.id}"


def lock_lines(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    """What a report has to keep of a source, so that holders can be told from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith) or _called(node) is not None:
            assert isinstance(node, ast.stmt | ast.expr)
            yield node


def _woke(thread: Thread, crash: Crash) -> bool:
    return crash.activity is not None and (thread.cpu or 0.0) > AWAKE * crash.activity.seconds


def _blocked(thread: Thread, by_id: dict[int, Thread], crash: Crash) -> Blocked | None:
    wait = wait_of(thread)
    if wait is None or wait.kind != "lock":
        return None
    own = _own_frames(thread)
    line = own[0] if own else None
    if wait == GIL:
        return Blocked(thread, "the GIL", line, _with_gil(crash, thread), None, "interpreter")
    expression = _waited(line, crash) if line else None
    named = f"`{expression}`" if expression else None
    if thread.lock is not None:
        holder = by_id.get(thread.lock.holder or 0)
        return Blocked(thread, named or _in_words(thread.lock), line, holder, None, f"{thread.lock.kind}'s owner field")
    if wait != PYTHON_LOCK or expression is None or line is None:
        return Blocked(thread, named or wait.what, line, None, None, "")
    holders = _holders(expression, line, crash)
    holder, taken_at = next(iter(holders.values())) if len(holders) == 1 else (None, None)
    return Blocked(thread, f"`{expression}`", line, holder, taken_at, "source", not _is_global(expression, line, crash))


def takers(blocked: Blocked, other: Crash) -> list[Thread]:
    """The threads of another process that hold a lock of the same name."""
    if blocked.waits_at is None or not blocked.lock.startswith("`"):
        return []
    return [holder for holder, _ in _holders(blocked.lock.strip("`"), blocked.waits_at, other).values()]


def _holders(expression: str, line: Frame, crash: Crash) -> dict[int, tuple[Thread, int]]:
    """By their number: the threads within lines that hold the lock, and the line that took it.

    The lock of an object has other names elsewhere: `self.lock` is `stats.lock` to whoever uses the object."""
    held = [(other, frame, _held(frame, crash)) for other in crash.threads for frame in _own_frames(other)]
    found = {
        other.id: (other, taken[expression])
        for other, frame, taken in held
        if frame.file == line.file and expression in taken
    }
    attribute = expression.partition(".")[2]
    if found or not attribute:
        return found
    return {
        other.id: (other, at)
        for other, _, taken in held
        for name, at in taken.items()
        if name.partition(".")[2] == attribute
    }


def _own_frames(thread: Thread) -> list[Frame]:
    return [frame for frame in thread.frames if frame.kind == "python" and is_own(frame) and frame.line]


def _with_gil(crash: Crash, waiter: Thread) -> Thread | None:
    return next((thread for thread in crash.threads if thread.holds_gil and thread is not waiter), None)


def _in_words(lock: Lock) -> str:
    return f"{_KINDS[lock.kind]} at {lock.address:#x}"


# ------------------------------------------------------------------------------------------- the source


def _waited(frame: Frame, crash: Crash) -> str | None:
    """The expression that the line takes a lock of; None where it takes none, or several."""
    found = set()
    for node in _nodes(crash.sources.get(frame.file or "", "")):
        if isinstance(node, ast.With | ast.AsyncWith):
            items = [item.context_expr for item in node.items if item.context_expr.lineno == frame.line]
            found |= {ast.unparse(item) for item in items if _at_column(item, frame) or len(items) == 1}
        elif isinstance(node, ast.Call) and node.lineno == frame.line and (call := _called(node)):
            found |= {call.lock} if call.method == "acquire" else set()
    return found.pop() if len(found) == 1 else None


def _held(frame: Frame, crash: Crash) -> dict[str, int]:
    """The expressions whose locks are held at the line of a frame, if they are locks, and the lines that took them."""
    nodes, line = _nodes(crash.sources.get(frame.file or "", "")), frame.line or 0
    held = _acquired(nodes, line)
    for node in nodes:
        if not isinstance(node, ast.With | ast.AsyncWith) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        taken = len(node.items)
        if (waited := _item_of(node, frame)) is not None:  # they are taken one after the other
            taken = waited
        held |= {ast.unparse(item.context_expr): item.context_expr.lineno for item in node.items[:taken]}
    return held


def _item_of(node: ast.With | ast.AsyncWith, frame: Frame) -> int | None:
    """Which of the locks of a statement the line of a frame takes; None where it stands in the body."""
    here = [at for at, item in enumerate(node.items) if item.context_expr.lineno == frame.line]
    exact = next((at for at in here if _at_column(node.items[at].context_expr, frame)), None)
    if exact is not None:
        return exact
    # The body may stand in the same line. Columns tell, but not before Python 3.11.
    body = node.body[0]
    in_body = body.lineno == frame.line and frame.column is not None and frame.column >= body.col_offset
    return here[0] if here and not in_body else None


def _acquired(nodes: Sequence[ast.AST], line: int) -> dict[str, int]:
    """By calls in the same function, before the line."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def scope(line: int) -> int:
        return max((each.lineno for each in functions if each.lineno <= line <= (each.end_lineno or 0)), default=0)

    held: dict[str, int] = {}
    calls = [(node.lineno, call) for node in nodes if isinstance(node, ast.Call) and (call := _called(node))]
    for at, call in sorted(calls):
        if at < line and scope(at) == scope(line):
            held.pop(call.lock, None)
            if call.method == "acquire":
                held[call.lock] = at
    return held


def _is_global(expression: str, frame: Frame, crash: Crash) -> bool:
    """A name that is no parameter: the same thing wherever it stands in a file."""
    functions = [
        node
        for node in _nodes(crash.sources.get(frame.file or "", ""))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == frame.function
    ]
    parameters = {each.arg for node in functions for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    return expression.isidentifier() and expression not in parameters


class _Call(NamedTuple):
    lock: str
    method: str


def _called(node: ast.AST) -> _Call | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("acquire", "release"):
        return _Call(ast.unparse(node.func.value), node.func.attr)
    return None


def _at_column(expression: ast.expr, frame: Frame) -> bool:
    return frame.column is not None and expression.col_offset == frame.column and expression.lineno == frame.line


@lru_cache(maxsize=16)
def _nodes(text: str) -> Sequence[ast.AST]:
    tree = traced.parse(text)
    return list(ast.walk(tree)) if tree else []
