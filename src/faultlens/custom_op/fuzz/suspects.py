"""What is suspected of an op: an input, how it was tried, and what came of it. Pure.

Two deaths are the same suspicion when the signal, the function of the library and the words that were said agree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.custom_op.fuzz.session import Outcome
from faultlens.diagnosis.signature import signature_of
from faultlens.inspection.frames import short_function
from faultlens.op_model.op_call import Call
from faultlens.records.crash import Crash, Frame

MODEST_NUMBER, MODEST_ELEMENTS = 100_000, 10_000
NO_MEMORY = ("bad_alloc", "length_error", "bad_array_new_length")
ALIGNMENT = "Check failed: IsAligned()"  # not CheckTypeAndIsAligned(), which is on the stack of others
OVERFLOWED_SHAPE = ("num_elements", "MultiplyWithoutOverflow", "overflow")

Key = tuple[str, ...]


class Suspect(NamedTuple):
    rule: str
    call: Call
    probe: str
    options: tuple[tuple[str, Any], ...]  # of the probe
    outcome: Outcome
    words: str
    key: Key
    alone: bool = True  # it shows in a process that tried nothing else before
    times: int = 1


def suspects_of(call: Call, probe: str, options: dict[str, Any], outcome: Outcome, library: Path) -> Iterator[Suspect]:
    common = (call, probe, tuple(options.items()), outcome)
    if outcome.death is not None:
        rule = rule_of_death(outcome)
        yield Suspect(rule, *common, outcome.death.reason, (rule, *key_of_crash(outcome.death.crash, library)))
    for rule, words in outcome.problems:
        yield Suspect(rule, *common, words, (rule,))


def rule_of_death(outcome: Outcome) -> str:
    death = outcome.death
    assert death is not None
    if "broken" in outcome.told:
        return "closes-descriptors"
    if death.kind != "deadly":
        return "hang" if death.kind == "endless" else "memory"
    fault = death.crash.fault if death.crash else None
    if fault and fault.signal == "SIGSYS":
        return "signals-others"
    return "exits" if fault is None and "exit status" in death.reason else "crash"


def leaves_its_block(suspect: Suspect) -> bool:
    """A guard stands before some blocks, and behind others: the same call may meet none."""
    touched = suspect.outcome.death.touched if suspect.outcome.death else None
    return touched is not None and touched.misuse in ("overflow", "underflow")


def key_of_crash(crash: Crash | None, library: Path) -> Key:
    if crash is None or crash.fault is None:
        return ()
    signature = signature_of(crash)
    own = frame_in(crash, library)
    function = short_function(own.function) if own else signature.function
    parts = (signature.signal, function, signature.check, signature.heap, signature.thrown)
    return tuple(each or "" for each in parts)


def frame_in(crash: Crash, library: Path) -> Frame | None:
    """The innermost call of the library's code on the stack that crashed; with its line, if any has one."""
    thread = crash.crashed_thread
    frames = [
        frame
        for frame in (thread.frames if thread else ())
        if frame.kind == "native" and frame.library and Path(frame.library).name == library.name
    ]
    with_line = (frame for frame in frames if frame.line and frame.file and not is_foreign(frame.file))
    return next(with_line, None) or next(iter(frames), None)


def is_foreign(path: str) -> bool:
    """Headers of others that were compiled into the library."""
    return "/include/" in path or "/usr/" in path[:5]


def is_modest(call: Call) -> bool:
    """Neither large numbers nor many elements: whoever takes long or much for it does so without need."""
    numbers = [number for each in call.settings for number in _numbers(each.value)]
    numbers += [number for array in call.arrays() for number in _numbers(array.values or array.fill)]
    elements = sum(math.prod(array.shape) for array in call.arrays())
    longest = max((size for array in call.arrays() for size in array.shape), default=0)
    small = all(math.isfinite(abs(each)) and abs(each) <= MODEST_NUMBER for each in numbers)
    return small and elements <= MODEST_ELEMENTS and longest <= MODEST_ELEMENTS and _short(call)


def _short(call: Call) -> bool:
    texts = [value for array in call.arrays() for value in (array.values or (array.fill,)) if isinstance(value, bytes)]
    return sum(map(len, texts)) <= MODEST_ELEMENTS


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        yield abs(value)


def lacks_memory(crash: Crash | None) -> bool:
    """It died because so much memory, or so large a tensor, cannot be."""
    if crash is None:
        return False
    signature = signature_of(crash)
    if signature.thrown and any(each in signature.thrown for each in NO_MEMORY):
        return True
    if any(any(each in exception.type for each in NO_MEMORY) for exception in crash.exceptions[:1]):
        return True
    said = crash.output.stderr or ""
    return "tensor_shape" in (signature.check or "") and any(each in said for each in OVERFLOWED_SHAPE)


def wants_alignment(crash: Crash | None) -> bool:
    """TensorFlow itself refuses such memory."""
    return crash is not None and ALIGNMENT in (crash.output.stderr or "")
