"""Why a call died, from what it left behind alone: the signal, the last message, and what a debugger saw.

Nothing here knows faultlens: a truth that was found by the rules that it measures would prove nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

NULL_PAGE = 0x1000
FAR = 0x10000  # no field of a null object is that far away
NEAR_STACK = 0x10000
SECONDS = 120
NULL, OUTSIDE = "op-null-dereference", "op-out-of-bounds"
_CHECK = re.compile(r"^F\S* .*?(\w+\.(?:cc|h|cpp)):\d+\] (.*)", re.MULTILINE)
_OPTIMISERS = re.compile(r"mkl_layout_pass|remapper|constant_folding|layout_optimizer|hlo_|xla_|mlir|shape_util")
_THROWN = re.compile(r"terminate called after throwing an instance of '([^']+)'")
_TOO_MUCH = ("bad_alloc", "length_error", "vector::reserve", "Hash table size overflow", "_M_default_append")
_HEAP = ("free(): ", "malloc(): ", "malloc_consolidate", "corrupted", "double free", "munmap_chunk", "realloc(): ")
_EMPTY = re.compile(r"tf\.(?:zeros|ones|fill)\(\[(?:[^\]]*,)? ?0[,\]]|=\[\]")
_OPERAND = re.compile(r"\(%(\w+)(?:,%(\w+))?")
GDB = (
    "set pagination off", "set confirm off", "set debuginfod enabled off", "handle SIGCHLD nostop noprint", "run",
    "p/x $_siginfo._sifields._sigfault.si_addr", "p $_siginfo.si_code", "p/x $rsp", "x/i $pc", "info registers",
    "bt 12",
)  # fmt: skip


class Fault(NamedTuple):
    """Where a SIGSEGV was."""

    address: int | None  # none where the processor does not tell it
    stack: int
    bases: tuple[int, ...]  # of the memory operand
    backtrace: str


def causes(signal: str, stderr: str, fault: Fault | None, code: str = "") -> list[str]:
    """Accepted causes of the death of this call, the best first; none where this does not decide it."""
    if signal == "SIGFPE":
        return ["op-division-by-zero"]
    if signal == "SIGABRT":
        return _aborted(stderr)
    return _faulted(fault, has_empty(code)) if signal == "SIGSEGV" and fault else []


def has_empty(code: str) -> bool:
    """Is a tensor without elements among the arguments?"""
    return _EMPTY.search(code) is not None


def _aborted(stderr: str) -> list[str]:
    too_much = ["oversized-allocation"] if any(word in stderr for word in _TOO_MUCH) else []
    if _THROWN.search(stderr):
        return [*too_much, "op-uncaught-exception"]
    if "Assertion failure" in stderr:  # of the FFT library, which catches its own exception and aborts
        return ["op-check-failed"]
    if check := _CHECK.search(stderr):
        return [*too_much, "op-check-failed", *(["compiler-bug"] if _OPTIMISERS.search(check[1]) else [])]
    if too_much:
        return [*too_much, "op-uncaught-exception", "op-check-failed"]
    # malloc finds the damage later: who did it, and how, it does not tell.
    return [OUTSIDE, "heap-corruption"] if any(word in stderr for word in _HEAP) else []


def _faulted(fault: Fault, empty: bool) -> list[str]:
    if "translate_exception" in fault.backtrace:
        return ["op-uncaught-exception", "oversized-allocation"]
    if fault.address is None:
        return [OUTSIDE, NULL]
    if abs(fault.address - fault.stack) < NEAR_STACK:
        return []  # the stack ran out
    if fault.address < NULL_PAGE:
        return [OUTSIDE, NULL] if empty else [NULL]  # an empty tensor has no buffer: its first element is at null
    null_base = any(base < NULL_PAGE for base in fault.bases[:1])
    return [OUTSIDE] if fault.address >= FAR and not null_base else [OUTSIDE, NULL]


def fault_of(python: str, program: Path) -> Fault | None:
    """Runs it under gdb; none where it did not stop at a SIGSEGV."""
    words = [word for command in GDB for word in ("-ex", command)]
    command = ["gdb", "-q", "-nx", "-batch", *words, "--args", python, str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return read(done.stdout)


def read(output: str) -> Fault | None:
    """What gdb printed."""
    if "received signal SIGSEGV" not in output:
        return None
    tail = output.partition("received signal SIGSEGV")[2]
    values = dict(re.findall(r"^\$(\d) = (-?\w+)", tail, re.MULTILINE))
    registers = {name: int(value, 16) for name, value in re.findall(r"^(r\w+) +(0x[0-9a-f]+)", tail, re.MULTILINE)}
    instruction = re.search(r"^=> .*", tail, re.MULTILINE)
    operand = _OPERAND.search(instruction[0]) if instruction else None
    bases = tuple(registers[name] for name in operand.groups() if name in registers) if operand else ()
    known = values.get("2") != "128"  # SI_KERNEL: an address that no pointer can have
    backtrace = tail[tail.find("\n#0") :] if "\n#0" in tail else ""
    return Fault(int(values["1"], 16) if known else None, int(values["3"], 16), bases, backtrace)
