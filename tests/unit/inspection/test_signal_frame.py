"""The frame the kernel leaves on the stack when it calls a signal handler."""

from __future__ import annotations

import signal
import struct

import pytest
from test_siginfo import siginfo

from fake_memory import FakeMemory, mapping
from faultlens.inspection import siginfo as names
from faultlens.inspection.signal_frame import recover

STACK, RESTORER, CODE = 0x7FFC00000000, 0x7F0000001000, 0x401000
SIGRETURN = bytes.fromhex("48c7c00f0000000f05")
MAPPINGS = (
    mapping(0x400000, 0x402000, "r-xp", "/usr/bin/demo"),
    mapping(0x500000, 0x501000, "r--p", "/usr/bin/demo"),
    mapping(0x7F0000001000, 0x7F0000002000, "r-xp", "/lib/libc.so.6"),
    mapping(STACK, STACK + 0x3000, "rw-p", "[stack]"),
)


def frame(trap: int, error: int = 0, cr2: int = 0, info: bytes = b"\xaa" * 128) -> bytes:
    """struct rt_sigframe, with the siginfo of a handler that did not ask for it unless one is given."""
    general = [0] * 18
    general[16], general[17] = CODE, 0x10246  # rip, eflags
    sigcontext = struct.pack("<18QHHHH4Q", *general, 0x33, 0, 0, 0x2B, error, trap, 0, cr2).ljust(256, b"\0")
    ucontext = struct.pack("<QQ24s", 7, 0, b"") + sigcontext + bytes(8)
    return struct.pack("<Q", RESTORER) + ucontext + info


def recovered(stack: bytes, last: bytes, code: bytes = b"\x90" * 16) -> tuple[names.SignalInfo, dict[str, int]] | None:
    memory = FakeMemory({STACK: stack, RESTORER: SIGRETURN, CODE - 8: code})
    found = recover(memory, {"rsp": STACK + 0x40, "rip": 0}, MAPPINGS, last)
    return (names.parse(found[0]), found[1]) if found else None


def on_stack(*frames: bytes) -> bytes:
    return bytes(0x108) + b"".join(each.ljust(0x400, b"\0") for each in frames)


RAISED = {number: siginfo(number, -6, 42, 0) for number in (4, 6, 7, 8, 11)}


def test_siginfo_of_the_handler_is_taken_as_it_is() -> None:
    original = siginfo(signal.SIGSEGV, 2, 0x500010)
    found = recovered(on_stack(frame(14, 7, 0x500010, original)), RAISED[11])
    assert found is not None
    info, registers = found
    assert (info.code_name, info.address) == ("SEGV_ACCERR", 0x500010)
    assert (registers["rip"], registers["trapno"], registers["err"], registers["cr2"]) == (CODE, 14, 7, 0x500010)


@pytest.mark.parametrize(
    ("number", "trap", "cr2", "code", "address"),
    [
        (signal.SIGSEGV, 14, 0x10, "SEGV_MAPERR", 0x10),
        (signal.SIGSEGV, 14, 0x500010, "SEGV_ACCERR", 0x500010),
        (signal.SIGBUS, 14, 0x500010, "BUS_ADRERR", 0x500010),
        (signal.SIGSEGV, 13, 0, "SI_KERNEL", None),
        (signal.SIGFPE, 0, 0, "FPE_INTDIV", CODE),
        (signal.SIGILL, 6, 0, "ILL_ILLOPN", CODE),
    ],
)
def test_siginfo_follows_from_the_trap_where_the_handler_did_not_ask_for_it(
    number: int, trap: int, cr2: int, code: str, address: int | None
) -> None:
    found = recovered(on_stack(frame(trap, 4, cr2)), RAISED[number])
    assert found is not None
    assert (found[0].number, found[0].code_name, found[0].address) == (number, code, address)


def test_a_signal_sent_to_oneself_is_not_taken_for_a_fault() -> None:
    stack = on_stack(frame(0))
    found = recovered(stack, RAISED[8], code=b"\x90" * 6 + bytes.fromhex("0f05") + b"\x90" * 8)
    assert found is not None
    assert found[0].code_name == "SI_TKILL"


def test_the_fault_counts_and_not_the_abort_of_its_handler() -> None:
    aborted = frame(14, 4, 0x10, siginfo(signal.SIGABRT, -6, 42, 0))
    fault = frame(14, 4, 0x10, siginfo(signal.SIGSEGV, 1, 0x10))
    found = recovered(on_stack(aborted, fault), RAISED[6])
    assert found is not None
    assert (found[0].name, found[0].address) == ("SIGSEGV", 0x10)


def test_what_only_resembles_a_frame_is_passed_over() -> None:
    good = on_stack(frame(14, 4, 0x10))
    assert recovered(good[:0x300], RAISED[11]) is not None
    assert recovered(b"\0" * 8 + good, RAISED[11]) is None  # not aligned as the kernel does
    assert recovered(good.replace(struct.pack("<Q", RESTORER), struct.pack("<Q", CODE)), RAISED[11]) is None
    assert recovered(on_stack(frame(77)), RAISED[11]) is None  # no such trap
    assert recovered(bytes(0x2000), RAISED[11]) is None


def test_a_stack_pointer_outside_of_all_memory_finds_nothing() -> None:
    assert recover(FakeMemory({}), {"rsp": 0x1000, "rip": 0}, MAPPINGS, RAISED[11]) is None
