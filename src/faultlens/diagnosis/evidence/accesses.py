"""Where a bad access went, seen from the memory that is there: past an end, into a hole, through half a pointer."""

from __future__ import annotations

from bisect import bisect_right

from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP, NULL_PAGE, PAGE, mapping_at
from faultlens.records.crash import Crash, Fault, MemoryOperand

WIDEST = 64  # bytes one vector instruction reads at once
_LONGEST_WALK = 1 << 32
ARGUMENT_REGISTERS = ("rdi", "rsi", "rdx", "rcx")  # the first ones; compilers reuse the others at once
_FULL = 1 << 64
_HALF = 1 << 32
_NEAR = 16 << 30  # more than the gaps between the mappings of a large program
_GENERAL_PROTECTION = 13
_FREED_SHIFT = 12  # glibc stores the first pointer of a freed block shifted by this ("safe linking")
_REPEATED = {"sb ": 1, "sw ": 2, "sd ": 4, "sq ": 8}  # bytes that "rep stosq" writes at a time
_MALLOC_HEADER = 16  # bytes in front of a large block of glibc, which has pages of its own
_ALIGNED = ("movaps", "movapd", "movdqa", "movntps", "movntpd", "movntdq")


def operand(fault: Fault) -> MemoryOperand | None:
    """The access of the faulting instruction that went wrong."""
    operands = fault.instruction.operands if fault.instruction else ()
    for candidate in operands:
        if candidate.address is not None and candidate.address == fault.address:
            return candidate
    # The kernel tells no address where there can be none: of a copy's two operands it is that one.
    impossible = (each for each in operands if is_protection_fault(fault) and _is_no_address(each.address))
    return next(impossible, operands[0] if operands else None)


def pointer(fault: Fault) -> int | None:
    """The pointer that the address was computed from; what is added to it comes later, or is small."""
    found, address = operand(fault), target(fault)
    values = [int(value) for value in found.registers.values()] if found else []
    if address is None or address < NULL_PAGE:
        return values[0] if values else address
    return next((value for value in values if value >= NULL_PAGE), address)


def pointer_register(access: MemoryOperand) -> str | None:
    """The register that holds the pointer, in an address near null: the one that is 0, else the one not scaled.

    An index beside it may be 0 as well; compilers put the base first."""
    index = access.expression.partition("*")[0].rpartition("+")[2].strip("[") if "*" in access.expression else None
    bases = [name for name in access.registers if name != index] or list(access.registers)
    return next((name for name in bases if access.registers[name] == 0), bases[0] if bases else None)


def small_number(fault: Fault) -> int | None:
    """What was used as a pointer, where it is a number too small for an address, and not zero.

    With a zero beside it, which of the two was the pointer is not known."""
    found, address = operand(fault), target(fault)
    values = list(found.registers.values()) if found else []
    if found is None or address is None or address >= NULL_PAGE or not values or not 0 < values[0] < NULL_PAGE:
        return None
    return int(values[0]) if 0 not in values or "*" in found.expression else None


def target(fault: Fault) -> int | None:
    """The address the access went to; the kernel tells none for a protection fault, the instruction does."""
    if fault.address is not None and fault.code != "SI_KERNEL":
        return fault.address
    found = operand(fault)
    return found.address if found else None


def is_protection_fault(fault: Fault) -> bool:
    return fault.signal == "SIGSEGV" and (fault.trap == _GENERAL_PROTECTION or fault.code == "SI_KERNEL")


def is_wild(fault: Fault) -> bool:
    """No address at all: the pointer was overwritten, freed or never set."""
    if not is_protection_fault(fault):
        return False
    return _is_no_address(target(fault)) or _is_no_address(jump(fault))


def _is_no_address(value: int | None) -> bool:
    """Neither the program's nor the kernel's half of the address space."""
    return value is not None and CANONICAL_TOP <= value < _FULL - CANONICAL_TOP


def jump(fault: Fault) -> int | None:
    """Where an instruction like `call r13` was about to go."""
    words = (fault.instruction.text if fault.instruction else "").split(" ")
    return fault.registers.get(words[1]) if len(words) == 2 and words[0] in ("call", "jmp") else None


def called_no_address(crash: Crash, fault: Fault) -> str | None:
    """Where the function pointer lay that the CPU refused to call: "rax", or "[rax+0x18]" in memory that is there."""
    text = fault.instruction.text if fault.instruction else ""
    if not is_protection_fault(fault) or not text.startswith(("call ", "jmp ")):
        return None
    if _is_no_address(jump(fault)):
        return text.partition(" ")[2]
    found = fault.instruction.operands[0] if fault.instruction and fault.instruction.operands else None
    in_memory = found is not None and "[" in text and found.address is not None and is_accessible(crash, found.address)
    return found.expression if found and in_memory else None


def misaligned(fault: Fault) -> MemoryOperand | None:
    """The operand of a vector instruction that needs alignment and did not get it."""
    text = fault.instruction.text if fault.instruction else ""
    found = operand(fault)
    if not is_protection_fault(fault) or found is None or found.address is None or found.size < 16:
        return None
    aligned = text.split(" ")[0].removeprefix("v").startswith(_ALIGNED) or not text.startswith("v")
    return found if aligned and found.address % found.size and found.address < CANONICAL_TOP else None


def is_accessible(crash: Crash, address: int) -> bool:
    mapping = mapping_at(crash, address)
    return mapping is not None and "r" in mapping.permissions


def leads_nowhere(crash: Crash, address: int) -> bool:
    """Nothing is mapped there, or ever could be; null and what is near it is another matter."""
    return address >= NULL_PAGE and mapping_at(crash, address) is None


def is_hole(crash: Crash, address: int) -> bool:
    """Nothing is mapped there, among addresses where memory could be."""
    return NULL_PAGE <= address < CANONICAL_TOP and mapping_at(crash, address) is None


def is_near(crash: Crash, address: int) -> bool:
    """Within reach of memory that is there: freed memory was its neighbour, a wrong index leads far away."""
    index = bisect_right(crash.mappings, address, key=lambda mapping: mapping.start)
    if index < len(crash.mappings) and crash.mappings[index].path in ("[stack]", "[vvar]", "[vdso]"):
        return False  # memory is handed out downwards from there: nothing ever was in between
    before = crash.mappings[index - 1].end if index else -_FULL
    after = crash.mappings[index].start if index < len(crash.mappings) else _FULL
    return address - before < _NEAR or after - address < _NEAR


def ran_off(crash: Crash, address: int) -> bool:
    """The access went just past the end, or just before the start, of memory that is there."""
    if is_accessible(crash, address) and is_accessible(crash, address + WIDEST):
        return False
    after = is_accessible(crash, address - address % PAGE - 1) and address % PAGE < WIDEST
    after = after and address % PAGE != _MALLOC_HEADER  # where a block begins: not its end was missed, it is all gone
    across = is_accessible(crash, address) and not is_accessible(crash, address + WIDEST)
    before = is_accessible(crash, address - address % PAGE + PAGE) and address % PAGE >= PAGE - WIDEST
    return after or across or before


def left_writable(crash: Crash, fault: Fault) -> bool:
    """A copy ran on from writable memory, where it was told to begin, into what lies behind and may not be written."""
    text = fault.instruction.text if fault.instruction else ""
    # Where the C library's functions keep their result, the destination.
    address, begin = fault.address, fault.registers.get("rdx" if text.startswith("rep stos") else "rax")
    mapping = mapping_at(crash, address) if address is not None else None
    if fault.access != "write" or mapping is None or "w" in mapping.permissions or address is None or begin is None:
        return False
    before = mapping_at(crash, begin)
    return (
        begin < mapping.start <= address < mapping.start + WIDEST and before is not None and "w" in before.permissions
    )


def started_inside(crash: Crash, fault: Fault) -> bool:
    """The address was computed from a pointer to live memory and an index."""
    found = operand(fault)
    if found is None or len(found.registers) < 2:
        return False
    writable = (mapping_at(crash, value) for value in found.registers.values() if value >= NULL_PAGE)
    return any(mapping is not None and "w" in mapping.permissions for mapping in writable)


def passed_in(crash: Crash, fault: Fault, arguments: int) -> str | None:
    """The argument register that still holds the bad address, or the pointer it was computed from."""
    found, address = operand(fault), target(fault)
    if address is None:
        return None
    names = ARGUMENT_REGISTERS[:arguments]
    if address < NULL_PAGE:  # many registers are 0: only the one that was used counts, and not for an index
        used = pointer_register(found) if found else None
        return used if used in names else None
    # Small numbers beside a real pointer are an index.
    values = [int(value) for value in found.registers.values()] if found else []
    pointers = {value for value in (*values, address) if value >= NULL_PAGE}
    held = {name: int(fault.registers[name]) for name in names if name in fault.registers}
    direct = next((name for name, value in held.items() if value in pointers), None)
    return direct or next((name for name, value in held.items() if _walked_from(crash, value, address)), None)


def _walked_from(crash: Crash, start: int, address: int) -> bool:
    """The access went through a buffer that begins at `start`, and that memory is gone as well."""
    gone = NULL_PAGE <= start < CANONICAL_TOP and mapping_at(crash, start) is None
    return gone and 0 <= address - start < _LONGEST_WALK


def copied_bytes(fault: Fault, write: bool) -> tuple[int, int] | None:
    """From where to where a copying function of the C library was told to write, or to read, if the registers tell.

    `rep` counts down in rcx; the others keep the destination in rax, which they return, and some the count in rdx."""
    registers, address = fault.registers, fault.address
    text = fault.instruction.text if fault.instruction else ""
    if address is None or not {"rax", "rcx", "rdx", "rsi", "rdi"} <= registers.keys():
        return None
    if text.startswith("rep "):
        start = registers["rdi" if write else "rsi"]
        count = registers["rcx"] * next((size for unit, size in _REPEATED.items() if unit in text), 1)
    else:
        start, count = registers["rax" if write else "rsi"], registers["rdx"]
    return (start, start + count) if start <= address < start + count < CANONICAL_TOP else None


def cut_pointer(crash: Crash, fault: Fault) -> int | None:
    """The live address of which the bad one is the lower half, extended by zeros or by its sign."""
    address = target(fault)
    if address is None or not (NULL_PAGE <= address < _HALF or _FULL - (_HALF >> 1) <= address < _FULL - NULL_PAGE):
        return None
    low = address % _HALF
    for mapping in crash.mappings:
        if mapping.start < _HALF or "w" not in mapping.permissions or mapping.start >= CANONICAL_TOP:
            continue
        candidate = mapping.start - mapping.start % _HALF + low
        for full in (candidate, candidate + _HALF):
            if mapping.start <= full < mapping.end:
                return full
    return None


def is_half(fault: Fault) -> bool:
    """An address whose upper half consists of sign bits: what a 32-bit integer makes of a pointer."""
    address = target(fault)
    return address is not None and _FULL - (_HALF >> 1) <= address < _FULL - NULL_PAGE


def freed_link(crash: Crash, fault: Fault) -> int | None:
    """The heap whose freed content was taken for a pointer.

    glibc links freed blocks by (place of the link >> 12) ^ next: with no next one, the place itself can be seen."""
    found = operand(fault)
    heaps = [mapping for mapping in crash.mappings if mapping.path == "[heap]"]
    for value in found.registers.values() if found else ():
        if _HALF <= value < CANONICAL_TOP >> _FREED_SHIFT:
            mapping = mapping_at(crash, value << _FREED_SHIFT)
            if mapping is not None and "w" in mapping.permissions and mapping.path in (None, "[heap]"):
                return mapping.start
        for heap in heaps:
            width = (heap.start ^ (heap.end - 1)).bit_length()  # bits in which addresses of the heap differ
            link = value ^ (heap.start >> _FREED_SHIFT)
            if link >> width == heap.start >> width and not is_accessible(crash, value):
                return heap.start
    return None


def null_object(fault: Fault) -> bool:
    """A null pointer was taken for a Python object: its count or its type was read."""
    found = operand(fault)
    values = list(found.registers.values()) if found else []
    return fault.address in (0, 8) and values == [0]


def changed_meanwhile(crash: Crash, fault: Fault) -> bool:
    """Nothing was mapped there when it was accessed, and something is now: another thread changes the memory."""
    if fault.code != "SEGV_MAPERR" or fault.address is None:
        return False
    mapping = mapping_at(crash, fault.address)
    return mapping is not None and "w" in mapping.permissions and mapping.path != "[stack]"


def holds_data(fault: Fault) -> bool:
    """The pointer that was used is no pointer but data: somebody wrote over it."""
    found = operand(fault)
    values = [*(found.registers.values() if found else ()), jump(fault)]
    return any(is_data(value) for value in values if value)


def is_data(value: int) -> bool:
    """A word that reads like data: the same half twice, or text."""
    octets = value.to_bytes(8, "little")
    return value % _HALF == value >> 32 or all(32 <= octet < 127 for octet in octets)
