from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, WEAK, Cause, Finding, evidence
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence import fenced
from faultlens.diagnosis.evidence.accesses import operand, target
from faultlens.diagnosis.evidence.addresses import file_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import explained
from faultlens.diagnosis.evidence.messages import DOUBLE_FREE, HEAP_OVERFLOW, INVALID_FREE
from faultlens.diagnosis.evidence.misfits import Misfit, misfit
from faultlens.diagnosis.evidence.tensorflow_code import activity, responsible, uses_foreign_memory
from faultlens.diagnosis.evidence.wild import at_element_of_nothing, beside_null, past_buffer
from faultlens.inspection.owners import first_owned
from faultlens.records.crash import Fault, FencedBlock


class OpOutOfBounds(Cause):
    """
    ## What it is
    An op of TensorFlow read or wrote outside of its buffers: an index, a length or a shape among its arguments does
    not fit the data, and the op does not check it.

    ## How it looks
    SIGSEGV at an address behind a buffer, often in `memcpy` or a vectorised loop called by the op. If the memory next
    to the buffer belongs to the program nothing happens at once: the results are garbage, or a later `malloc` or
    `free` finds the heap damaged and aborts.

    ## How to prove it
    The address was computed from a pointer into live memory and an index that leads out of it. Call the op alone with
    the same indices, splits and shapes.

    ## How to fix it
    Compare the indices, lengths and row splits with the sizes of the data before the call
    (`tf.debugging.assert_less`). Newer releases often reject them.
    """

    slug = "op-out-of-bounds"
    code = "FL503"
    headline = "TensorFlow left its buffers on input it should have rejected"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if case.block is not None:
            return self._by_fence(case, case.block)
        if fault is None or case.sent or case.hits_stack_end or case.custom_frame is not None:
            return None
        return self._left_buffer(case, fault) or self._damaged_heap(case, fault)

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        frame, shared = responsible(case), uses_foreign_memory(case)
        if block.misuse not in ("overflow", "underflow") or block.seen != "access" or frame is None:
            return None
        said = explained(case, self.slug)
        return Finding(
            strength=POSSIBLE + 0.05 if shared else STRONG,
            title=advice.titled(f"{advice.at_work(case)} went {fenced.place_in(block)}", said),
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                *fenced.facts_of(block),
                advice.place_evidence(case, frame),
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, *advice.argument_fixes(case, said)),
            against=(shared,) if shared else (),
            by_fence=True,
        )

    def _left_buffer(self, case: Case, fault: Fault) -> Finding | None:
        frame, address = responsible(case), target(fault)
        odd = misfit(case.given)
        of_nothing = beside_null(case) or (odd is not None and at_element_of_nothing(case))
        if frame is None or address is None or not (past_buffer(case) or of_nothing) or file_at(case.crash, address):
            return None
        shared = uses_foreign_memory(case)
        access = operand(fault)
        registers = "".join(f"; {name} is {value:#x}" for name, value in access.registers.items()) if access else ""
        said = explained(case, self.slug)
        return Finding(
            strength=_strength(case, shared, of_nothing, odd),
            title=advice.titled(
                f"{advice.at_work(case)} {'wrote' if fault.access == 'write' else 'read'} outside of its buffers",
                said,
            ),
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"`{fault.instruction.text}` went to {address:#x}{registers}", "instruction")
                if fault.instruction
                else None,
                (odd.words, "kernels in flight") if odd and not said else None,
                advice.place_evidence(case, frame),
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, *advice.argument_fixes(case, said)),
            against=(shared,) if shared else (),
        )

    def _damaged_heap(self, case: Case, fault: Fault) -> Finding | None:
        """The heap is damaged, and only TensorFlow's code could have done it; that the op did which noticed it is a
        guess, unless its inputs lead out of its buffers or it is known to."""
        complaint = case.said(HEAP_OVERFLOW) or case.said(INVALID_FREE) or case.said(DOUBLE_FREE)
        if fault.signal != "SIGABRT" or not complaint or case.custom_libraries or uses_foreign_memory(case):
            return None
        if first_owned(case.stack, "tensorflow") is None:
            return None
        odd, said = misfit(case.given), explained(case, self.slug)
        leads_out = (odd is not None and odd.outside) or bool(advice.known(case, self.slug))
        did = f"{advice.at_work(case)} may have damaged the heap: it was at work when the damage was found"
        return Finding(
            strength=LIKELY if leads_out else WEAK,
            title=advice.titled(did, said),
            op=case.op,
            evidence=evidence(
                (complaint, "glibc"),
                (odd.words, "kernels in flight") if odd and not said else None,
                ("no native code of your own is loaded, and the sources hand out no memory", "/proc/PID/maps"),
                *case.fault_evidence,
                *advice.known_evidence(case, self.slug),
            ),
            fixes=(*hunt_further(case), *advice.fixes(case, self.slug, *advice.argument_fixes(case, said))),
        )


def _strength(case: Case, shared: str | None, of_nothing: bool, odd: Misfit | None) -> float:
    if of_nothing and (odd is None or not odd.outside):
        return POSSIBLE if odd is None else LIKELY - 0.1
    if shared or case.custom_libraries or case.crash.exiting:
        return POSSIBLE + 0.05
    if activity(case) is not None:
        return POSSIBLE
    return STRONG if (odd and odd.outside) or advice.known(case, OpOutOfBounds.slug) else LIKELY + 0.05
