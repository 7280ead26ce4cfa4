"""What the facts of a fault and of memory say, in words. Nothing is said that the facts do not hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence import accesses
from faultlens.diagnosis.evidence.addresses import PAGE, hits_stack_end, is_canonical, is_null, mapping_at
from faultlens.diagnosis.evidence.last_words import abort_reason
from faultlens.inspection.frames import short_function
from faultlens.knowledge.cpu_features import lacking
from faultlens.records.crash import Access, Address, Crash, Fault, FileState, Instruction, Mapping, MemoryOperand
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words as size

NEAR_LIMIT_PERCENT = 90

SENT = frozenset({"SI_USER", "SI_TKILL", "SI_QUEUE", "SI_MESGQ", "SI_ASYNCIO", "SI_TIMER", "SI_SIGIO"})

_FROM = {"read": "from", "write": "to", "execute": "in", None: "in"}

_FLOATING_POINT = {
    "FPE_INTOVF": "integer overflow",
    "FPE_FLTDIV": "floating-point division by zero",
    "FPE_FLTOVF": "floating-point overflow",
    "FPE_FLTUND": "floating-point underflow",
    "FPE_FLTRES": "inexact floating-point result",
    "FPE_FLTINV": "invalid floating-point operation",
    "FPE_FLTSUB": "subscript out of range",
    "FPE_FLTUNK": "floating-point exception",
}

_OTHER_SIGNALS = {
    "SIGXCPU": "the limit of CPU time was reached",
    "SIGXFSZ": "the limit of file size was reached",
    "SIGSYS": "a system call was made that is forbidden here",
    "SIGPIPE": "output went to a pipe that nobody reads any more",
}

# Instructions that compilers and programs use to stop on purpose, by the first bytes of their code.
_TRAPS = {"0f0b": "ud2", "0fb9": "ud1", "0fff": "ud0", "cc": "int3", "f1": "int1"}


def fault_in_words(fault: Fault, crash: Crash) -> str:
    """One sentence without a full stop: what the machine could not do."""
    if fault.signal == "SIGABRT" and not _sent_by_other(fault, crash):
        return _abort(crash)
    if fault.code in SENT:
        return _sent(fault, crash)
    say = _BY_SIGNAL.get(fault.signal)
    return say(fault, crash) if say else _OTHER_SIGNALS.get(fault.signal, f"{fault.signal} ({fault.code})")


def memory_in_words(crash: Crash) -> str | None:
    """ "1.4 GiB anonymous of 1.5 GiB allowed by the cgroup, peak RSS 1.6 GiB, 34 threads, 120 files open"."""
    parts = [part for part in (_anonymous(crash), *_counts(crash)) if part]
    return ", ".join(parts) or None


# ---------------------------------------------------------------------------------------- sent signals


def _sent_by_other(fault: Fault, crash: Crash) -> bool:
    return fault.code in SENT and fault.sender_pid not in (None, 0, crash.pid)


def _sent(fault: Fault, crash: Crash) -> str:
    if fault.sender_pid is not None and fault.sender_pid == crash.pid:
        return "signal sent by the process to itself"
    if fault.sender_pid:
        return f"signal sent by process {fault.sender_pid}"
    return f"signal sent by a process ({fault.code}), not the outcome of a memory access"


def _abort(crash: Crash) -> str:
    reason = abort_reason(crash)
    if reason:
        return f"abort() called: {one_line(reason)}"
    thread = crash.crashed_thread
    if thread and any(short_function(frame.function) == "abort" for frame in thread.frames):
        return "abort() called"
    return "the process aborted itself"


# ---------------------------------------------------------------------------------- memory: SIGSEGV


def _segmentation_fault(fault: Fault, crash: Crash) -> str:
    if accesses.is_protection_fault(fault):
        return _general_protection(fault)
    if fault.address is None:
        return "an access to memory that is not allowed; its address is not known"
    if hits_stack_end(crash, fault):
        return _stack_overflow(fault)
    if fault.access == "execute" or fault.address == fault.registers.get("rip"):
        return _jump(fault, fault.address, crash)
    return _bad_access(fault, fault.address, crash)


def _stack_overflow(fault: Fault) -> str:
    return f"stack overflow: {_access(fault)} at address {fault.address!r}, beyond the end of the stack"


def _general_protection(fault: Fault) -> str:
    found = accesses.operand(fault)
    if found is not None and found.address is not None:
        what = _operation(found.access, found.size)
        if not is_canonical(found.address):
            return f"{what} at {found.address!r}{_aside('which cannot be an address', _through(found))}"
        if accesses.misaligned(fault):
            needed = f"which this instruction needs aligned to {found.size} bytes"
            return f"{what} at address {found.address!r}{_aside(needed, _through(found))}"
    instruction = f" at {fault.instruction.text}" if fault.instruction and fault.instruction.text else ""
    return (
        f"general protection fault{instruction}: an address that cannot exist or is not aligned"
        " (the processor does not say which)"
    )


def _jump(fault: Fault, address: Address, crash: Crash) -> str:
    jump = f"jump to address {address!r}"
    if is_null(fault):
        return f"{jump}: a call through a null pointer" if address == 0 else f"{jump}, which is not code"
    mapping = mapping_at(crash, address)
    if mapping:
        return f"{jump}, which is not code but {_kind_of_memory(mapping)}"
    return f"{jump}, which is not code" + (": nothing is mapped there" if crash.mappings else "")


def _bad_access(fault: Fault, address: Address, crash: Crash) -> str:
    operand = _operand(fault)
    through = _through(operand) if operand else ""
    mapping = mapping_at(crash, address)
    if fault.code == "SEGV_ACCERR" and mapping:
        target = f"{_FROM[fault.access]} {_kind_of_memory(mapping)}"
        return f"{_access(fault)} {target}, at address {address!r}{through}"
    if fault.code == "SEGV_ACCERR":
        return f"{_access(fault)} at address {address!r}{_aside('where this is not allowed', through)}"
    if not is_null(fault):
        through = _aside("where nothing is mapped", through)
    return f"{_access(fault)} at address {address!r}{through}"


def _kind_of_memory(mapping: Mapping) -> str:
    may = mapping.permissions
    kind = "a protected" if may.startswith("---") else "a read-only" if "w" not in may else "a writable"
    if mapping.path is None:
        return f"{kind} part of memory"
    if mapping.path.startswith("["):
        return f"{kind} part of {mapping.path}"
    return f"{kind} mapping of {_file_name(mapping.path)}"


def _access(fault: Fault) -> str:
    operand = _operand(fault)
    return _operation(fault.access or (operand.access if operand else None), operand.size if operand else 0)


def _operation(access: Access | None, size_in_bytes: int) -> str:
    verb = access or "access"
    return f"{verb} of {count(size_in_bytes, 'byte')}" if size_in_bytes else verb


def _operand(fault: Fault) -> MemoryOperand | None:
    """The operand whose access failed: the one that covers the fault address, else one that fits."""
    operands = fault.instruction.operands if fault.instruction else ()
    for operand in operands:
        if fault.address is None or operand.address is None:
            continue
        if 0 <= fault.address - operand.address < max(operand.size, 1):
            return operand
    fitting = [operand for operand in operands if fault.access in (None, operand.access)]
    return fitting[0] if len(fitting) == 1 and fitting[0].address is None else None


def _through(operand: MemoryOperand) -> str:
    """ " through rdi, which is 0", " through [rdi+rax*8], where rdi is 0 and rax is 0x3"."""
    registers = {name: value for name, value in operand.registers.items() if name != "rip"}
    if not registers:
        return ""
    if len(registers) == 1:
        [(name, value)] = registers.items()
        says_nothing_new = value != 0 and value == operand.address
        return f" through {name}" + ("" if says_nothing_new else f", which is {_word(value)}")
    values = " and ".join(f"{name} is {_word(value)}" for name, value in registers.items())
    return f" through {operand.expression}, where {values}"


def _aside(clause: str, rest: str) -> str:
    return f", {clause},{rest}" if rest else f", {clause}"


def _word(value: int) -> str:
    return hex(value) if value else "0"


# ----------------------------------------------------------------------------------- memory: SIGBUS


def _bus_error(fault: Fault, crash: Crash) -> str:
    if fault.code == "SI_KERNEL":  # a stack-segment fault: the protection fault of rsp and rbp
        return _general_protection(fault)
    at = f" at address {fault.address!r}" if fault.address is not None else ""
    if fault.code == "BUS_ADRALN":
        return f"unaligned {_access(fault)}{at}"
    if fault.code.startswith("BUS_MCEERR"):
        return f"the hardware reported a memory error{at}"
    if fault.address is None:
        return "a page of memory could not be supplied"
    if hits_stack_end(crash, fault):
        return _stack_overflow(fault)
    mapping = mapping_at(crash, fault.address)
    if mapping is None or mapping.path is None or mapping.path.startswith("["):
        return f"the page{at} could not be supplied"
    return _lost_page(mapping, fault.address - mapping.start + mapping.offset, crash)


def _lost_page(mapping: Mapping, offset: int, crash: Crash) -> str:
    path = mapping.path or ""
    name = _file_name(path)
    state = _state_of(path, crash)
    if state and state.size is not None and state.size <= offset:
        return (
            f"the page behind a mapping of {name} is gone: "
            f"the file has {count(state.size, 'byte')}, the access was at offset {offset:,}"
        )
    words = f"the page behind a mapping of {name} could not be supplied, at offset {offset:,}"
    if state and state.size is not None:
        words += f" of {state.size:,}"
    if state and state.disk_free is not None and state.disk_free < 16 * PAGE:
        words += f"; its file system has {size(state.disk_free)} left"
    return words


def _state_of(path: str, crash: Crash) -> FileState | None:
    plain = path.removesuffix(" (deleted)")
    return next((state for state in crash.files if state.path.removesuffix(" (deleted)") == plain), None)


def _file_name(path: str) -> str:
    return one_line(PurePosixPath(path.removesuffix(" (deleted)")).name, 120)


# ----------------------------------------------------------------------------- arithmetic and opcodes


def _arithmetic(fault: Fault, _: Crash) -> str:
    if fault.code != "FPE_INTDIV":
        return _FLOATING_POINT.get(fault.code, f"arithmetic error ({fault.code})")
    text = fault.instruction.text if fault.instruction else ""
    # The processor traps in the same way when the quotient does not fit.
    divisor = _divisor(text, fault.registers)
    if divisor is None:
        return "integer division by zero, or a quotient that does not fit" + (f": {text}" if text else "")
    name, value = divisor
    if value == 0:
        return f"division by zero: {text}, {name} is 0"
    return f"integer division overflow: {text}, {name} is {_word(value)}, the quotient does not fit"


def _divisor(text: str, registers: dict[str, Address]) -> tuple[str, int] | None:
    match = re.fullmatch(r"i?div\s+(\w+)", text.strip())
    if not match:
        return None
    name = match[1]
    for full, value in registers.items():
        if name in (part := _parts(full)):
            shift, mask = part[name]
            return name, value >> shift & mask
    return None


def _parts(register: str) -> dict[str, tuple[int, int]]:
    """The names under which parts of a 64-bit register are used, with shift and mask."""
    quad, double, word, byte = (0, 2**64 - 1), (0, 2**32 - 1), (0, 2**16 - 1), (0, 2**8 - 1)
    if re.fullmatch(r"r\d+", register):
        return {register: quad, register + "d": double, register + "w": word, register + "b": byte}
    stem = register[1:]
    names = {register: quad, "e" + stem: double, stem: word}
    if stem.endswith("x"):  # rax, rbx, rcx, rdx
        return {**names, stem[0] + "l": byte, stem[0] + "h": (8, 2**8 - 1)}
    return {**names, stem + "l": byte}


def _illegal_instruction(fault: Fault, crash: Crash) -> str:
    instruction = fault.instruction
    if instruction is None:
        return "an instruction that this CPU does not execute"
    if trap := _deliberate(instruction):
        return trap
    shown = f"the instruction {instruction.text}" if instruction.text else "the instruction"
    flags = crash.machine.cpu_flags if crash.machine else ()
    if flags and (missing := lacking(instruction.cpu_features, flags)):
        return f"{shown} needs {' and '.join(missing)}, which this CPU lacks"
    if not flags and (features := lacking(instruction.cpu_features, ())):
        return f"illegal instruction: {shown} needs {' and '.join(features)}"
    return f"illegal instruction: {instruction.text or instruction.code}"


def _trap(fault: Fault, _: Crash) -> str:
    trap = _deliberate(fault.instruction) if fault.instruction else None
    return trap or f"breakpoint or trace trap ({fault.code})"


def _deliberate(instruction: Instruction) -> str | None:
    for code, name in _TRAPS.items():
        if instruction.code.startswith(code):
            return f"trap instruction {name}, executed on purpose"
    return None


_BY_SIGNAL: dict[str, Callable[[Fault, Crash], str]] = {
    "SIGSEGV": _segmentation_fault,
    "SIGBUS": _bus_error,
    "SIGFPE": _arithmetic,
    "SIGILL": _illegal_instruction,
    "SIGTRAP": _trap,
}


# -------------------------------------------------------------------------------------------- memory


def _anonymous(crash: Crash) -> str | None:
    memory = crash.memory
    words, when = None, ""
    peak = memory.rss_peak if memory else None
    if memory and memory.rss_anonymous is not None:
        words = f"{size(memory.rss_anonymous)} anonymous"
    elif memory and memory.rss is not None:
        words = f"{size(memory.rss)} resident"
    else:
        sample = next((s for s in reversed(crash.timeline) if s.rss_anonymous is not None), None)
        if sample and sample.rss_anonymous is not None:
            words = f"{size(sample.rss_anonymous)} anonymous"
            when = " when last looked at"
    if words is None:
        return None
    if crash.cgroup and crash.cgroup.memory_limit is not None:
        words += f" of {size(crash.cgroup.memory_limit)} allowed by the cgroup"
    elif crash.machine and crash.machine.memory_total is not None:
        words += f" of {size(crash.machine.memory_total)} in the machine"
    return words + when + (f", peak RSS {size(peak)}" if peak else "")


def _counts(crash: Crash) -> list[str]:
    memory = crash.memory
    if memory is None:
        return []
    parts = []
    if memory.threads is not None:
        parts.append(count(memory.threads, "thread"))
    if memory.open_files is not None:
        limit = crash.limits["RLIMIT_NOFILE"].soft if "RLIMIT_NOFILE" in crash.limits else None
        near = limit is not None and 100 * memory.open_files >= NEAR_LIMIT_PERCENT * limit
        parts.append(count(memory.open_files, "file") + " open" + (f" (limit {limit:,})" if near else ""))
    return parts
