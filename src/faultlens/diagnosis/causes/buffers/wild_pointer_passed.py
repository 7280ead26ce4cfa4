"""Did Python use, or hand to native code, a pointer that leads nowhere?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, carried_out, written
from faultlens.diagnosis.evidence import accesses, foreign_calls, views
from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.diagnosis.evidence.views import Structure
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Fault
from faultlens.records.diagnosis import Fix

_ORDINALS = dict(zip(accesses.ARGUMENT_REGISTERS, ("first", "second", "third", "fourth"), strict=True))
_RESULT = "rax"  # where functions like memset keep their destination, which they return


class WildPointerPassed(BufferCause):
    """
    ## What it is
    Python gave ctypes an address at which there is no memory: an integer that is no pointer (an index, a count, a
    handle, an enum), an address with a wrong offset, one that is stale, or one that another process or another run had
    told. ctypes uses it without asking.

    ## How it looks
    SIGSEGV in the function that ctypes called (`memset`, `memmove`, `strlen`), or in ctypes itself where the value of
    `from_address`, `cast(…)[0]` or `pointer.contents` is used. The line that is shown is where it happened.

    ## How to prove it
    Print the address on the line before, as `hex(address)`: it is the one in the report, and no line of
    `/proc/self/maps` includes it.

    ## How to fix it
    Follow the address to where it is made. Declare `restype` and `argtypes` of the functions that it comes from; hand
    over the object (`byref(buffer)`, `array.ctypes.data_as(…)`) and not a number.
    """

    slug = "wild-pointer-passed"
    code = "FL711"
    headline = "Python used a pointer that leads nowhere"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if fault is None or fault.signal != "SIGSEGV" or case.block is not None or case.hits_stack_end:
            return None
        if (address := foreign_calls.calls_nowhere(case)) is not None:
            return self._called(case, address)
        if case.small_number is not None:
            return self._number(case, fault, case.small_number) if fault.access != "execute" else None
        pointer = accesses.pointer(fault)
        if fault.access == "execute" or pointer is None or not accesses.leads_nowhere(case.crash, pointer):
            return None
        if accesses.ran_off(case.crash, pointer) or accesses.started_inside(case.crash, fault):
            return None
        if accesses.cut_pointer(case.crash, fault) or accesses.is_half(fault):
            return None  # it lost its upper half
        if foreign_calls.by_ctypes_itself(case):
            what = "a ctypes object or pointer was used that lies at"
            how = ("ctypes itself used it, with no call of a C function in between", "native stack")
            return self._leads_nowhere(case, _strength(case, pointer), what, pointer, how)
        return self._handed_over(case, fault, pointer) or self._viewed(case, pointer)

    def _number(self, case: Case, fault: Fault, number: int) -> Finding | None:
        """Too small for an address: nothing is ever mapped there."""
        used = case.bad_pointer
        if foreign_calls.by_ctypes_itself(case):
            how = ("ctypes itself used it, with no call of a C function in between", "native stack")
            what = (
                f"a ctypes value lies at {number:#x}: a small number was taken for an address, or a null object has it"
            )
            return self._no_address(case, STRONG, what, number, how)
        entry, view = foreign_calls.called(case), sources_of(case.crash).addressed_view
        if entry is None:
            if view is None or not any(owner_of(frame) == "numpy" for frame in case.native_stack[:2]):
                return None
            bare = written(view, "reaches memory by its bare address")
            return self._no_address(case, LIKELY, f"{view.name} was given {used}", number, bare)
        argument, call = _argument(case, fault, number), foreign_calls.call_in_sources(case)
        if not foreign_calls.died_in_it(case):
            return None
        structure = views.structure_given(case.crash, call) if argument is None else None
        if structure is not None and call is not None:
            return self._laid_out(case, number, call, structure)
        if foreign_calls.does_as_told(entry):
            strength = STRONG
        elif argument is None or _beside_null(case, fault, call):
            return None
        else:  # the function may have computed it
            strength = STRONG if call is not None and number in call.numbers else LIKELY - 0.05
        name = foreign_calls.name_of(case)
        called = f"{name} was called directly by ctypes"
        how = (f"{called}, and its {argument} argument is that number", "registers") if argument else (called, "stack")
        return self._no_address(case, strength, f"Python handed {name} {used}", number, how)

    def _laid_out(self, case: Case, number: int, call: Use, structure: Structure) -> Finding:
        """A member that C takes for a pointer is another one on Python's side."""
        known = number in structure.numbers
        return self.found(
            case,
            LIKELY + 0.05 if known else POSSIBLE + 0.05,
            f"{call.name} took {number:#x} for a pointer, out of `{structure.variable}`, which Python filled: "
            f"the fields of {structure.name} are not laid out as in C",
            (f"{call.place}: {call.name} is given `{structure.variable}`, a {structure.name}", "source"),
            (f"{number} is a number that `{structure.variable}` was filled with", "source") if known else None,
            (f"{number:#x} is {number}: nothing is ever mapped so low", "memory map"),
            fixes=(
                safe(
                    f"compare {structure.name}._fields_ with the structure in the header",
                    "same order, same widths (c_int64 for int64_t, c_size_t for size_t), none left out",
                ),
            ),
        )

    def _no_address(self, case: Case, strength: float, title: str, number: int, how: tuple[str, str] | None) -> Finding:
        call = foreign_calls.call_in_sources(case)
        written_out = call is not None and number in call.numbers
        return self.found(
            case,
            strength,
            title,
            how,
            (f"{number:#x} is {number}: nothing is ever mapped so low", "memory map"),
            (f"{call.place}: an argument of {call.name} is {number}", "source") if call and written_out else None,
            fixes=(
                safe(
                    "hand over a pointer where one is expected",
                    "an index, a count, a handle or an enum was passed, or a field of an object that is null",
                ),
                consider("hand over the object, not a number", "byref(buffer), array.ctypes.data_as(…)"),
            ),
        )

    def _handed_over(self, case: Case, fault: Fault, pointer: int) -> Finding | None:
        entry = foreign_calls.called(case)
        if entry is None or not foreign_calls.died_in_it(case):
            return None
        argument = _argument(case, fault, pointer)
        if foreign_calls.does_as_told(entry) or owner_of(entry) == "python":
            strength = _strength(case, pointer) if argument else min(_strength(case, pointer), LIKELY)
        elif argument and carried_out(case):
            strength = min(_strength(case, pointer), POSSIBLE + 0.1)  # the function may have made it up by itself
        else:
            return None
        name = foreign_calls.name_of(case)
        what = f"Python handed {name} a pointer to"
        called = (f"{name} was called directly by ctypes", "native stack")
        how = (f"{called[0]}, and its {argument} argument is that pointer", "registers") if argument else called
        return self._leads_nowhere(case, strength, what, pointer, how)

    def _viewed(self, case: Case, pointer: int) -> Finding | None:
        """An array made of a bare address: NumPy is the first to use it."""
        view = sources_of(case.crash).addressed_view
        numpy = any(owner_of(frame) == "numpy" for frame in case.native_stack[:2])
        if view is None or not numpy or _strength(case, pointer) < STRONG:
            return None
        how = written(view, "reaches memory by its bare address")
        return self._leads_nowhere(case, LIKELY, f"{view.name} made a view of", pointer, how)

    def _called(self, case: Case, address: int) -> Finding:
        return self.found(
            case,
            STRONG,
            f"Python called a function at {address:#x} through ctypes, where there is no code",
            ("ctypes itself called that address", "registers"),
            fixes=(
                safe("check the address that the function object was made of", "CFUNCTYPE(…)(address)"),
                consider("take functions from their library by name", "a lookup that fails raises AttributeError"),
            ),
        )

    def _leads_nowhere(
        self, case: Case, strength: float, what: str, pointer: int, how: tuple[str, str] | None
    ) -> Finding:
        nothing = "which is not an address at all" if pointer >= CANONICAL_TOP else "where nothing is mapped"
        mapped = "beyond what a program can map" if pointer >= CANONICAL_TOP else "in no line of the memory map"
        return self.found(
            case,
            strength,
            f"{what} {pointer:#x}, {nothing}",
            how,
            (f"{pointer:#x} is {mapped}", "memory map"),
            fixes=_fixes(case),
        )


def _strength(case: Case, pointer: int) -> float:
    """What lies among memory may have been there before, and others know more of memory that was given back."""
    if pointer >= CANONICAL_TOP or not accesses.is_near(case.crash, pointer):
        return STRONG
    sources = sources_of(case.crash)
    lent = sources.borrowed_view or sources.addressed_view or sources.pointers
    gone = sources.release or sources.deletions or sources.mapped_file
    return POSSIBLE - 0.1 if gone else POSSIBLE if lent else LIKELY


def _argument(case: Case, fault: Fault, pointer: int) -> str | None:
    """Which argument of the called function it was; ctypes' own functions have helpers do the work."""
    name = foreign_calls.name_of(case)
    if name in ("string_at", "wstring_at"):
        return "first"
    if case.native_stack[0] is not foreign_calls.called(case):
        return None
    held = next((each for each in _ORDINALS if fault.registers.get(each) == pointer), None)
    if held is None and fault.access == "write" and fault.registers.get(_RESULT) == pointer:
        held = accesses.ARGUMENT_REGISTERS[0]
    return _ORDINALS[held] if held else None


def _beside_null(case: Case, fault: Fault, call: Use | None) -> bool:
    """A null pointer was handed in as well: the number may be an offset from it, and the argument just a count."""
    if foreign_calls.handed_in(case) is not None:
        return False  # the very register was used
    if call is None or call.arguments is None:
        return True
    return call.null or any(fault.registers.get(name) == 0 for name in accesses.ARGUMENT_REGISTERS[: call.arguments])


def _fixes(case: Case) -> tuple[Fix, ...]:
    untyped = sources_of(case.crash).untyped_result
    is_source = untyped is not None and untyped.name != foreign_calls.name_of(case)  # it died of what it was given
    declare = (
        safe(f"declare the types of {untyped.name}", f"lib.{untyped.name}.restype = ctypes.c_void_p")
        if untyped and is_source
        else None
    )
    follow = safe(
        "follow the address to where it is made",
        "a number that is not a pointer, a wrong offset, or memory that is gone by now",
    )
    instead = consider("hand over the object, not its address", "byref(buffer), array.ctypes.data_as(…)")
    return tuple(fix for fix in (follow, declare, instead) if fix)
