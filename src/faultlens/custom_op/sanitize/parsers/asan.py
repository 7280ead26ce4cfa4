"""What AddressSanitizer and its LeakSanitizer wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack, bytes_of, sections, stacks_of

TOOL = "AddressSanitizer"
_BEGIN = re.compile(r"^==\d+==ERROR: (AddressSanitizer|LeakSanitizer): (.*)$")
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+) at")
_SIGNAL_ACCESS = re.compile(r"The signal is caused by a (READ|WRITE|UNKNOWN) memory access")
# GCC 12: "0 bytes to the right of 40-byte region"; newer: "0 bytes after 40-byte region".
_REGION = re.compile(
    r"is located (\d+) bytes (to the right of|after|to the left of|before|inside of) (\d+)-byte region"
)
_VARIABLE = re.compile(r"^\s+\[\d+, \d+\) '(\S+)'(?: \(line (\d+)\))? <== Memory access at offset \d+ (.*)$")
_GLOBAL = re.compile(r"is located (\d+) bytes .* of global variable '([^']+)'.* of size (\d+)")
_LEAK = re.compile(r"^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:")
_SIZE = re.compile(r"\(size=(-?\d+)\)")
_SIDES = {
    "to the right of": "past the end of",
    "after": "past the end of",
    "to the left of": "before the start of",
    "before": "before the start of",
    "inside of": "into",
}
_RULES = {
    "heap-buffer-overflow": "heap-overflow",
    "container-overflow": "heap-overflow",
    "intra-object-overflow": "heap-overflow",
    "heap-use-after-free": "use-after-free",
    "use-after-poison": "use-after-free",
    "attempting double-free": "double-free",
    "attempting free": "bad-free",
    "alloc-dealloc-mismatch": "bad-free",
    "new-delete-type-mismatch": "bad-free",
    "stack-buffer-overflow": "stack-overrun",
    "stack-buffer-underflow": "stack-overrun",
    "dynamic-stack-buffer-overflow": "stack-overrun",
    "stack-overflow": "stack-exhausted",
    "stack-use-after-return": "local-outlived",
    "stack-use-after-scope": "local-outlived",
    "global-buffer-overflow": "global-overflow",
    "negative-size-param": "bad-argument",
    "calloc-overflow": "bad-argument",
    "allocation-size-too-big": "bad-argument",
    "SEGV": "wild-access",
    "BUS": "wild-access",
    "FPE": "undefined-behaviour",
    "ILL": "died",
    "ABRT": "died",
}
_TITLES = {
    "double-free": "memory is freed a second time",
    "bad-free": "memory is freed that was not allocated that way",
    "stack-exhausted": "the stack is used up: recursion without end, or local arrays that are too large",
}


def parse(text: str) -> Iterator[Reported]:
    order = 0
    for head, lines in sections(text, _BEGIN):
        if head[1] == "LeakSanitizer":
            yield from _leaks(lines)
        elif reported := _error(head[2], lines, order):
            order += 1
            yield reported


def _error(kind: str, lines: Sequence[str], order: int) -> Reported | None:
    if kind.startswith("memcpy-param-overlap") or "-param-overlap:" in kind:
        rule = "bad-argument"
    else:
        rule = next((rule for name, rule in _RULES.items() if kind.startswith(name)), "")
    if not rule:
        return None
    stacks = list(stacks_of(lines))
    frames = stacks[0][1] if stacks else ()
    others = [Stack(says, stack) for heading, stack in stacks[1:] if (says := _says(heading))]
    return Reported(
        rule=rule,
        words=_words(rule, kind, lines),
        tool=TOOL,
        frames=frames,
        others=tuple(others),
        facts=(re.split(r" on (unknown )?address| on 0x|[:(]", kind)[0].strip(),),
        noted="asan",
        order=order,
    )


def _says(heading: str) -> str:
    if heading.startswith("freed by"):
        return "freed here"
    if "allocated by" in heading:
        return "allocated here"
    if "is located in stack of" in heading:
        return "the local variables of this function"
    return ""


def _words(rule: str, kind: str, lines: Sequence[str]) -> str:
    access = next((found for line in lines if (found := _ACCESS.match(line))), None)
    what = f"{access[1].lower()} of {bytes_of(access[2])}" if access else "access"
    if rule == "stack-overrun":
        return _overrun(what, lines)
    if rule in _TITLES:
        return _TITLES[rule]
    if rule == "wild-access":
        signal = next((found for line in lines if (found := _SIGNAL_ACCESS.search(line))), None)
        verb = {"READ": "read of", "WRITE": "write to"}.get(signal[1] if signal else "", "access to")
        if any("high value address" in line for line in lines):  # the CPU tells no address
            return f"{verb} what is not an address, or not aligned as the instruction needs it"
        null = any("zero page" in line for line in lines)
        return f"{verb} {'a null pointer' if null else 'an address that is not mapped'}"
    if kind.startswith(("ABRT", "ILL")):
        return "the program aborts: a CHECK that fails, an exception that nobody catches, or a trap"
    if kind.startswith("FPE"):
        return "division of integers by zero"
    if "-param-overlap" in kind:
        return f"{kind.split('-')[0]} between ranges that overlap"
    if found := _SIZE.search(kind):
        return f"a negative size ({found[1]})"
    if region := next((found for line in lines if (found := _REGION.search(line))), None):
        distance, side, size = region.groups()
        block = "a freed block" if rule == "use-after-free" else "a block"
        return f"{what}, {bytes_of(distance)} {_SIDES[side]} {block} of {bytes_of(size)}"
    if region := next((found for line in lines if (found := _GLOBAL.search(line))), None):
        return f"{what}, {bytes_of(region[1])} off the global variable {region[2]} of {bytes_of(region[3])}"
    return f"{what}: {kind.split(' on ')[0]}"


def _overrun(what: str, lines: Sequence[str]) -> str:
    if found := next((found for line in lines if (found := _VARIABLE.match(line))), None):
        side = "before the start of" if "underflows" in found[3] else "past the end of"
        where = f" (line {found[2]})" if found[2] else ""
        return f"{what} {side} the local variable {found[1]}{where}"
    return f"{what} beyond a local variable"


def _leaks(lines: Sequence[str]) -> Iterator[Reported]:
    """Indirect ones are lost because their owner is."""
    for heading, frames in stacks_of(lines):
        found = _LEAK.match(heading)
        if not found or found[1] == "Indirect" or is_kernel_itself(frames):
            continue
        count = int(found[3])
        words = f"{bytes_of(found[2])} are never freed" + (f", in {count:,} blocks" if count > 1 else "")
        yield Reported(
            "memory-leak", words, "LeakSanitizer", frames, facts=(heading.removesuffix(":"),), weak=count == 1
        )


def is_kernel_itself(frames: Sequence[Frame]) -> bool:
    """Made by the factory of REGISTER_KERNEL_BUILDER: TensorFlow owns it."""
    named = [frame.function for frame in frames[:4]]
    return any("CreateOpKernel" in name or "InitKernel" in name for name in named) and not any(
        "::Compute" in name for name in named
    )
