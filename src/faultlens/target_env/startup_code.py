"""Which CPU features the code of a library needs, above all when it is loaded: its initialisers, read, not run.

Certain is what no way from the start to an end of an initialiser can avoid, nor of the functions that it certainly
calls. Code that a branch can skip is left out: that is where libraries ask the CPU first and choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from iced_x86 import Code, CpuidFeature, Decoder, FlowControl, Instruction, Mnemonic

from faultlens.inspection.instruction import formatter
from faultlens.knowledge.cpu_features import FLAGS
from faultlens.system import elf
from faultlens.system.binary import Binary

WINDOW = 4096  # bytes of code without a branch
BLOCKS = 64  # of one function
DEPTH = 4  # of calls
MAX_CODE = 16 << 20  # a second or two of decoding
SAMPLE = 64  # initialisers of one library that a quick look reads

Read = Callable[[int, int], bytes]  # (address, size) -> code
Properties = tuple[frozenset[str], int]  # flags that an instruction needs, and its FlowControl
_FEATURES = {number: name for name, number in vars(CpuidFeature).items() if isinstance(number, int)}
# An older CPU executes these as bsr and bsf: a wrong result, not a signal.
_NEVER_ILLEGAL = (Mnemonic.LZCNT, Mnemonic.TZCNT)
_QUESTIONS = (Mnemonic.CPUID, Mnemonic.XGETBV)
_PLAIN: Properties = (frozenset(), FlowControl.NEXT)
_GOES_ON = (FlowControl.NEXT, FlowControl.INDIRECT_CALL)
_BRANCHES = (FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH)
_known: dict[int, Properties] = {}  # by Code


class Need(NamedTuple):
    """An instruction that runs when the library is loaded."""

    address: int
    flags: frozenset[str]  # what it needs, as /proc/cpuinfo calls it
    text: str


def startup_needs(binary: Binary, *, all_of_it: bool = False) -> tuple[Need, ...]:
    """For each feature that the library needs when loaded the first instruction that needs it."""
    starts = binary.initialisers
    if not all_of_it:  # evenly spread: one library is mostly compiled with one set of options
        starts = starts[:: max(1, -(-len(starts) // SAMPLE))]
    return tuple(certain_needs(_code_of(binary), starts))


def unasked_needs(binary: Binary) -> tuple[Need, ...]:
    """The same for all code of a library that never asks the CPU what it can: nothing where it may choose."""
    if any("cpu" in symbol.name.lower() for symbol in binary.imports()):
        return ()
    told: frozenset[str] = frozenset()
    found: list[Need] = []
    for section in elf.sections(binary.read, binary.header):
        if section.type == elf.SHT_PROGBITS and section.flags & elf.SHF_EXECINSTR:
            for instruction in Decoder(64, binary.read(section.offset, min(section.size, MAX_CODE)), ip=section.addr):
                if instruction.mnemonic in _QUESTIONS:
                    return ()
                flags, _ = _known.get(instruction.code) or _properties(instruction)
                if not flags <= told:
                    found.append(Need(instruction.ip, flags - told, formatter().format(instruction)))
                    told |= flags
    return tuple(found)


def certain_needs(read: Read, starts: Iterable[int]) -> Iterator[Need]:
    walk = _Walk(read)
    for start in starts:
        yield from walk.function(start, DEPTH)


def _code_of(binary: Binary) -> Read:
    executable = [each for each in binary.segments if each.type == elf.PT_LOAD and each.flags & elf.PF_X]

    def read(address: int, size: int) -> bytes:
        inside = any(0 <= address - segment.vaddr < segment.filesz for segment in executable)
        return binary.at(address, size) if inside else b""

    return read


@dataclass
class _Block:
    """Code that runs from its first instruction to its last."""

    start: int
    end: int
    needs: list[Need]
    calls: list[tuple[int, int]]  # where, and what
    leads_to: list[int]  # nothing: out of the function

    def cut(self, end: int) -> None:
        """The rest is another block, because something jumps there."""
        self.end = end
        self.needs = [need for need in self.needs if need.address < end]
        self.calls = [call for call in self.calls if call[0] < end]
        self.leads_to = [end]


class _Walk:
    """Through functions of one library, each once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._seen: set[int] = set()
        self._told: frozenset[str] = frozenset()

    def function(self, start: int, depth: int) -> Iterator[Need]:
        if start in self._seen:
            return
        self._seen.add(start)
        blocks = self._blocks(start)
        for block in blocks.values():
            if (block.needs or block.calls) and not _can_avoid(block, start, blocks):
                yield from self._told_once(block.needs)
                for _, target in block.calls if depth else ():
                    yield from self.function(target, depth - 1)

    def _told_once(self, needs: list[Need]) -> Iterator[Need]:
        for need in needs:
            if not need.flags <= self._told:
                yield need._replace(flags=need.flags - self._told)
                self._told |= need.flags

    def _blocks(self, start: int) -> dict[int, _Block]:
        """The function, as far as it is read: where a block leads to one that is missing, it leads out."""
        blocks: dict[int, _Block] = {}
        waiting = [start]
        for place in waiting:
            if place not in blocks and len(blocks) < BLOCKS:
                blocks[place] = self._block(place)
                waiting += blocks[place].leads_to
        for block, following in pairwise(sorted(blocks.values(), key=lambda block: block.start)):
            if following.start < block.end:
                block.cut(following.start)
        return blocks

    def _block(self, start: int) -> _Block:
        """From `start` to the first instruction after which it may go on elsewhere.

        A call that does not return is taken for one that does: a library that ends the program is no better."""
        block = _Block(start, start, [], [], [])
        for instruction in Decoder(64, self._read(start, WINDOW), ip=start):
            properties = _known.get(instruction.code) or _properties(instruction)
            if properties is _PLAIN:
                continue
            flags, flow = properties
            if not flags <= self._told:
                block.needs.append(Need(instruction.ip, flags, formatter().format(instruction)))
            if flow == FlowControl.CALL:
                block.calls.append((instruction.ip, instruction.near_branch_target))
            elif flow not in _GOES_ON:
                block.end = instruction.next_ip
                if flow in _BRANCHES:
                    block.leads_to.append(instruction.near_branch_target)
                if flow == FlowControl.CONDITIONAL_BRANCH:
                    block.leads_to.append(instruction.next_ip)
                break
        return block


def _can_avoid(block: _Block, start: int, blocks: Mapping[int, _Block]) -> bool:
    """Whether a way from the start leads out of the function without this block."""
    reached = {block.start}
    waiting = [start]
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            if place not in blocks or not blocks[place].leads_to:
                return True
            waiting += blocks[place].leads_to
    return False


def _properties(instruction: Instruction) -> Properties:
    """Flags and flow, which depend on the code alone: remembered for it."""
    features = (_FEATURES[number] for number in instruction.cpuid_features())
    flags = frozenset(FLAGS[feature] for feature in features if feature in FLAGS)
    if instruction.mnemonic in _NEVER_ILLEGAL:
        flags = frozenset()
    flow = instruction.flow_control
    if instruction.code == Code.INVALID:
        flow = FlowControl.EXCEPTION
    elif flow == FlowControl.CALL and instruction.mnemonic != Mnemonic.CALL:  # a system call
        flow = FlowControl.NEXT
    found = (flags, flow) if (flags, flow) != _PLAIN else _PLAIN
    _known[instruction.code] = found
    return found
