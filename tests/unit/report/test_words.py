"""What the facts of a fault and of memory say, in words."""

from __future__ import annotations

import pytest

from faultlens.records.crash import (
    Address,
    CgroupState,
    Fault,
    FileState,
    Frame,
    Instruction,
    Limit,
    MachineState,
    Mapping,
    MemoryOperand,
    MemoryUse,
    Output,
    Sample,
    Thread,
)
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.text.quantities import count, duration, moment
from recorded import ended

GiB = 1 << 30


def fault(code: str = "SEGV_MAPERR", signal: str = "SIGSEGV", address: int | None = 0, **facts: object) -> Fault:
    where = None if address is None else Address(address)
    return Fault(signal=signal, code=code, thread=1, address=where, **facts)  # type: ignore[arg-type]


def instruction(text: str = "", code: str = "", *operands: MemoryOperand, needs: tuple[str, ...] = ()) -> Instruction:
    return Instruction(address=Address(0x400000), code=code, text=text, operands=operands, cpu_features=needs)


def operand(access: str, size: int, address: int | None, expression: str = "[rdi]", **registers: int) -> MemoryOperand:
    values = {name: Address(value) for name, value in registers.items()}
    where = None if address is None else Address(address)
    return MemoryOperand(expression=expression, access=access, size=size, address=where, registers=values)  # type: ignore[arg-type]


def mapping(start: int, end: int, permissions: str, path: str | None = None, offset: int = 0) -> Mapping:
    return Mapping(start=Address(start), end=Address(end), permissions=permissions, path=path, offset=offset)


def registers(**values: int) -> dict[str, Address]:
    return {name: Address(value) for name, value in values.items()}


WEIGHTS = mapping(0x7F0000010000, 0x7F0000110000, "r--s", "/data/weights.bin")
STACK = mapping(0x7FFC00010000, 0x7FFC00800000, "rw-p", "[stack]")
GUARD = mapping(0x7F1000000000, 0x7F1000001000, "---p")
THREAD_STACK = mapping(0x7F1000001000, 0x7F1000801000, "rw-p")
HEAP = mapping(0x1000000, 0x2000000, "rw-p", "[heap]")
ABORTING = Thread(id=1, crashed=True, frames=(Frame(kind="native", function="abort"),))

CASES = {
    "null read": (
        fault(access="read", instruction=instruction("", "", operand("read", 8, 0, rdi=0))),
        {},
        "read of 8 bytes at address 0x0 through rdi, which is 0",
    ),
    "null plus offset": (
        fault(address=0x18, access="write", instruction=instruction("", "", operand("write", 1, 0x18, rax=0))),
        {},
        "write of 1 byte at address 0x18 through rax, which is 0",
    ),
    "two registers": (
        fault(
            address=0x10,
            access="read",
            instruction=instruction("", "", operand("read", 4, 0x10, "[rdi+rax*8]", rdi=0, rax=2)),
        ),
        {},
        "read of 4 bytes at address 0x10 through [rdi+rax*8], where rdi is 0 and rax is 0x2",
    ),
    "wild": (
        fault(
            address=0x7F0012345678,
            access="read",
            instruction=instruction("", "", operand("read", 8, 0x7F0012345678, rax=0x7F0012345678)),
        ),
        {"mappings": (HEAP,)},
        "read of 8 bytes at address 0x7f0012345678, where nothing is mapped, through rax",
    ),
    "second half of an access across two pages": (
        fault(
            address=0x7F0000002000,
            access="read",
            instruction=instruction("", "", operand("read", 16, 0x7F0000001FF8, rsi=0x7F0000001FF8)),
        ),
        {},
        "read of 16 bytes at address 0x7f0000002000, where nothing is mapped, through rsi",
    ),
    "no instruction": (fault(address=0x40, access="write"), {}, "write at address 0x40"),
    "nothing but the address": (fault(address=0x40), {}, "access at address 0x40"),
    "no address": (
        fault(address=None),
        {},
        "an access to memory that is not allowed; its address is not known",
    ),
    "write to a read-only mapping": (
        fault(
            "SEGV_ACCERR",
            address=0x7F0000010010,
            access="write",
            instruction=instruction("", "", operand("write", 4, 0x7F0000010010, rdx=0x7F0000010010)),
        ),
        {"mappings": (WEIGHTS,)},
        "write of 4 bytes to a read-only mapping of weights.bin, at address 0x7f0000010010 through rdx",
    ),
    "guard page far from the stack pointer": (
        fault("SEGV_ACCERR", address=0x7F1000000010, access="read"),
        {"mappings": (GUARD, THREAD_STACK)},
        "read from a protected part of memory, at address 0x7f1000000010",
    ),
    "jump into nothing": (
        fault(address=0x1234, access="execute"),
        {},
        "jump to address 0x1234, which is not code",
    ),
    "jump told by rip": (
        fault(address=0x50000, registers=registers(rip=0x50000)),
        {"mappings": (HEAP,)},
        "jump to address 0x50000, which is not code: nothing is mapped there",
    ),
    "jump into the heap": (
        fault("SEGV_ACCERR", address=0x1000040, access="execute"),
        {"mappings": (HEAP,)},
        "jump to address 0x1000040, which is not code but a writable part of [heap]",
    ),
    "null function": (
        fault(access="execute"),
        {},
        "jump to address 0x0: a call through a null pointer",
    ),
    "not canonical": (
        fault(
            "SI_KERNEL",
            trap=13,
            instruction=instruction("mov", "", operand("read", 8, 0xDEADBEEF00000000, rax=0xDEADBEEF00000000)),
        ),
        {},
        "read of 8 bytes at 0xdeadbeef00000000, which cannot be an address, through rax",
    ),
    "unaligned vector": (
        fault(
            "SI_KERNEL", instruction=instruction("movaps", "", operand("write", 16, 0x7F0000000008, rsp=0x7F0000000000))
        ),
        {},
        "write of 16 bytes at address 0x7f0000000008, which this instruction needs aligned to 16 bytes,"
        " through rsp, which is 0x7f0000000000",
    ),
    "protection fault without operands": (
        fault("SI_KERNEL", instruction=instruction("vpgatherdd ymm0")),
        {},
        "general protection fault at vpgatherdd ymm0: an address that cannot exist or is not aligned"
        " (the processor does not say which)",
    ),
    "main stack overflow": (
        fault(address=0x7FFC0000FFF8, access="write", registers=registers(rsp=0x7FFC00010000)),
        {"mappings": (HEAP, STACK)},
        "stack overflow: write at address 0x7ffc0000fff8, beyond the end of the stack",
    ),
    "thread stack overflow into the guard page": (
        fault("SEGV_ACCERR", address=0x7F1000000FF8, access="write", registers=registers(rsp=0x7F1000001000)),
        {"mappings": (GUARD, THREAD_STACK)},
        "stack overflow: write at address 0x7f1000000ff8, beyond the end of the stack",
    ),
    "near a stack pointer that points nowhere": (
        fault(address=0x600000000000, access="write", registers=registers(rsp=0x600000000008)),
        {"mappings": (HEAP, STACK)},
        "write at address 0x600000000000, where nothing is mapped",
    ),
    "truncated file": (
        fault("BUS_ADRERR", "SIGBUS", 0x7F0000012000, access="read"),
        {"mappings": (WEIGHTS,), "files": (FileState(path="/data/weights.bin", size=4096),)},
        "the page behind a mapping of weights.bin is gone: the file has 4,096 bytes, the access was at offset 8,192",
    ),
    "full file system": (
        fault("BUS_ADRERR", "SIGBUS", 0x7F0000012000, access="write"),
        {"mappings": (WEIGHTS,), "files": (FileState(path="/data/weights.bin", size=1 << 20, disk_free=0),)},
        "the page behind a mapping of weights.bin could not be supplied, at offset 8,192 of 1,048,576;"
        " its file system has 0 bytes left",
    ),
    "bus error in unknown memory": (
        fault("BUS_ADRERR", "SIGBUS", 0x5000),
        {},
        "the page at address 0x5000 could not be supplied",
    ),
    "hardware": (
        fault("BUS_MCEERR_AR", "SIGBUS", 0x5000),
        {},
        "the hardware reported a memory error at address 0x5000",
    ),
    "division by zero": (
        fault("FPE_INTDIV", "SIGFPE", registers=registers(rcx=0xABCD00000000), instruction=instruction("idiv ecx")),
        {},
        "division by zero: idiv ecx, ecx is 0",
    ),
    "division in r8d": (
        fault("FPE_INTDIV", "SIGFPE", registers=registers(r8=0), instruction=instruction("div r8d")),
        {},
        "division by zero: div r8d, r8d is 0",
    ),
    "division of the smallest number by -1": (
        fault("FPE_INTDIV", "SIGFPE", registers=registers(rcx=0xFFFFFFFF), instruction=instruction("idiv ecx")),
        {},
        "integer division overflow: idiv ecx, ecx is 0xffffffff, the quotient does not fit",
    ),
    "divisor in memory": (
        fault("FPE_INTDIV", "SIGFPE", instruction=instruction("idiv dword ptr [rbp-8]")),
        {},
        "integer division by zero, or a quotient that does not fit: idiv dword ptr [rbp-8]",
    ),
    "floating point": (fault("FPE_FLTINV", "SIGFPE"), {}, "invalid floating-point operation"),
    "missing CPU feature": (
        fault("ILL_ILLOPN", "SIGILL", instruction=instruction("vaddps zmm0, zmm1, zmm2", "62f1", needs=("AVX512F",))),
        {"machine": MachineState(cpu_flags=("avx", "avx2"))},
        "the instruction vaddps zmm0, zmm1, zmm2 needs AVX512F, which this CPU lacks",
    ),
    "CPU not known": (
        fault("ILL_ILLOPN", "SIGILL", instruction=instruction("vaddps ymm0", "c5f4", needs=("AVX",))),
        {},
        "illegal instruction: the instruction vaddps ymm0 needs AVX",
    ),
    "feature that has no flag": (
        fault("ILL_ILLOPN", "SIGILL", instruction=instruction("foo", "0f01", needs=("NEWEST",))),
        {"machine": MachineState(cpu_flags=("avx",))},
        "illegal instruction: foo",
    ),
    "ud2": (
        fault("ILL_ILLOPN", "SIGILL", instruction=instruction("ud2", "0f0b")),
        {},
        "trap instruction ud2, executed on purpose",
    ),
    "abort with glibc's message": (
        fault("SI_TKILL", "SIGABRT", None, sender_pid=7),
        {"pid": 7, "abort_message": "malloc(): invalid size (unsorted)\n"},
        "abort() called: malloc(): invalid size (unsorted)",
    ),
    "abort by a CHECK": (
        fault("SI_TKILL", "SIGABRT", None, sender_pid=7),
        {
            "pid": 7,
            "output": Output(
                stderr="F0000 00:00:1763294400.000213    4242 tensor_shape.cc:587] Check failed: size >= 0 (-8 vs. 0)\n"
                "Fatal Python error: Aborted\n"
            ),
        },
        "abort() called: Check failed: size >= 0 (-8 vs. 0) (tensor_shape.cc:587)",
    ),
    "abort by an uncaught exception": (
        fault("SI_TKILL", "SIGABRT", None),
        {
            "output": Output(
                stderr="terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
            )
        },
        "abort() called: uncaught C++ exception 'std::bad_alloc': std::bad_alloc",
    ),
    "silent abort": (fault("SI_TKILL", "SIGABRT", None), {"threads": (ABORTING,)}, "abort() called"),
    "SIGABRT of unknown origin": (fault("SI_TKILL", "SIGABRT", None), {}, "the process aborted itself"),
    "SIGABRT from outside": (
        fault("SI_USER", "SIGABRT", None, sender_pid=123),
        {"pid": 7},
        "signal sent by process 123",
    ),
    "SIGSEGV from outside": (
        fault("SI_USER", address=None, sender_pid=123),
        {"pid": 7},
        "signal sent by process 123",
    ),
    "SIGSEGV to itself": (
        fault("SI_TKILL", address=None, sender_pid=7),
        {"pid": 7},
        "signal sent by the process to itself",
    ),
    "sender not known": (
        fault("SI_TKILL", address=None),
        {"pid": 7},
        "signal sent by a process (SI_TKILL), not the outcome of a memory access",
    ),
    "CPU time": (fault("SI_KERNEL", "SIGXCPU", None), {}, "the limit of CPU time was reached"),
    "any other": (fault("SI_KERNEL", "SIGSTKFLT", None), {}, "SIGSTKFLT (SI_KERNEL)"),
}


@pytest.mark.parametrize("case", CASES)
def test_fault(case: str) -> None:
    what, facts, expected = CASES[case]
    assert fault_in_words(what, ended(**facts)) == expected


MEMORY = {
    "all": (
        {
            "memory": MemoryUse(rss_anonymous=int(1.4 * GiB), rss_peak=int(1.6 * GiB), threads=34, open_files=120),
            "cgroup": CgroupState(version=2, path="/", memory_limit=int(1.5 * GiB)),
            "limits": {"RLIMIT_NOFILE": Limit(soft=1024, hard=None)},
        },
        "1.4 GiB anonymous of 1.5 GiB allowed by the cgroup, peak RSS 1.6 GiB, 34 threads, 120 files open",
    ),
    "files nearly used up": (
        {
            "memory": MemoryUse(open_files=1020, threads=1),
            "limits": {"RLIMIT_NOFILE": Limit(soft=1024, hard=None)},
        },
        "1 thread, 1,020 files open (limit 1,024)",
    ),
    "no cgroup limit": (
        {"memory": MemoryUse(rss=GiB), "machine": MachineState(memory_total=62 * GiB)},
        "1 GiB resident of 62 GiB in the machine",
    ),
    "samples only": (
        {"timeline": (Sample(seconds=0, rss_anonymous=GiB), Sample(seconds=1))},
        "1 GiB anonymous when last looked at",
    ),
    "nothing": ({}, None),
}


@pytest.mark.parametrize("case", MEMORY)
def test_memory(case: str) -> None:
    facts, expected = MEMORY[case]
    assert memory_in_words(ended(**facts)) == expected


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0123, "12 ms"), (0.9999, "1 s"), (1.44, "1.4 s"), (59.99, "1 min"), (125, "2 min 5 s"),
        (11_520, "3 h 12 min"), (183_600, "2 d 3 h"),
    ],
)  # fmt: skip
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_count_and_moment() -> None:
    assert (count(1, "thread"), count(1024, "thread")) == ("1 thread", "1,024 threads")
    assert moment(1e300) == moment(None) == ""
    assert len(moment(1763294400.0)) == len("2025-11-16 12:00")
