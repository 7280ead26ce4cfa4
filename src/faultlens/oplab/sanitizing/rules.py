"""Which kinds of mistakes the sanitizers find, under which codes, and what is to be done about each."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.op_findings import Severity


class Rule(NamedTuple):
    code: str
    severity: Severity
    fix: str


RULES = {
    "heap-overflow": Rule("OP401", "error", "Keep the index below the number of elements of this very block."),
    "use-after-free": Rule("OP402", "error", "Use it before it is freed, or let a Tensor or std::vector own it."),
    "double-free": Rule("OP403", "error", "Free it once: let one owner (Tensor, std::unique_ptr, std::vector) do it."),
    "stack-overrun": Rule("OP404", "error", "Check the index against the array's size, or use a std::vector."),
    "stack-exhausted": Rule("OP405", "error", "Make the recursion a loop, or large local arrays a std::vector."),
    "memory-leak": Rule("OP406", "error", "Use allocate_temp or std::vector, which free on every path."),
    "unwritten-output": Rule("OP407", "error", "Write every element, or setZero() the output first."),
    "data-race": Rule("OP408", "error", "Guard it with a mutex, make it std::atomic, or keep it local to Compute."),
    "undefined-behaviour": Rule("OP409", "error", "Check the operands first, or compute in a type that holds it."),
    "wild-access": Rule("OP410", "error", "Check the pointer and what it was computed from."),
    "global-overflow": Rule("OP411", "error", "Check the index against the array's size."),
    "heap-damage": Rule("OP412", "error", "Run it with --asan and the source: it names the line that wrote."),
    "died": Rule("OP413", "error", ""),
    "uninitialised-value": Rule("OP414", "error", "Set it on every path before it is read."),
    "local-outlived": Rule("OP415", "error", "Copy what is needed: the variable ends with its function."),
    "bad-free": Rule("OP416", "error", "Free with the partner of what allocated it, and that pointer."),
    "bad-argument": Rule("OP417", "error", "Check sizes and ranges before the call."),
}  # fmt: skip
