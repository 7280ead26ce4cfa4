from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Heap, Input, Pointer, Retyped, Text, Vector, is_tensor
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import is_constant, linear
from faultlens.custom_op.check.interpret.symbols import ONE, UNKNOWN, ZERO, Int, Loop, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.custom_op.check.syntax.types import size_of
from faultlens.records.op_finding import OpFinding

_LOADS = re.compile(
    r"^_mm(256|512)?_(?:mask_|maskz_)?(?:load|store|stream|stream_load)_(?:ps|pd|si128|si256|si512|epi32|epi64)$"
)
_VECTORS = re.compile(r"\b__m(128|256|512)[id]?\b")
_ALIGNED_MOVES = re.compile(r"\b(v?mov(?:aps|apd|dqa\w*|ntps|ntpd|ntdqa?))\b[^\\\n;\"]*")
_OPERAND = re.compile(r"\(%(\d+)\)")
_REGISTERS = {"%zmm": 64, "%ymm": 32, "%xmm": 16}
_WIDTHS = {None: 16, "": 16, "128": 16, "256": 32, "512": 64}


class UnalignedAccess(Rule):
    """`_mm256_load_ps`, a cast to `__m256*` and Eigen maps with `Aligned` need addresses that are multiples of 32 (16,
    64) bytes, or the process ends with SIGSEGV. TensorFlow aligns the begin of a tensor's buffer to 64 bytes, and
    `flat<T>()` ends the process where it is not; but `data() + 1`, `data() + row * columns`, a slice that is read
    with `unaligned_flat` or `data()`, and the memory of `std::vector` and `malloc` (16 bytes) are not.

    ```cpp
    __m256 v = _mm256_loadu_ps(p + i);   // as fast on every CPU with AVX2 where the address happens to be aligned
    ```
    """

    code = "OP119"
    slug = "unaligned-access"
    severity = "error"
    headline = "aligned vector instructions on memory that may not be aligned"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("call")):
            found = _LOADS.match(event.name)
            mapped = re.fullmatch(r"Aligned(\d+)", event.name)
            if mapped and event.by and (why := _why(event.by[0], int(mapped[1]))):
                says = f"an aligned Eigen::Map needs an address that is a multiple of {mapped[1]}, {why}"
                yield self._finding(event, summary, says, "Eigen::Map<…, Eigen::Unaligned>")
            if event.name in ("__builtin_assume_aligned", "assume_aligned") and event.by:
                width = _promised(event)
                if why := _why(event.by[0], width):
                    yield self._finding(event, summary, f"this promises a multiple of {width}, {why}", "")
            if found and event.by:
                width = _WIDTHS[found[1]]
                why = _why(event.by[0], width)
                if why:
                    better = (
                        event.name.replace("_load_", "_loadu_")
                        .replace("_store_", "_storeu_")
                        .replace("_stream_", "_storeu_")
                    )
                    yield self._finding(
                        event,
                        summary,
                        f"`{event.name}` needs an address that is a multiple of {width}, {why}",
                        f"{better}(…)",
                    )
        for event in good(summary.of("cast")):
            found = _VECTORS.search(event.detail)
            if found and "*" in event.detail and not _is_given(event.node):
                width = _WIDTHS[found[1]]
                why = _why(event.on, width)
                if why:
                    yield self._finding(
                        event,
                        summary,
                        f"a `{event.detail}` must be a multiple of {width}, {why}",
                        "_mm256_loadu_ps(p)",
                    )
        for event in good(summary.of("call")):
            for instruction in _ALIGNED_MOVES.finditer(event.node.text if event.name == "asm" else ""):
                place = _OPERAND.search(instruction[0])
                pointer = event.by[int(place[1])] if place and int(place[1]) < len(event.by) else None
                width = next((width for name, width in _REGISTERS.items() if name in instruction[0]), 16)
                if pointer and (why := _why(pointer, width)):
                    says = f"`{instruction[1]}` needs an address that is a multiple of {width}, {why}"
                    yield self._finding(event, summary, says, "vmovups (%0), %%ymm0")

    def _finding(self, event: Event, summary: FunctionSummary, title: str, code: str) -> OpFinding:
        return self.found(event, title, "use the form for any address", code, summary=summary)


def _is_given(node: Node) -> bool:
    """_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)): the instruction decides what it needs."""
    call = next((each for each in node.above() if each.kind == "call_expression"), None)
    return call is not None and name_of(call.get("function")).startswith("_mm")


def _promised(event: Event) -> int:
    """16 of __builtin_assume_aligned(p, 16)."""
    width = event.by[1] if len(event.by) > 1 else UNKNOWN
    return width.value if isinstance(width, Int) else 32


def _why(pointer: Symbol, width: int) -> str:
    """Why the address is not known to be a multiple of the width; "" where it is, or where nothing is known."""
    if isinstance(pointer, (Heap, Vector)):
        return "and the heap gives multiples of 16" if width > 16 else ""
    if not isinstance(pointer, Pointer):
        return ""
    buffer, offset = pointer.buffer, pointer.offset
    if isinstance(buffer, Retyped):
        if isinstance(buffer.pointer, Pointer) and offset == buffer.pointer.offset:  # not moved since the cast
            return _why(buffer.pointer, width)
        buffer = buffer.buffer
    if isinstance(buffer, Text):
        return "and text begins anywhere"
    if isinstance(buffer, (Heap, Vector)) and width > 16:
        return "and the heap gives multiples of 16"
    if not is_tensor(buffer):
        return ""
    if pointer.type in ("void", ""):
        return "and the data of a slice is not" if offset != ZERO or isinstance(buffer, Input) else ""
    return _why_moved(offset, size_of(pointer.type) or 4, width)


def _why_moved(offset: Symbol, size: int, width: int) -> str:
    """Why elements of a size, that far behind an aligned address, are not aligned."""
    for atom, count in linear(offset).items():
        if atom == ONE:
            if count * size % width:
                return f"and this one is moved by {count * size} bytes"
        elif isinstance(atom, Loop):
            if count * atom.step * size % width:
                return "and the steps are shorter than that"
            begin = linear(atom.start)
            if not is_constant(begin) or begin.get(ONE, 0) * size % width:
                return "and the loop begins anywhere"
        elif count * size % width:
            return "and this one depends on a size or a value"
    return ""
