"""Did Python hand a null pointer to native code?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Finding, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, written
from faultlens.diagnosis.evidence import foreign_calls
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.inspection.owners import owner_of
from faultlens.records.diagnosis import Fix


class NullPointerPassed(BufferCause):
    """
    ## What it is
    Python called a C function with a null pointer: `None`, `c_void_p()`, `POINTER(T)()`, or the result of a call
    that found nothing. ctypes hands it on without asking.

    ## How it looks
    SIGSEGV at address 0 or a small one, in the function that ctypes called (or in libc: `strlen`, `memmove`).

    ## How to prove it
    The argument's register is 0, and nothing but the called function lies between the crash and ctypes.

    ## How to fix it
    Check the result of functions that may return null before passing it on (`if not handle: raise …`); set
    `argtypes` so that wrong types are refused.
    """

    slug = "null-pointer-passed"
    code = "FL709"
    headline = "Python handed a null pointer to native code"

    def examine(self, case: Case) -> Finding | None:
        fault, entry = case.fault, foreign_calls.called(case)
        if fault is None or not case.is_null or case.small_number is not None or fault.access == "execute":
            return None
        if value := self._value_of_nothing(case):
            return value
        if entry is None:
            return self._view_of_nothing(case)
        if not foreign_calls.died_in_it(case):
            return None
        call, register = foreign_calls.call_in_sources(case), foreign_calls.handed_in(case)
        name, written_as = foreign_calls.name_of(case), foreign_calls.argument_in(case, register)
        if foreign_calls.does_as_told(entry):
            strength = STRONG
        elif owner_of(entry) == "python" or (call is not None and not call.maybe_null):
            return None
        elif call is not None and call.null:
            strength = STRONG
        else:
            strength = LIKELY - 0.05 if register else POSSIBLE - 0.1
        return self.found(
            case,
            strength,
            f"Python handed a null pointer to {name}" + (f": `{written_as}` is null" if written_as else ""),
            (f"{name} was called directly by ctypes", "native stack"),
            (f"the argument in {register} is the null pointer that was used", "registers") if register else None,
            (f"{call.place}: an argument of {call.name} is null", "source") if call and call.null else None,
            fixes=(
                safe("check the pointer before the call", f"if not {written_as or 'handle'}: raise RuntimeError(…)"),
                *_declare(case),
            ),
        )

    def _value_of_nothing(self, case: Case) -> Finding | None:
        """`c_long.from_address(0).value`, `pointer.contents.field`: ctypes itself reads or writes the value."""
        if foreign_calls.by_ctypes_itself(case) is None:
            return None
        return self.found(
            case,
            STRONG,
            "a ctypes value lies at a null address",
            ("ctypes itself read or wrote it, with no call of a C function in between", "native stack"),
            (f"address {case.fault.address or 0:#x} is null plus an offset" if case.fault else "", "siginfo"),
            fixes=(safe("check the address or pointer before using what it points to", "if not pointer: raise …"),),
        )

    def _view_of_nothing(self, case: Case) -> Finding | None:
        """An array made of a null address: NumPy, or a copy into TensorFlow, is the first to use it."""
        view = sources_of(case.crash).addressed_view
        copying = [owner_of(frame) for frame in case.native_stack[:2]]
        if view is None or "numpy" not in copying:
            return None
        return self.found(
            case,
            LIKELY,
            f"{view.name} was given a null address",
            written(view, "reaches memory by its bare address"),
            (f"address {case.fault.address or 0:#x} is null plus an offset" if case.fault else "", "siginfo"),
            fixes=(safe("check the address before making a view of it"),),
        )


def _declare(case: Case) -> tuple[Fix, ...]:
    """A call whose types are known already: ctypes' own functions, and what the sources declare."""
    call = foreign_calls.call_in_sources(case)
    if call is None or call.raw or call.name in sources_of(case.crash).typed_arguments:
        return ()
    return (safe("declare argtypes, so that ctypes refuses what is not a pointer", f"lib.{call.name}.argtypes = […]"),)
