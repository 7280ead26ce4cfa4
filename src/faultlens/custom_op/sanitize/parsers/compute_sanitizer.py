"""What NVIDIA's compute-sanitizer wrote: the line of the kernel, and those that launched it, Python's among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faultlens.custom_op.sanitize.parsers.python_lines import line_of_program
from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack, bytes_of
from faultlens.records.diagnosis import Location

TOOL = "compute-sanitizer"
_PREFIX = re.compile(r"^========= ?")
_ACCESS = re.compile(r"^Invalid __(\w+)__ (\w+) of size ([\d,]+) bytes")
_UNSET = re.compile(r"^Uninitialized __(\w+)__ memory read of size ([\d,]+) bytes")
_UNSET_FOR_CALL = re.compile(r"Uninitialized access .*on access by (\w+)")
_BARRIER = re.compile(r"^Barrier error detected\. (.*?)\.?$")
_RACE = re.compile(r"^(Error|Warning): Race reported between (\w+) access (at .*)$")
_OTHER_ACCESS = re.compile(r"^and (\w+) access (at .*?)(?: \[[\d,]+ hazards?\])?$")
_LEAK = re.compile(r"^Leaked ([\d,]+) bytes at")
_CALL = re.compile(r'^Program hit (\w+) \(error (\d+)\) due to "(.*)" on CUDA API call to (\w+)')
_NEAREST = re.compile(r"and is (?:([\d,]+) bytes (after|before)|inside) the nearest allocation at \w+ of size ([\d,]+)")
_THREAD = re.compile(r"^by thread (\([\d,]+\)) in block (\([\d,]+\))")
# "at Kernel(int)+0xd0 in /src/op.cu:11"; before 2024: "at 0xd0 in /src/op.cu:11:Kernel(int)". The file may be missing.
_AT = re.compile(r"^at (?P<function>.+?)\+0x[0-9a-f]+(?: in (?P<file>.+):(?P<line>\d+))?$")
_AT_OLDER = re.compile(r"^at 0x[0-9a-f]+ in (?:(?P<file>/.+?):(?P<line>\d+):)?(?P<function>.+)$")
_HOST = re.compile(
    r"^Host Frame: ?(?P<function>.*?)(?: in (?P<file>[^\[]+?):(?P<line>\d+))?"
    r"(?: \[0x[0-9a-f]+\](?: in (?P<module>.+))?)?$"
)
_DEVICE = re.compile(r"^Device Frame: ?(?P<function>.+?)(?:\+0x[0-9a-f]+)?(?: in (?P<file>.+):(?P<line>\d+))?$")
_DEVICE_OLDER = re.compile(r"^Device Frame: ?(?P<file>/.+?):(?P<line>\d+):(?P<function>.+)$")
_OF_CUDA = re.compile(r"^(?:cuda[A-Z]|cu[A-Z]|libcuda|__cuda|__device_stub)")
_ECHOES = ("cudaGetLastError", "cudaPeekAtLastError")
_NO_MEMORY = "cudaErrorMemoryAllocation"
_FATAL = ("gpu-out-of-bounds", "gpu-wild-access", "gpu-misaligned", "gpu-barrier")
_FAR = 1 << 20  # bytes: this far from an allocation nobody counted wrong by a few


class _Record(NamedTuple):
    head: str
    lines: tuple[str, ...]

    def first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return next((found for line in self.lines if (found := pattern.search(line))), None)


def parse(text: str) -> Iterator[Reported]:
    """Errors of calls after a kernel has failed, and memory that is left then, follow from it and are left out."""
    failed = False
    for record in _records(text):
        if reported := _reported(record, failed):
            failed = failed or reported.rule in _FATAL
            yield reported


def _records(text: str) -> Iterator[_Record]:
    """A record begins at the margin; what belongs to it is indented."""
    head, lines = "", list[str]()
    for line in text.splitlines():
        if not _PREFIX.match(line):
            continue  # the program's own
        rest = _PREFIX.sub("", line)
        if rest.startswith(" "):
            if lines and rest.lstrip().startswith("in ") and lines[-1].startswith("Host Frame"):
                lines[-1] += f" {rest.strip()}"  # the library, on a line of its own
            else:
                lines.append(rest.strip())
            continue
        if head:
            yield _Record(head, tuple(lines))
        head, lines = rest.strip(), []
    if head:
        yield _Record(head, tuple(lines))


def _reported(record: _Record, failed: bool) -> Reported | None:
    if found := _ACCESS.match(record.head):
        space, verb, size = found.groups()
        return _in_kernel(record, *_access(record, space, verb, _number(size)))
    if found := _UNSET.match(record.head):
        what = f"read of {bytes_of(_number(found[2]))} of GPU memory that was never written"
        return _in_kernel(record, "gpu-uninitialised", what)
    if record.head.startswith("Host API memory access error") and (found := record.first(_UNSET_FOR_CALL)):
        return _in_call(
            record, "gpu-uninitialised", f"{found[1]} is given GPU memory that was never written", weak=True
        )
    if found := _BARRIER.match(record.head):
        return _in_kernel(record, "gpu-barrier", f"threads do not meet at the barrier: {found[1].lower()}")
    if found := _RACE.match(record.head):
        return _race(record, found)
    if (found := _LEAK.match(record.head)) and not failed:
        return _leak(record, _number(found[1]))
    if (found := _CALL.match(record.head)) and not failed and found[4] not in _ECHOES:
        words = f"{found[4]} fails: {found[3]} ({found[1]})"
        return _in_call(record, "gpu-call-failed", words, weak=found[1] == _NO_MEMORY)
    return None


# ------------------------------------------------------------------------------------------------- kinds


def _access(record: _Record, space: str, verb: str, size: int) -> tuple[str, str]:
    what = f"{verb} of {bytes_of(size)} of {space} GPU memory"
    if any(line.endswith("is misaligned") for line in record.lines):
        return "gpu-misaligned", f"{what} at an address that is not a multiple of {size}"
    nearest = record.first(_NEAREST)
    if not nearest or not nearest[1]:
        return "gpu-out-of-bounds", f"{what} out of bounds"
    distance, side, held = _number(nearest[1]), nearest[2], bytes_of(_number(nearest[3]))
    if distance > _FAR:
        return "gpu-wild-access", f"{what} in no allocation: freed, or computed from what was not checked"
    if side == "before":
        return "gpu-out-of-bounds", f"{what}, {bytes_of(distance)} before the start of an allocation of {held}"
    return "gpu-out-of-bounds", f"{what}, {bytes_of(distance - 1)} past the end of an allocation of {held}"


def _in_kernel(record: _Record, rule: str, words: str) -> Reported:
    kernel = _kernel_frames(record.lines)
    host, called_from = _host_frames(record.lines)
    thread = record.first(_THREAD)
    who = f", by thread {thread[1]} of block {thread[2]}" if thread else ""
    where = " ".join(line for line in record.lines if line.startswith(("Access to", "Address ", "and is")))
    facts = [f"{record.head.rstrip('.')}{who}", *([where] if where else [])]
    others = (Stack("launched here", host),) if host else ()
    return Reported(rule, words, TOOL, kernel, others, tuple(facts), op=_name(kernel), called_from=called_from)


def _in_call(record: _Record, rule: str, words: str, weak: bool = False) -> Reported:
    host, called_from = _host_frames(record.lines)
    return Reported(rule, words, TOOL, host, facts=(record.head,), called_from=called_from, weak=weak)


def _race(record: _Record, found: re.Match[str]) -> Reported | None:
    level, verb, where = found.groups()
    if (place := _at(where)) is None:
        return None
    others = dict[tuple[str, int], Stack]()
    for line in record.lines:
        if (other := _OTHER_ACCESS.match(line)) and (frame := _at(other[2])):
            others.setdefault((frame.file, frame.line), Stack(f"{other[1].lower()} by another thread", (frame,)))
    words = f"{verb.lower()} of shared memory that another thread uses, with no barrier between"
    # What one warp does in step is a warning of the tool's: it holds on some GPUs.
    return Reported(
        "gpu-data-race",
        words,
        TOOL,
        (place,),
        tuple(others.values()),
        (f"{verb} access {where}",),
        op=_name((place,)),
        weak=level == "Warning",
    )


def _leak(record: _Record, size: int) -> Reported | None:
    """Of whoever asked CUDA for it: a pool that keeps memory for others is no leak of theirs."""
    host, called_from = _host_frames(record.lines)
    beyond = tuple(frame for frame in host if not _OF_CUDA.match(frame.function))
    others = (Stack("for this", beyond[1:]),) if beyond[1:] else ()
    words = f"{bytes_of(size)} of GPU memory are never freed"
    return Reported("gpu-leak", words, TOOL, beyond, others, facts=(record.head,), called_from=called_from, weak=True)


# ------------------------------------------------------------------------------------------------ frames


def _kernel_frames(lines: Sequence[str]) -> tuple[Frame, ...]:
    """Innermost first: the line, and the functions of the kernel that lead there."""
    found = [frame for line in lines if (frame := _at(line))]
    for line in lines:
        if place := _DEVICE_OLDER.match(line) or _DEVICE.match(line):
            found.append(_frame(place))
    return tuple(found)


def _at(line: str) -> Frame | None:
    place = _AT.match(line) or _AT_OLDER.match(line)
    return _frame(place) if place else None


def _host_frames(lines: Sequence[str]) -> tuple[tuple[Frame, ...], Location | None]:
    """Native ones, and the line of the program's Python."""
    native, python = list[Frame](), list[Location]()
    for line in lines:
        if not (place := _HOST.match(line)):
            continue
        frame = _frame(place)
        if frame.file.endswith(".py"):
            python.append(Location(frame.file, frame.line, frame.function))
        elif not frame.function.startswith("__device_stub"):
            native.append(frame)
    return tuple(native), line_of_program(python)


def _frame(place: re.Match[str]) -> Frame:
    named = place.groupdict()
    return Frame(named["function"], named["file"] or "", int(named["line"] or 0), module=named.get("module") or "")


def _name(frames: Sequence[Frame]) -> str:
    """Of the kernel, without its arguments."""
    return re.split(r"[(<]", frames[-1].function)[0].split()[-1] if frames else ""


def _number(text: str) -> int:
    return int(text.replace(",", ""))
