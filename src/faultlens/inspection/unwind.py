"""Native stacks of any process or core, through the libdw that pystack brings along.

pystack refuses programs without Python in them, and gives up altogether when a single thread cannot be
unwound. libdw itself can do both.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from faultlens.inspection.maps import locate, parse_maps
from faultlens.inspection.symbols import demangle
from faultlens.records.crash import Address, Frame, Mapping
from faultlens.system.procfs import read_text

MAX_FRAMES = 500_000  # a stack overflow has this order of frames, at few different addresses
DWARF_CB_OK, DWARF_CB_ABORT = 0, 1
EV_CURRENT = 1
ELF_C_READ_MMAP = 8

Stacks = dict[int, list[Frame]]  # by thread id, innermost frame first


class UnwindError(Exception):
    """libdw is not there, or cannot make sense of the process or core."""


def unwind_process(pid: int, mappings: Sequence[Mapping]) -> Stacks:
    """Stacks of a process whose threads the calling thread holds in a ptrace stop."""
    with _attached(pid) as (libdw, dwfl):
        return _unwind(libdw, dwfl, mappings)


def addresses_of_thread(pid: int, thread: int, limit: int) -> list[int]:
    """The innermost addresses on one stack of such a process. To look up their names takes a hundred times longer."""
    with _attached(pid) as (libdw, dwfl):
        stack: list[tuple[int, bool]] = []
        libdw.dwfl_getthread_frames(dwfl, thread, _collector(libdw, stack, limit), None)
        return [address for address, _ in stack]


@contextmanager
def _attached(pid: int) -> Iterator[tuple[ctypes.CDLL, int]]:
    libdw = _libdw()
    dwfl = _begin(libdw, "dwfl_linux_proc_find_elf")
    try:
        if libdw.dwfl_linux_proc_report(dwfl, pid) or libdw.dwfl_report_end(dwfl, None, None):
            raise UnwindError(_message(libdw))
        if libdw.dwfl_linux_proc_attach(dwfl, pid, True):
            raise UnwindError(_message(libdw))
        yield libdw, dwfl
    finally:
        libdw.dwfl_end(dwfl)


def unwind_core(core: Path, executable: Path | None, mappings: Sequence[Mapping]) -> Stacks:
    libdw = _libdw()
    file = os.open(core, os.O_RDONLY | os.O_CLOEXEC)
    dwfl = _begin(libdw, "dwfl_build_id_find_elf")
    libdw.elf_version(EV_CURRENT)
    elf = libdw.elf_begin(file, ELF_C_READ_MMAP, None)
    try:
        name = os.fsencode(executable) if executable else None
        if libdw.dwfl_core_file_report(dwfl, elf, name) < 0 or libdw.dwfl_report_end(dwfl, None, None):
            raise UnwindError(_message(libdw))
        if libdw.dwfl_core_file_attach(dwfl, elf) < 0:
            raise UnwindError(_message(libdw))
        return _unwind(libdw, dwfl, mappings)
    finally:
        libdw.dwfl_end(dwfl)
        libdw.elf_end(elf)
        os.close(file)


class _Callbacks(ctypes.Structure):  # Dwfl_Callbacks
    _fields_ = [
        ("find_elf", ctypes.c_void_p),
        ("find_debuginfo", ctypes.c_void_p),
        ("section_address", ctypes.c_void_p),
        ("debuginfo_path", ctypes.c_void_p),
    ]


class _Symbol(ctypes.Structure):  # GElf_Sym
    _fields_ = [
        ("name", ctypes.c_uint32),
        ("info", ctypes.c_uint8),
        ("other", ctypes.c_uint8),
        ("section", ctypes.c_uint16),
        ("value", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    ]


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def _unwind(libdw: ctypes.CDLL, dwfl: int, mappings: Sequence[Mapping]) -> Stacks:
    program_counters: dict[int, list[tuple[int, bool]]] = {}

    def each_thread(thread: int, _: int) -> int:
        stack = program_counters.setdefault(libdw.dwfl_thread_tid(thread), [])
        # Where it fails, the frames before it still count.
        libdw.dwfl_thread_getframes(thread, _collector(libdw, stack, MAX_FRAMES), None)
        return DWARF_CB_OK

    libdw.dwfl_getthreads(dwfl, _CALLBACK(each_thread), None)
    places = {place for stack in program_counters.values() for place in stack}
    frames = {place: _frame(libdw, dwfl, mappings, *place) for place in places}
    return {tid: [frames[place] for place in stack] for tid, stack in program_counters.items()}


def _collector(libdw: ctypes.CDLL, stack: list[tuple[int, bool]], limit: int) -> Any:
    """Notes every frame: its address, and whether that is an instruction that was interrupted."""

    def each_frame(state: int, _: int) -> int:
        address, is_activation = ctypes.c_uint64(), ctypes.c_bool()
        if not libdw.dwfl_frame_pc(state, ctypes.byref(address), ctypes.byref(is_activation)):
            return DWARF_CB_ABORT
        stack.append((address.value, is_activation.value))
        return DWARF_CB_OK if len(stack) < limit else DWARF_CB_ABORT

    return _CALLBACK(each_frame)


def _frame(libdw: ctypes.CDLL, dwfl: int, mappings: Sequence[Mapping], address: int, is_activation: bool) -> Frame:
    place = locate(mappings, address)
    inside = address if is_activation else address - 1  # a return address may belong to the next line
    function, file, line, approximate = "??", None, None, False
    module = libdw.dwfl_addrmodule(dwfl, inside)
    if module:
        offset, symbol, number = ctypes.c_uint64(), _Symbol(), ctypes.c_int()
        name = libdw.dwfl_module_addrinfo(module, inside, ctypes.byref(offset), ctypes.byref(symbol), None, None, None)
        if name:
            function = demangle(name.decode("utf-8", "replace").split("@")[0])
            approximate = offset.value >= max(symbol.size, 1)
        source = libdw.dwfl_module_getsrc(module, inside)
        path = libdw.dwfl_lineinfo(source, None, ctypes.byref(number), None, None, None) if source else None
        if path:
            file, line, approximate = path.decode("utf-8", "replace"), number.value or None, False
    return Frame(
        kind="native",
        function=function,
        file=file,
        line=line,
        library=place.path if place else None,
        address=Address(address),
        offset=Address(place.offset) if place else None,
        approximate=approximate,
    )


def _begin(libdw: ctypes.CDLL, find_elf: str) -> int:
    callbacks = _Callbacks(
        find_elf=_pointer(getattr(libdw, find_elf)),
        find_debuginfo=_pointer(libdw.dwfl_standard_find_debuginfo),
    )
    dwfl = libdw.dwfl_begin(ctypes.byref(callbacks))
    if not dwfl:
        raise UnwindError(_message(libdw))
    _alive[dwfl] = callbacks
    return int(dwfl)


_alive: dict[int, _Callbacks] = {}  # libdw keeps the pointer it is given


def _pointer(function: Callable[..., Any]) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]


def _message(libdw: ctypes.CDLL) -> str:
    return (libdw.dwfl_errmsg(-1) or b"libdw failed").decode("utf-8", "replace")


@cache
def _libdw() -> ctypes.CDLL:
    import pystack.engine  # noqa: F401 - loads the copy of libdw that the wheel carries

    loaded = (mapping.path or "" for mapping in parse_maps(read_text("/proc/self/maps") or ""))
    path = next((path for path in loaded if Path(path).name.startswith("libdw")), "libdw.so.1")
    try:
        libdw = ctypes.CDLL(path)
    except OSError as error:
        raise UnwindError(str(error)) from error
    pointer, text, word = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "dwfl_begin": (pointer, [pointer]),
        "dwfl_end": (None, [pointer]),
        "dwfl_errmsg": (text, [ctypes.c_int]),
        "dwfl_report_end": (ctypes.c_int, [pointer, pointer, pointer]),
        "dwfl_linux_proc_report": (ctypes.c_int, [pointer, ctypes.c_int]),
        "dwfl_linux_proc_attach": (ctypes.c_int, [pointer, ctypes.c_int, ctypes.c_bool]),
        "dwfl_core_file_report": (ctypes.c_int, [pointer, pointer, text]),
        "dwfl_core_file_attach": (ctypes.c_int, [pointer, pointer]),
        "dwfl_getthreads": (ctypes.c_int, [pointer, _CALLBACK, pointer]),
        "dwfl_thread_tid": (ctypes.c_int, [pointer]),
        "dwfl_getthread_frames": (ctypes.c_int, [pointer, ctypes.c_int, _CALLBACK, pointer]),
        "dwfl_thread_getframes": (ctypes.c_int, [pointer, _CALLBACK, pointer]),
        "dwfl_frame_pc": (ctypes.c_bool, [pointer, pointer, pointer]),
        "dwfl_addrmodule": (pointer, [pointer, word]),
        "dwfl_module_addrinfo": (text, [pointer, word, pointer, pointer, pointer, pointer, pointer]),
        "dwfl_module_getsrc": (pointer, [pointer, word]),
        "dwfl_lineinfo": (text, [pointer, pointer, pointer, pointer, pointer, pointer]),
        "elf_version": (ctypes.c_uint, [ctypes.c_uint]),
        "elf_begin": (pointer, [ctypes.c_int, ctypes.c_int, pointer]),
        "elf_end": (ctypes.c_int, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(libdw, name)
        function.restype, function.argtypes = result, arguments
    return libdw
