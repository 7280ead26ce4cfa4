"""Is it custom native code that used a null pointer?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, foreign_calls, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of


class NativeNullDereference(NativeCause):
    """
    ## What it is
    Code of a custom op, an extension or a ctypes library used a pointer that is null: a lookup that found nothing,
    an allocation or a call that failed, an object that was never created.

    ## How it looks
    SIGSEGV at address 0 or a small one (the offset of a field), with a function of that library innermost.

    ## How to prove it
    The register the address was computed from holds 0. Built with `-g`, the report names the source line; look
    there for the pointer that is used without being checked.

    ## How to fix it
    Check the pointer where it is obtained and report an error: `OP_REQUIRES(ctx, table != nullptr,
    errors::NotFound(…))` in an op, a Python exception in an extension.
    """

    slug = "native-null-dereference"
    code = "FL601"
    headline = "custom native code used a null pointer"
    also_of_races = True

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if fault is None or not case.is_null or fault.access == "execute" or native_code.in_heap_code(case):
            return None
        if frame is None:
            return self._null_object(case) or self._in_numpy(case)
        if accesses.null_object(fault) and native_code.in_object_code(case) and native_code.holds_gil(case):
            strength = LIKELY
        elif frame is not case.culprit:  # Python's or TensorFlow's code died below: it may have been given the null
            strength = POSSIBLE
        elif foreign_calls.null_from_python(case):
            strength = POSSIBLE  # the null may have come from Python
        else:
            # At exit, or after an exception, it is more often something else that was gone already.
            strength = LIKELY if case.crash.exiting else STRONG
        number = case.small_number
        return self.blame(
            case,
            frame,
            strength if number is None else min(strength, POSSIBLE + 0.1),
            f"used {case.bad_pointer}" + ("" if number is None else ": null plus an offset or an index, or no pointer"),
            (f"address {fault.address:#x} is null plus the offset of a field", "siginfo") if number is None else None,
            (f"{number:#x} was taken for an address", "registers") if number is not None else None,
            (f"at {fault.instruction.text}", "instruction") if fault.instruction and fault.instruction.text else None,
            fix=safe("check the pointer before use and return an error", native_code.reports_errors(case)),
        )

    def _in_numpy(self, case: Case) -> Finding | None:
        """NumPy works on what it is given; where the program hands out no memory of its own, the bug is NumPy's."""
        sources = sources_of(case.crash)
        if case.owner != "numpy" or case.culprit is None or case.custom_libraries:
            return None
        if sources.foreign or sources.unchecked or sources.borrowed_view:
            return None
        told = "update NumPy, or do without this call"
        fix = consider(told, "report it to NumPy: https://github.com/numpy/numpy/issues, with the call and its data")
        return self.blame(case, case.culprit, LIKELY, f"used {case.bad_pointer} inside NumPy", fix=fix)

    def _null_object(self, case: Case) -> Finding | None:
        """An extension that ends in a call of Python's API is not on the stack when that call fails."""
        modules = native_code.extensions(case)
        dead = native_code.in_object_code(case)
        if not modules or dead is None or case.fault is None or not accesses.null_object(case.fault):
            return None
        if not native_code.holds_gil(case) or not case.calls(r"cfunction_|method_vectorcall"):
            return None
        return self.blame_earlier(
            case,
            LIKELY,
            "a null pointer was used as a Python object",
            (f"{dead.function} was given null: a lookup that failed was not checked", "registers"),
            fix=safe("check the results of Python's API for null before use", "PyDict_GetItemString, PyObject_GetAttr"),
        )
