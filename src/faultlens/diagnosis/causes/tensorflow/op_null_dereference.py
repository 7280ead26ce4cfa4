from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence.accesses import target
from faultlens.diagnosis.evidence.addresses import NULL_PAGE
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import explained
from faultlens.diagnosis.evidence.misfits import misfit
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.tensorflow_code import activity, converting, responsible, uses_foreign_memory
from faultlens.diagnosis.evidence.wild import at_element_of_nothing, beside_null, through_bad_object

_DESTROYS = r"(?:^|::)(\w+)(?:<.*>)?::~\1\("
_OF_DESTROYED = (
    consider(
        "use the object before it goes away, or do not make it",
        "its destructor expects what start() or the first call sets up: dropped unused or after a failure, it dies",
    ),
)


class OpNullDereference(Cause):
    """
    ## What it is
    TensorFlow's C++ code followed a pointer that leads nowhere: null, or an object that was never made or is gone.
    It happens when an op does not reject input it cannot handle (an empty tensor, a missing resource, an attribute of
    the wrong kind), or when an object is destroyed in a state its destructor does not expect.

    ## How it looks
    SIGSEGV without any message. The address is 0 or very small: null plus the offset of a member. For an object that
    is gone the address is garbage, and the instruction reads a member (`mov rax, [rdi+8]`), no array element.

    ## How to prove it
    The fault address and the instruction. The first `…Op::Compute` on the native stack, or the generated Python
    function, names the op. Call it alone with the same arguments.

    ## How to fix it
    Check the arguments before the call: emptiness, rank, dtype lists, handles. Newer releases often reject them.
    """

    slug = "op-null-dereference"
    code = "FL502"
    headline = "TensorFlow followed a null pointer on input it should have rejected"

    def examine(self, case: Case) -> Finding | None:
        fault, frame = case.fault, responsible(case)
        if fault is None or fault.signal != "SIGSEGV" or frame is None or case.hits_stack_end or case.sent:
            return None
        null = case.is_null
        if not null and not through_bad_object(case):
            return None
        pointer = case.bad_pointer if null else "a pointer to no object"
        address = target(fault)
        instruction = fault.instruction
        said = explained(case, self.slug)
        destroyed = case.calls(_DESTROYS) is not None and said is None
        where = "while it was destroyed" if destroyed else "inside TensorFlow"
        return Finding(
            strength=_strength(case, null),
            title=advice.titled(f"{advice.at_work(case)} followed {pointer} {where}", said),
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"`{instruction.text}` went to {address:#x}: {pointer}", "instruction")
                if instruction and address is not None
                else None,
                (
                    f"it was reading the Python arguments of the call, in {step}: one is not of the kind it takes",
                    "stack",
                )
                if (step := converting(case))
                else None,
                advice.place_evidence(case, frame),
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, *(_OF_DESTROYED if destroyed else advice.argument_fixes(case, said))),
            against=tuple(filter(None, [None if null else uses_foreign_memory(case)])),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.fault is None or case.fault.signal != "SIGSEGV" or case.is_null:
            return None
        address = target(case.fault)
        return f"the address {address:#x} is far from null" if address is not None and address >= NULL_PAGE else None


def _strength(case: Case, null: bool) -> float:
    if (at_element_of_nothing(case) and misfit(case.given)) or beside_null(case):
        return POSSIBLE + 0.1  # what is empty lies at null: an index that leads out of it looks alike
    if activity(case) is not None:
        return POSSIBLE + 0.05  # the compiler's own pointers: compiler-bug says more
    if not null and case.custom_libraries and sources_of(case.crash).foreign:
        return POSSIBLE  # a library that Python hands memory to may have overwritten the object
    if case.custom_libraries or case.owner == "python":
        return LIKELY
    return STRONG if null else LIKELY + 0.05
