"""From what was suspected of an op to what is said of it.

An op is blamed only where nothing else explains what was seen: a death without the op's code on the stack counts when
TensorFlow itself survives the same input in the same form; what only happens with sizes that no memory holds is worth
a note."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from faultlens.custom_op.fuzz import kept
from faultlens.custom_op.fuzz.minimising import Proof, Smallest
from faultlens.custom_op.fuzz.rules import FIX_OF_OVERFLOW, FIXES_OF_MISUSE, RULES
from faultlens.custom_op.fuzz.suspects import Suspect, frame_in, is_foreign, is_modest, lacks_memory
from faultlens.diagnosis.evidence.fenced import facts_of
from faultlens.errors import FaultlensError
from faultlens.op_model.arrays import Array, shape_text
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import UNKNOWN, Diagnosis, Evidence, Fix
from faultlens.records.op_finding import OpFinding, Related, Span
from faultlens.records.severity import Severity
from faultlens.report.make import make_report
from faultlens.store import folder
from faultlens.text.safe import one_line

_ADDRESS = re.compile(r",? at 0x[0-9a-f]+")
NEEDS_GUARD = "# {shows} with the guard allocator: faultlens run --hunt=tensors FILE\n"
_FORMS = {
    "eager": "called eagerly",
    "graph": "called in a graph",
    "dataset": "called in a tf.data map",
    "vectorized": "called in tf.vectorized_map",
    "compiled": "compiled by XLA",
    "threads": "called from 8 threads at once",
    "gradient": "its gradient taken",
    "repeat": "called several times",
    "leak": "called again and again",
}


def severity_of(suspect: Suspect, proof: Proof | None = None, again: bool = True) -> Severity:
    usual = RULES[suspect.rule].severity
    death = suspect.outcome.death
    if not again:  # seen once; or more often, but never twice of one input
        return "warning" if suspect.rule == "crash" and suspect.times > 1 else "note"
    if death is None:
        return usual
    unproven = proof is not None and proof.crash is None
    if suspect.rule == "hang" and unproven:
        return "note" if death.busy else "warning"  # a slow machine looks the same
    if is_modest(suspect.call):
        return usual
    if suspect.rule == "memory" or (suspect.rule == "hang" and death.busy):
        return "note"  # so much was asked for
    return "note" if suspect.rule == "crash" and lacks_memory(death.crash) else usual


def finding_of(found: Smallest, proof: Proof | None, library: Path) -> OpFinding:
    suspect = found.suspect
    rule = RULES[suspect.rule]
    crash = (proof and proof.crash) or (suspect.outcome.death and suspect.outcome.death.crash) or None
    frame = frame_in(crash, library) if crash and crash.fault else None
    return OpFinding(
        code=rule.code,
        rule=suspect.rule,
        severity=severity_of(suspect, proof, found.again),
        title=one_line(rule.title.format(op=suspect.call.op, words=words_of(found)), 400),
        span=_span(frame.file, frame.line) if frame and frame.file and frame.line else None,
        op=suspect.call.op,
        related=tuple(_blocks(suspect, library)),
        evidence=tuple(_evidence(found, proof)),
        fixes=(Fix(_fix(found)),),
        reproducer=_reproducer(suspect, proof) if proof else "",
        report=_kept(proof) if proof and proof.crash else None,
    )


def words_of(found: Smallest) -> str:
    """What the guard allocator knows goes before what the stack and the registers show."""
    suspect = found.suspect
    words = _ADDRESS.sub("", suspect.words)
    death = suspect.outcome.death
    if death is None:
        return words
    words = words.removeprefix("it ").replace("died by", "dies by", 1)
    words = words.replace(f" in op {suspect.call.op}", "", 1).replace("did not come back", "does not come back", 1)
    ending, colon, what = words.partition(": ")
    if death.touched and death.hunted and (known := _diagnosis(death.hunted)):
        colon, what = ": ", known.title
    if found.overflow:
        return f"{ending} when the product of sizes does not fit in 32 bits ({found.overflow}){colon}{what}"
    return f"{ending}{colon}{what}"


def _fix(found: Smallest) -> str:
    death = found.suspect.outcome.death
    if found.overflow:
        return FIX_OF_OVERFLOW
    return FIXES_OF_MISUSE[death.touched.misuse] if death and death.touched else RULES[found.suspect.rule].fix


def _diagnosis(crash: Crash) -> Diagnosis | None:
    return next((each for each in make_report(crash).diagnoses if each.cause != UNKNOWN), None)


def _reproducer(suspect: Suspect, proof: Proof) -> str:
    death = suspect.outcome.death
    text = kept.text_of(suspect.call.op, proof.files)
    if proof.fenced:
        return NEEDS_GUARD.format(shows="Shows") + text
    unproven = proof.crash is None and death is not None and death.touched is not None
    return NEEDS_GUARD.format(shows="May show") + text if unproven else text


def _span(path: str, line: int) -> Span:
    text = ""
    with contextlib.suppress(OSError, IndexError):
        text = Path(path).read_text(errors="replace").splitlines()[line - 1]
    column = len(text) - len(text.lstrip()) + 1
    return Span(path, line, column, line, len(text.rstrip()) + 1, text) if text else Span(path, line)


def _evidence(found: Smallest, proof: Proof | None) -> Iterator[Evidence]:
    suspect = found.suspect
    yield Evidence(f"{_FORMS.get(suspect.probe, suspect.probe)} with {call_in_words(suspect)}", "op test")
    if suspect.times > 1:
        yield Evidence(f"{suspect.times} of the inputs that were tried show the same", "op test")
    if not suspect.alone:
        once = "once, and not again" if suspect.times == 1 else "with several inputs, and with none of them again"
        after = "after other calls" if found.again else once
        yield Evidence(f"it shows {after}, not in a process of its own", "op test")
    if (death := suspect.outcome.death) and (block := death.block):
        yield Evidence(facts_of(block)[0][0], "guard allocator")
    if proof and proof.crash:
        yield Evidence(
            "the lines below were run in a new Python, which ended the same way"
            + (", under the guard allocator; without it the damage is silent" if proof.fenced else ""),
            "op test",
        )
        if first := _diagnosis(proof.crash):
            yield Evidence(f"{first.title} ({first.code} {first.cause})", "diagnosis")
    elif suspect.outcome.death and proof and proof.ran:
        yield Evidence("a new Python that ran the lines below did not end the same way", "op test")


def call_in_words(suspect: Suspect) -> str:
    parts = []
    for argument in suspect.call.arguments:
        arrays = ", ".join(_array_in_words(array) for array in argument.arrays)
        parts.append(f"{argument.name}: {f'[{arrays}]' if argument.is_list else arrays}")
    parts += [f"{each.name}={each.value!r:.60}" for each in suspect.call.settings]
    return one_line("; ".join(parts) or "no inputs", 300)


def _array_in_words(array: Array) -> str:
    values = "" if array.values is None else f" {str(list(array.values))[:60]}"
    filled = f" of {array.fill!r:.30}" if array.values is None and 0 not in array.shape else ""
    return f"{array.dtype} {shape_text(array.shape)}{filled}{values}"


def _blocks(suspect: Suspect, library: Path) -> Iterator[Related]:
    """Where in the library the block was allocated, and freed."""
    block = suspect.outcome.death.block if suspect.outcome.death else None
    for says, frames in (("allocated here", block.made), ("freed here", block.freed)) if block else ():
        for frame in frames:
            own = frame.library and Path(frame.library).name == library.name
            if own and frame.file and frame.line and not is_foreign(frame.file):
                yield Related(f"the block was {says}", _span(frame.file, frame.line))
                break


def _kept(proof: Proof) -> str | None:
    assert proof.crash is not None
    try:
        return folder.identity(folder.save(make_report(proof.crash)))
    except FaultlensError:  # it cannot be kept; what was found still counts
        return None
