"""Did an extension module spoil the reference count of a Python object?"""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Finding, Words, consider, evidence, join
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.owners import owner_of

_PYTHON_NOTICED = re.compile(
    r"Fatal Python error: [^\n]*(?:deallocating (?:None|True|False)|[Nn]egative ?[Rr]ef|refcount|_Py_Dealloc"
    r"|bool_dealloc|none_dealloc|invalid object|GC object already tracked)[^\n]*|has negative ref count[^\n]*"
)


_SPOILED = "a Python object was used after it was freed: its reference count was spoiled"
_CONTAINER = (
    r"^(?:tuple(?:hash|repr|richcompare|contains|traverse|dealloc)|list_(?:repr|richcompare|contains|dealloc))$"
)


class NativeRefcount(NativeCause):
    """
    ## What it is
    An extension module gives back a reference that it does not own (`Py_DECREF` of a borrowed one), or keeps an
    object without taking a reference. The object is freed while Python still uses it.

    ## How it looks
    Death far from the extension: in the garbage collector, in `dealloc` functions, in attribute access, or at exit;
    or `Fatal Python error: none_dealloc: deallocating None`.

    ## How to prove it
    `sys.getrefcount(x)` before and after the call of the extension must be the same. A debug build of Python
    (`python3-dbg`, `-X dev`) stops sooner.

    ## How to fix it
    Compare each `Py_INCREF`/`Py_DECREF` with the documentation of the functions used: which references are borrowed
    (`PyArg_ParseTuple "O"`, `PyList_GetItem`), which are stolen (`PyTuple_SET_ITEM`), which are new. pybind11 or
    nanobind do this for you.
    """

    slug = "native-refcount"
    code = "FL613"
    headline = "an extension spoiled the reference count of a Python object"
    words = Words(
        _PYTHON_NOTICED,
        "an extension spoiled a reference count: {said}",
        consider("look for a Py_DECREF of a borrowed reference", "in the extension that was imported last"),
    )

    def examine(self, case: Case) -> Finding | None:
        modules, sources = native_code.extensions(case), sources_of(case.crash)
        by_hand = sources.called("Py_DecRef", "_Py_Dealloc") or sources.called("Py_IncRef")
        said = case.said(_PYTHON_NOTICED) if case.signal == "SIGABRT" else None
        if case.fault is None or not (modules or said or by_hand):
            return None
        dead, jumped = native_code.in_object_code(case), self._jumped_from_python(case)
        gone = by_hand is not None and accesses.is_wild(case.fault)
        if not (said or ((dead or jumped or gone) and case.signal in ("SIGSEGV", "SIGBUS"))) or self._other_reason(
            case
        ):
            return None
        frame, names = native_code.suspect(case), native_code.named(modules)
        strength = (STRONG if modules or by_hand else POSSIBLE) if said else LIKELY + 0.05
        facts = (
            (f"Python noticed: {said}", "stderr") if said else None,
            (f"{names} is an extension module, which handles references itself", "source") if modules else None,
            (f"{by_hand.place} changes a reference count by hand: {by_hand.name}", "source") if by_hand else None,
            (f"it died in {dead.function}, where Python handles objects", "native stack") if dead else None,
            ("Python jumped through the type of an object that is no object any more", "siginfo") if jumped else None,
            (f"{native_code.place(frame)} was at work", "native stack") if frame else None,
        )
        if by_hand is not None and not modules:
            return self._by_hand(case, by_hand, strength, *facts)
        if not case.custom_libraries:
            return self._by_somebody(case, strength, *facts)
        where = f" in {names}" if names else ""
        return self.blame_earlier(
            case,
            strength,
            _SPOILED,
            *facts,
            fix=consider(f"check every Py_DECREF and every kept object{where}", "borrowed references are not yours"),
        )

    def _by_hand(self, case: Case, use: Use, strength: float, *facts: tuple[str, str] | None) -> Finding:
        return Finding(
            strength=strength,
            title=f"{_SPOILED}, most likely by {use.name} at {use.place}",
            evidence=join(case.fault_evidence, evidence(*facts)),
            fixes=(
                consider(f"leave reference counts to Python: do without {use.name} at {use.place}"),
                consider("give back only references that are yours", "each Py_DecRef needs a Py_IncRef before it"),
            ),
            location=use.location,
        )

    def _by_somebody(self, case: Case, strength: float, *facts: tuple[str, str] | None) -> Finding:
        """Python noticed it; no extension of the program's own is loaded, and its sources do no such thing."""
        return Finding(
            strength=strength,
            title=_SPOILED,
            evidence=join(case.fault_evidence, evidence(*facts)),
            fixes=(consider("find out which installed extension handles the object", "run it under python -X dev"),),
        )

    def _jumped_from_python(self, case: Case) -> bool:
        caller = next((frame for frame in case.native_stack if owner_of(frame) != "unknown"), None)
        executed = case.fault is not None and case.fault.access == "execute"
        return executed and caller is not None and owner_of(caller) == "python"

    def _other_reason(self, case: Case) -> bool:
        """Without the GIL, with an overwritten heap, or in a C++ exception Python's code dies too."""
        thread = case.crash.crashed_thread
        without_gil = case.is_null and thread is not None and not thread.holds_gil
        overwritten = case.fault is not None and accesses.holds_data(case.fault)
        # Python's containers never hold null, unless they are gone themselves.
        container = case.calls(_CONTAINER) is not None and bool(native_code.extensions(case))
        null = case.fault is not None and accesses.null_object(case.fault) and not container
        return without_gil or overwritten or null or case.calls(r"translate_exception|closure_fcn") is not None
