"""One fault: siginfo, registers and the decoded instruction put together."""

from __future__ import annotations

import signal

import pytest
from test_siginfo import siginfo

from fake_memory import FakeMemory, mapping
from faultlens.inspection.fault import build_fault
from faultlens.inspection.instruction import decode
from faultlens.records.crash import Fault, Instruction, MemoryOperand

CODE = 0x401000
MAPPINGS = (mapping(0x400000, 0x402000, "r-xp", "/usr/lib/libdemo.so"),)


def fault(code: str, info: bytes, **registers: int) -> Fault:
    memory = FakeMemory({CODE: bytes.fromhex(code)})
    return build_fault(info, {"rip": CODE, **registers}, 7, memory, MAPPINGS)


def operands(code: str, **registers: int) -> tuple[MemoryOperand, ...]:
    memory = FakeMemory({CODE: bytes.fromhex(code)})
    decoded = decode(CODE, memory, {"rip": CODE, **registers}, MAPPINGS)
    assert decoded is not None
    return decoded.operands


def test_read_through_a_null_pointer() -> None:
    found = fault("488b4708", siginfo(signal.SIGSEGV, 1, 8), rdi=0)  # mov rax, [rdi+8]
    assert (found.signal, found.code, found.address, found.access) == ("SIGSEGV", "SEGV_MAPERR", 8, "read")
    assert found.instruction == Instruction(
        address=CODE,  # type: ignore[arg-type]
        code="488b4708",
        text="mov rax, [rdi+8]",
        operands=(
            MemoryOperand(expression="[rdi+8]", access="read", size=8, address=8, registers={"rdi": 0}),  # type: ignore[arg-type,dict-item]
        ),
        library="/usr/lib/libdemo.so",
        offset=0x1000,  # type: ignore[arg-type]
    )


def test_the_error_code_beats_the_instruction() -> None:
    info = siginfo(signal.SIGSEGV, 2, 0x5000)
    assert fault("488b07", info, rdi=0x5000, trapno=14, err=7).access == "write"
    assert fault("488b07", info, rdi=0x5000, trapno=14, err=5).access == "read"
    assert fault("488b07", info, rdi=0x5000, trapno=14, err=0x15).access == "execute"


def test_the_operand_that_matches_the_address_decides() -> None:
    movs = "f3a4"  # rep movsb reads [rsi], writes [rdi]
    assert fault(movs, siginfo(signal.SIGSEGV, 1, 0x10), rsi=0x10, rdi=0x9000, rcx=4).access == "read"
    assert fault(movs, siginfo(signal.SIGSEGV, 1, 0x9000), rsi=0x10, rdi=0x9000, rcx=4).access == "write"


def test_a_vector_load_may_fault_behind_its_address() -> None:
    found = fault("c5fc1007", siginfo(signal.SIGSEGV, 1, 0x6000), rdi=0x5FF0)  # vmovups ymm0, [rdi]
    assert found.access == "read"
    assert found.instruction is not None
    assert found.instruction.cpu_features == ("AVX",)


def test_a_protection_fault_has_no_address() -> None:
    found = fault("488907", siginfo(signal.SIGSEGV, 0x80, 0), rdi=1 << 63)  # mov [rdi], rax
    assert (found.address, found.access, found.code) == (None, "write", "SI_KERNEL")


def test_a_jump_into_nothing_is_an_execution() -> None:
    memory = FakeMemory({})
    found = build_fault(siginfo(signal.SIGSEGV, 1, 0x1234), {"rip": 0x1234}, 7, memory, MAPPINGS)
    assert (found.access, found.instruction) == ("execute", None)


def test_a_sent_signal_has_no_instruction_to_blame() -> None:
    found = fault("0f05", siginfo(signal.SIGABRT, -6, 42, 1000), rax=0)
    assert (found.instruction, found.access, found.sender_pid) == (None, None, 42)


def test_a_division_touches_no_memory() -> None:
    found = fault("f7f9", siginfo(signal.SIGFPE, 1, CODE), rcx=0)  # idiv ecx
    assert found.access is None
    assert found.instruction is not None
    assert found.instruction.text == "idiv ecx"


@pytest.mark.parametrize(
    ("code", "expression", "address"),
    [
        ("488904cf", "[rdi+rcx*8]", 0x1000 + 16),
        ("678b07", "[edi]", 0x1000),
        ("50", "[rsp-8]", 0x7FF8),
        ("488b05f0000000", "0x4010f7", 0x4010F7),
        ("64488b042528000000", "fs:[0x28]", None),
        ("488b87f0feffff", "[rdi-0x110]", 0x1000 - 0x110),
    ],
)
def test_addresses_are_computed(code: str, expression: str, address: int | None) -> None:
    found = operands(code, rdi=0x1000, rcx=2, rsp=0x8000)[0]
    assert (found.expression.strip("[]"), found.address) == (expression.strip("[]"), address)


def test_fs_relative_addresses_need_the_base() -> None:
    assert operands("64488b042528000000", fs_base=0x7000)[0].address == 0x7028


def test_an_address_calculation_is_no_access() -> None:
    assert operands("488d4708", rdi=0) == ()  # lea rax, [rdi+8]


def test_bytes_that_are_no_instruction_are_kept() -> None:
    decoded = decode(CODE, FakeMemory({CODE: bytes.fromhex("06" * 15)}), {}, MAPPINGS)
    assert decoded is not None
    assert (decoded.text, decoded.code) == ("(bad)", "06" * 15)


def test_avx512_names_its_features() -> None:
    decoded = decode(CODE, FakeMemory({CODE: bytes.fromhex("62f17c485804c8")}), {"rax": 0, "rcx": 0}, ())
    assert decoded is not None
    assert decoded.cpu_features == ("AVX512F",)
