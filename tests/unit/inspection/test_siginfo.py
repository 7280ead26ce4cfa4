"""siginfo_t: names of the manual, addresses and senders only where the kernel gives them."""

from __future__ import annotations

import signal
import struct

import pytest

from faultlens.inspection.siginfo import SignalInfo, code_name, parse, signal_name


def siginfo(number: int, code: int, *union: int) -> bytes:
    """One number is an address, two are a pid and a uid."""
    tail = struct.pack("<Q", *union) if len(union) == 1 else struct.pack("<iI", *union) if union else b""
    return (struct.pack("<iiii", number, 0, code, 0) + tail).ljust(128, b"\0")


def test_a_page_fault_has_an_address_and_no_sender() -> None:
    info = parse(siginfo(signal.SIGSEGV, 1, 0x60))
    assert info == SignalInfo(11, 1, address=0x60)
    assert (info.name, info.code_name, info.is_fault) == ("SIGSEGV", "SEGV_MAPERR", True)


def test_a_sent_signal_has_a_sender_and_no_address() -> None:
    info = parse(siginfo(signal.SIGSEGV, -6, 4242, 1000))
    assert (info.address, info.sender_pid, info.sender_uid) == (None, 4242, 1000)
    assert (info.code_name, info.is_fault) == ("SI_TKILL", False)


def test_a_protection_fault_has_neither() -> None:
    info = parse(siginfo(signal.SIGSEGV, 0x80, 0))
    assert (info.address, info.sender_pid, info.code_name, info.is_fault) == (None, None, "SI_KERNEL", True)


@pytest.mark.parametrize(
    ("number", "code", "name"),
    [
        (signal.SIGSEGV, 2, "SEGV_ACCERR"),
        (signal.SIGBUS, 2, "BUS_ADRERR"),
        (signal.SIGFPE, 1, "FPE_INTDIV"),
        (signal.SIGILL, 2, "ILL_ILLOPN"),
        (signal.SIGSYS, 1, "SYS_SECCOMP"),
        (signal.SIGTERM, 0, "SI_USER"),
        (signal.SIGTERM, -1, "SI_QUEUE"),
        (signal.SIGSEGV, 99, "si_code 99"),
        (999, 1, "si_code 1"),
    ],
)
def test_codes_have_the_names_of_the_manual(number: int, code: int, name: str) -> None:
    assert code_name(number, code) == name


def test_real_time_and_unknown_signals_have_names_too() -> None:
    assert signal_name(signal.SIGRTMIN + 3) == "SIGRTMIN+3"
    assert signal_name(200) == "signal 200"


def test_missing_bytes_count_as_zero() -> None:
    assert parse(b"") == SignalInfo(0, 0, sender_pid=0, sender_uid=0)
