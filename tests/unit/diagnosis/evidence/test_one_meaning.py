"""What the causes make of an address, the fault line says too: on both sides of every limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faultlens.diagnosis.causes.limits.stack_overflow import StackOverflow
from faultlens.diagnosis.causes.native.native_null_dereference import NativeNullDereference
from faultlens.diagnosis.evidence.accesses import is_wild
from faultlens.diagnosis.evidence.addresses import (
    CANONICAL_TOP,
    LARGEST_FRAME,
    NULL_PAGE,
    PAGE,
    STACK_REACH,
    is_canonical,
)
from faultlens.diagnosis.evidence.case import Case
from faultlens.records.crash import Address, Crash, Fault, Frame, Instruction, Mapping, MemoryOperand, Thread
from faultlens.report.words import fault_in_words
from recorded import ended

KIB = 1 << 10
BOTTOM = 0x7FFC00000000  # of the stack
CUSTOM = Frame(kind="native", function="read_table", library="/home/ada/libtable.so")


def around(*limits: int) -> Iterator[int]:
    for limit in limits:
        yield from (limit + offset for offset in (-PAGE, -8, -1, 0, 1, 8, PAGE) if limit + offset >= 0)


def mapping(start: int, end: int, permissions: str) -> Mapping:
    return Mapping(start=Address(start), end=Address(end), permissions=permissions)


HEAP = mapping(0x1000000, 0x2000000, "rw-p")
STACK = mapping(BOTTOM, BOTTOM + (8 << 20), "rw-p")
GUARDED = (HEAP, mapping(BOTTOM - PAGE, BOTTOM, "---p"), STACK)


def crash(address: int, *, rsp: int | None, mappings: tuple[Mapping, ...], signal: str = "SIGSEGV") -> Crash:
    code = "SEGV_MAPERR" if signal == "SIGSEGV" else "BUS_ADRERR"
    registers = {"rsp": Address(rsp)} if rsp is not None else {}
    fault = Fault(signal=signal, code=code, thread=1, address=Address(address), access="read", registers=registers)
    return ended(fault=fault, mappings=mappings, threads=(Thread(id=1, crashed=True, frames=(CUSTOM,)),))


def fault_line(died: Crash) -> str:
    assert died.fault is not None
    return fault_in_words(died.fault, died)


@pytest.mark.parametrize("address", sorted({*around(0, 0x1000, 0x2000, NULL_PAGE), HEAP.start - 8}))
def test_null(address: int) -> None:
    died = crash(address, rsp=STACK.end - KIB, mappings=(HEAP, STACK))
    null = NativeNullDereference().examine(Case(died)) is not None
    assert null == (address < NULL_PAGE)
    assert ("nothing is mapped" not in fault_line(died)) == null


def at_stack() -> Iterator[tuple[int, int, tuple[Mapping, ...]]]:
    """Address, stack pointer, mappings."""
    for pointer in (BOTTOM + 16, BOTTOM, BOTTOM - 20 * KIB, BOTTOM - LARGEST_FRAME, BOTTOM - 2 * LARGEST_FRAME, 64):
        for address in around(pointer, pointer - 8 * KIB, pointer - 20 * KIB, pointer - STACK_REACH, pointer + PAGE):
            for mappings in ((), (HEAP, STACK), GUARDED, (HEAP,)):
                yield address, pointer, mappings


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGBUS"])
def test_the_end_of_the_stack(signal: str) -> None:
    said = {True: 0, False: 0}
    for address, pointer, mappings in at_stack():
        died = crash(address, rsp=pointer, mappings=mappings, signal=signal)
        overflow = StackOverflow().examine(Case(died)) is not None
        assert fault_line(died).startswith("stack overflow") == overflow, (hex(address), hex(pointer), mappings)
        said[overflow] += 1
    assert min(said.values()) > 100


def test_20_kib_below_the_stack_pointer_is_the_end_of_the_stack() -> None:
    died = crash(BOTTOM - 20 * KIB, rsp=BOTTOM, mappings=(HEAP, STACK))
    assert fault_line(died).startswith("stack overflow") and Case(died).hits_stack_end


def test_a_stack_pointer_that_was_overwritten_is_no_stack() -> None:
    nowhere = 0x600000000000
    for mappings in ((HEAP, STACK), (HEAP,)):
        died = crash(nowhere - 8, rsp=nowhere, mappings=mappings)
        assert not Case(died).hits_stack_end and not fault_line(died).startswith("stack overflow")


def test_without_registers_the_stack_pointer_of_the_thread_counts() -> None:
    thread = Thread(id=1, crashed=True, stack_pointer=Address(BOTTOM))
    fault = Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=1, address=Address(BOTTOM - 8))
    died = ended(fault=fault, mappings=(HEAP, STACK), threads=(thread,))
    assert Case(died).hits_stack_end and fault_line(died).startswith("stack overflow")


@pytest.mark.parametrize("address", sorted({*around(CANONICAL_TOP, (1 << 64) - CANONICAL_TOP)}))
def test_what_cannot_be_an_address(address: int) -> None:
    operand = MemoryOperand(expression="[rax]", access="read", size=8, address=Address(address))
    instruction = Instruction(address=Address(0x400000), code="", text="mov rbx,[rax]", operands=(operand,))
    fault = Fault(signal="SIGSEGV", code="SI_KERNEL", thread=1, trap=13, instruction=instruction)
    assert is_wild(fault) == (not is_canonical(address))
    assert ("cannot be an address" in fault_line(ended(fault=fault))) == is_wild(fault)
