"""Which native code outside of TensorFlow, NumPy and Python is to blame, and how Python came to call it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from faultlens.diagnosis.evidence import foreign_calls, messages
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.custom_ops import loaded_ops, named_after
from faultlens.diagnosis.evidence.kernels import user_op
from faultlens.diagnosis.evidence.ops import kernel_op
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.inspection.frames import is_kernel, is_main, is_nameless, package_of, short_function, without_dying
from faultlens.inspection.owners import owner_of
from faultlens.knowledge.carriers import is_carrier
from faultlens.records.crash import Frame, Thread

_EXTENSION = re.compile(r"\.(?:cpython-[^.]*|abi3|pypy[^.]*)\.so$")
_HEAP_FUNCTIONS = re.compile(
    r"^(?:_int_\w*(?:malloc|free|realloc|memalign)|malloc\w*|__libc_(?:malloc|free|realloc|calloc|memalign)|c?free|calloc"
    r"|realloc|unlink_chunk|tcache_\w+|sysmalloc|systrim|munmap_chunk|aligned_alloc|posix_memalign|__libc_freeres)\b"
)
_OBJECT_CODE = re.compile(
    r"dealloc|DECREF|decref|_traverse|visit_|gc_|_Py_Dealloc|GC_|PyObject_(?:GetAttr|IS_GC|Repr|Str|Call|Hash|RichCompare)"
    r"|_PyObject_\w+|Py_TYPE|subtype_|PyObject_\w+|update_refs|subtract_refs|PyType_|_PyType_"
)
_HEADERS = re.compile(r"^(?:std::|__gthread_|__gnu_cxx::|void std::)")
_WITHIN_HEAP = 4  # frames
_WITHIN_DEATH = 24
# Waiting on purpose; waiting for the allocator's lock is work.
_WAITS = re.compile(r"pthread_mutex_|cond_(?:timed)?wait|nanosleep|join|poll|sem_wait|std::mutex|Mutex")
_PARALLEL = re.compile(r"Parallel(?:Map|Interleave|Filter|Batch)\w*DatasetOp|MapAndBatchDatasetOp")
_CONTAINER = re.compile(
    r"std::(?:__detail::)?(?:_Hashtable|_Rb_tree|_List|list<|map<|set<|unordered_|deque<|_Map_base)"
    r"|std::vector<.*>::(?:push_back|emplace_back|insert|resize|_M_)"
)
# Containers that grow: nobody else may touch them meanwhile.
_GROWS = r"_M_realloc_(?:insert|append)|::emplace_back|::push_back|_M_insert_|_Rb_tree<|_Hashtable<"
_SHARED_OUT = r"[pP]arallelFor|\bShard\w*\("
# What containers throw when their size is absurd, or was spoiled.
SIZE_ERRORS = ("std::bad_alloc", "std::bad_array_new_length", "std::length_error")


def suspect(case: Case) -> Frame | None:
    """The innermost frame of code that the user built or installed, if what died was done on its behalf.

    A package must have died itself; below code of the user's own, Python's and TensorFlow's helpers may have."""
    for frame in case.native_stack:
        owner = owner_of(frame)
        if owner == "custom":
            return frame
        if owner == "package":
            return frame if frame is case.culprit else None
        if owner == "tensorflow" and is_kernel(frame):
            return None
    return None


def author(case: Case, frame: Frame) -> Frame:
    """The code that a person wrote: what headers of the C++ library compile into a library is its caller's doing."""
    at = case.native_stack.index(frame) if frame in case.native_stack else 0
    below = (each for each in case.native_stack[at:] if each.library == frame.library)
    written = (each for each in below if not _HEADERS.search(each.function) and "/include/" not in (each.file or ""))
    found = next(written, frame)
    call = foreign_calls.call_in_sources(case) if found is foreign_calls.called(case) else None
    # A call that does not return may be the last instruction: what is returned to is then the next function.
    return replace(found, function=call.name) if call and call.foreign else found


def dies(case: Case, pattern: str) -> Frame | None:
    """The function that destroys an object, among those that led to the end."""
    expression = re.compile(pattern)
    return next((frame for frame in case.native_stack[:_WITHIN_DEATH] if expression.search(frame.function)), None)


def written_by(case: Case, frame: Frame) -> Frame:
    """The function that a person wrote: what the headers of the C++ library compile into it is its doing."""
    at = case.native_stack.index(frame) if frame in case.native_stack else None
    below = case.native_stack[at:] if at is not None else ()
    own = (each for each in below if each.library == frame.library and not _HEADERS.search(each.function))
    return next((each for each in own if "/include/" not in (each.file or "")), frame)


def suspect_in(frames: Sequence[Frame]) -> Frame | None:
    """The code outside of the runtimes that these frames begin in, if it is the user's or a package's."""
    first = next((frame for frame in without_dying(frames) if owner_of(frame) != "system"), None)
    return first if first is not None and owner_of(first) in ("custom", "package") else None


def place(frame: Frame) -> str:
    """ "MyGatherOp::Compute of op.so (op.cc:8)"."""
    source = f" ({PurePosixPath(frame.file).name}:{frame.line})" if frame.file and frame.line else ""
    name = "code" if is_nameless(frame) else short_function(frame.function)
    return f"{name} of {library_of(frame)}{source}"


def library_of(frame: Frame) -> str:
    name = PurePosixPath(frame.library or "unknown code").name
    return f"{name} (package {package_of(frame)})" if owner_of(frame) == "package" else name


def op_of(case: Case) -> str | None:
    """The custom op: the one at work, or the ones that the sources load when the crash came later."""
    thrown = case.thrown.frames if case.thrown else ()
    custom = [frame for frame in (*case.native_stack, *thrown) if owner_of(frame) == "custom"]
    ops = loaded_ops(case.crash)
    if case.kernel is not None and custom and not is_carrier(case.kernel.op):
        return user_op(case.kernel)
    if case.op in ops:
        return case.op
    # Kernels are named after their ops, more or less: "LookupKernel::Compute".
    called = (op for frame in custom for op in ops if frame.function.startswith(op))
    if kernel := next(called, None) or kernel_op(custom):
        return named_after(kernel, ops) or (ops[0] if len(ops) == 1 else kernel)
    if suspect(case) is not None:
        at_work = any(owner_of(frame) == "tensorflow" for frame in case.stack)
        return case.op if at_work else None
    return " or ".join(loaded_ops(case.crash)[:3]) or None


def is_op(case: Case) -> bool:
    """The custom code is an op: one of its kernels is on the stack, or the sources load it as one."""
    custom = [frame for frame in case.native_stack if owner_of(frame) == "custom"]
    return bool(loaded_ops(case.crash)) or kernel_op(custom) is not None


def reports_errors(case: Case) -> str:
    """How such code tells Python that something is wrong."""
    if is_op(case):
        return "OP_REQUIRES in the op"
    if extensions(case):
        return "a Python exception: PyErr_SetString, and return NULL"
    return "a return value that Python checks"


def extensions(case: Case) -> tuple[str, ...]:
    """Custom libraries that are Python modules: only these handle references and the GIL."""
    imported = {name.rpartition(".")[2] for name in sources_of(case.crash).imports}
    return tuple(
        path
        for path in case.custom_libraries
        if _EXTENSION.search(path) or PurePosixPath(path).name.partition(".")[0] in imported
    )


def named(paths: Sequence[str]) -> str:
    return ", ".join(PurePosixPath(path).name for path in paths[:3])


def in_heap_code(case: Case) -> Frame | None:
    """The allocator at work, if it is what died."""
    named = 0
    for frame in case.stack:
        named += not is_nameless(frame)  # without its debug symbols libc's inner functions have no names
        if owner_of(frame) != "system" or named > _WITHIN_HEAP:
            return None
        if _HEAP_FUNCTIONS.match(frame.function):
            return frame
    return None


def heap_damage(case: Case) -> bool:
    """The allocator found its blocks damaged, or died over them: the damage is older than that."""
    if case.signal == "SIGABRT":
        return any(case.said(words) for words in (messages.HEAP_OVERFLOW, messages.INVALID_FREE, messages.DOUBLE_FREE))
    return case.signal in ("SIGSEGV", "SIGBUS") and not case.is_null and in_heap_code(case) is not None


def in_object_code(case: Case) -> Frame | None:
    """Python's handling of an object, if it is what died: its memory was not an object any more.

    These are the functions that have no name in a stripped interpreter."""
    for frame in case.native_stack[:3]:
        if owner_of(frame) == "python" and (_OBJECT_CODE.search(frame.function) or is_nameless(frame)):
            return frame
        if owner_of(frame) not in ("python", "unknown", "system"):
            return None
    return None


def holds_gil(case: Case) -> bool:
    thread = case.crash.crashed_thread
    return thread is not None and thread.holds_gil is True


def others_inside(case: Case, frame: Frame) -> tuple[Thread, ...]:
    """Other threads that work in the same function of the same library; not if they die of the very same access."""
    fault = case.fault
    if case.calls(_SHARED_OUT) and not case.calls(_GROWS):  # each thread has its own part of the work
        return ()
    if fault and any(other.address == fault.address and fault.address is not None for other in case.crash.also_faulted):
        return ()
    custom = {_key(each) for each in case.native_stack if each.library == frame.library}
    return tuple(
        thread
        for thread in case.crash.threads
        if not thread.crashed
        and any(_key(each) in custom for each in thread.frames if each.kind == "native")
        and not any(_WAITS.search(each.function) for each in thread.frames[:6])
    )


def on_started_thread(case: Case) -> bool:
    """It died on a thread that the sources start to run this very function: others run it as well."""
    thread, entry = case.crash.crashed_thread, foreign_calls.called(case)
    if thread is None or is_main(thread, case.crash):
        return False
    functions = {entry.function} if entry else set()
    functions |= {frame.function for frame in thread.frames if frame.kind == "python"}
    return bool(functions & sources_of(case.crash).thread_targets)


def run_in_parallel(case: Case) -> bool:
    """TensorFlow ran the custom op on several threads: the one object of its kernel, with all its members."""
    thread = case.crash.crashed_thread
    if thread is None or is_main(thread, case.crash) or not is_op(case):
        return False
    frames = (frame.function for each in case.crash.threads for frame in each.frames)
    return sources_of(case.crash).parallel is not None or any(_PARALLEL.search(function) for function in frames)


def in_container(case: Case) -> Frame | None:
    """A container of the C++ library that died over its own nodes: nobody's index leads there."""
    for frame in case.native_stack[:_WITHIN_DEATH]:
        if _CONTAINER.search(frame.function):
            return frame
        if not _HEADERS.search(frame.function) and owner_of(frame) != "system":
            return None
    return None


def on_other_threads(case: Case) -> bool:
    """Custom code is at work, or waits for its own threads, elsewhere than where the process died."""
    others = (thread for thread in case.crash.threads if not thread.crashed)
    return any(owner_of(frame) == "custom" for thread in others for frame in thread.frames)


def on_own_thread(case: Case) -> bool:
    """It died on a thread that the custom code had started for itself."""
    thread = case.crash.crashed_thread
    frames = thread.frames if thread and not is_main(thread, case.crash) else ()
    outermost = next((frame for frame in reversed(frames) if owner_of(frame) != "system"), None)
    return outermost is not None and owner_of(outermost) == "custom"


def _key(frame: Frame) -> tuple[str | None, str]:
    return frame.library, frame.function
