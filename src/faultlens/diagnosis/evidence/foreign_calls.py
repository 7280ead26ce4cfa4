"""What Python did through ctypes when it died: which foreign function it had called, with what, or none at all.

Told by whose code the frames are, not by their names: a stripped interpreter has hardly any."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence import accesses, call_arguments
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.frames import is_nameless
from faultlens.inspection.owners import is_ctypes, is_ffi, owner_of
from faultlens.records.crash import Frame

_CTYPES_MODULE = re.compile(r"/ctypes/__init__\.py$")
_VARIANT = re.compile(r"^_*([a-z]\w*?)_(?:evex|avx|sse|erms)\w*$")
# Python's own functions that copy what ctypes points them to.
_COPIES_FOR_CTYPES = re.compile(r"^_?Py(?:Bytes|Unicode)_")


def called(case: Case) -> Frame | None:
    """The foreign function that Python called through ctypes, if it is what died: the frame above libffi."""
    stack = case.native_stack
    for index, frame in enumerate(stack):
        if is_ffi(frame) and not _is_callback(stack, index):
            return stack[index - 1] if index else frame
    return None


def died_in_it(case: Case) -> bool:
    """Only the called function and libc's helpers lie above ctypes: it had just been given its arguments."""
    entry = called(case)
    if entry is None:
        return False
    first = next((frame for frame in case.native_stack[:4] if not _helps(frame) and not _inlined(frame, entry)), None)
    return first in (None, entry)


def does_as_told(entry: Frame) -> bool:
    """It uses what Python gave it, and has no bug of its own: libc's functions, and what ctypes brings along."""
    return _helps(entry) or is_ctypes(entry)


def calls_nowhere(case: Case) -> int | None:
    """The address that ctypes itself called, or was about to, where there is no code. libffi has it in r11."""
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or called(case) is None:
        return None
    if fault.access == "execute":
        return fault.address if fault.address == fault.registers.get("r11") else None
    return accesses.jump(fault) if is_ffi(case.native_stack[0]) and accesses.is_wild(fault) else None


def name_of(case: Case) -> str:
    """What people call it: the name of its symbol, else the one that Python's side gives it."""
    entry, python = called(case), next((frame for frame in case.stack if frame.kind == "python"), None)
    if python is not None and _CTYPES_MODULE.search(python.file or ""):
        return python.function  # string_at
    if entry is not None and not is_nameless(entry) and not entry.approximate:
        return plain_name(entry.function)
    if call := call_in_sources(case):
        return call.name
    return f"a function of {PurePosixPath((entry and entry.library) or 'unknown code').name}"


def call_in_sources(case: Case) -> Use | None:
    """The call of the foreign function in the sources, on the line that was being executed."""
    entry, line = called(case), case.location.line if case.location else None
    calls = [use for use in sources_of(case.crash).calls if use.line == line]
    named = (use for use in calls if entry is not None and use.name == plain_name(entry.function))
    return next(named, next((use for use in calls if use.foreign or use.raw), None))


def handed_in(case: Case) -> str | None:
    """The argument register through which the called function got the bad pointer from Python."""
    if case.fault is None or not died_in_it(case):
        return None
    call = call_in_sources(case)
    count = call.arguments if call and call.arguments is not None else len(accesses.ARGUMENT_REGISTERS)
    return accesses.passed_in(case.crash, case.fault, count)


def argument_in(case: Case, register: str | None) -> str | None:
    """What the user's line writes for the argument that goes through this register: "self._handle"."""
    call = call_in_sources(case)
    if call is None or register not in accesses.ARGUMENT_REGISTERS:
        return None
    node = call_arguments.call_of(call.name, case.crash.sources, call.location)
    place = accesses.ARGUMENT_REGISTERS.index(register)
    return call_arguments.text_of(node.args[place]) if node and place < len(node.args) else None


def null_from_python(case: Case) -> bool:
    """The null pointer, or the number in its place, was an argument: by its register or plainly in the sources."""
    if case.fault is None or not died_in_it(case):
        return False
    call, number = call_in_sources(case), case.small_number
    held = {case.fault.registers.get(name) for name in accesses.ARGUMENT_REGISTERS}
    return handed_in(case) is not None or bool(call and call.null) or (number is not None and number in held)


def by_ctypes_itself(case: Case) -> Frame | None:
    """ctypes reads and writes the values of its objects by itself: its frame, if it died there without any call."""
    if any(map(is_ffi, case.native_stack)):
        return None
    for frame in case.native_stack:
        if is_ctypes(frame):
            return frame
        if not _helps(frame):
            return None
    return None


def in_callback(case: Case) -> bool:
    """On the way from the library back into Python; once the Python function runs, its object is alive."""
    stack = case.native_stack
    first = next((index for index, frame in enumerate(stack) if is_ffi(frame)), None)
    return first is not None and any(map(is_ctypes, stack[:first])) and _is_callback(stack, first)


def plain_name(function: str) -> str:
    """The name people know: "__strlen_evex" is strlen, in the variant for this CPU."""
    return _VARIANT.sub(r"\1", function)


def _is_callback(stack: Sequence[Frame], index: int) -> bool:
    """libffi was entered by a library that calls back, and not by ctypes."""
    outside = next((frame for frame in stack[index:] if not is_ffi(frame)), None)
    return outside is not None and not outside.approximate and not is_ctypes(outside)


def _inlined(frame: Frame, entry: Frame) -> bool:
    """What was inlined into a function stands on the stack as a frame of its own."""
    same = frame.library == entry.library
    return same and (is_ctypes(frame) or (frame is not entry and (frame.file or "").endswith(".h")))


def _helps(frame: Frame) -> bool:
    """libc's functions and Python's copying ones do as ctypes tells them."""
    return owner_of(frame) == "system" or bool(_COPIES_FOR_CTYPES.match(frame.function))
