from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.imports import Unresolved, final_text, unresolved
from faultlens.diagnosis.evidence.limits import gave_up
from faultlens.diagnosis.evidence.loader import preloaded, search_path, short, taken_from_search_path
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

# Libraries that compare what they were compiled with to what was loaded.
_COMPARED = re.compile(
    r"(?:HDF5 (?:library version mismatched|header files used to compile)|Headers are [\d.]+, library is [\d.]+"
    r"|[Ll]oaded runtime CuDNN library: [\d.]+ but source was compiled with|symbol lookup error: "
    r"|kernel version [\d.]+ does not match DSO version|libpng warning: Application built with"
    r"|compiled with version [\w.]+ but (?:linked|loaded)|version mismatch: (?:header|library|expected))"
)
_WRONG_PYTHON = re.compile(
    r"undefined symbol: _?Py\w+|Module use of python\d+\.dll|Python version mismatch: module was compiled for Python"
)


class WrongLibraryLoaded(Cause):
    """
    ## What it is
    A search path (`LD_LIBRARY_PATH`, `LD_PRELOAD`, `PYTHONPATH`, an activated conda environment) made the loader take
    another library than the one the code was built with: an older libstdc++, another HDF5, a library of another
    Python.

    ## How it looks
    "version `GLIBCXX_3.4.30' not found (required by …)", "undefined symbol", "symbol lookup error", or "HDF5 library
    version mismatched", followed by an exception or an abort. If nothing is checked: SIGSEGV inside that library.

    ## How to prove it
    `/proc/PID/maps` shows the path of the library that was taken, `LD_DEBUG=libs` why. Without the search path it
    works.

    ## How to fix it
    Remove the folder from the search path, or put the right one first. In an environment, install the library there
    instead of pointing at another one.
    """

    slug = "wrong-library-loaded"
    code = "FL409"
    headline = "A search path made the loader take the wrong library"

    def examine(self, case: Case) -> Finding | None:
        kind = case.crash.outcome.kind
        spoken = kind in ("exception", "exit") or case.signal in ("SIGABRT", "SIGSEGV")
        compared = line_saying(case.crash, _COMPARED) if spoken else None
        missing = unresolved(case) if kind == "exception" or gave_up(case) else None
        died = _died_in_taken(case)
        if not (compared or missing or died):
            return None
        folders = ":".join(search_path(case.crash))
        taken = (missing.provider if missing else None) or died or taken_from_search_path(case)
        said = missing.text if missing else compared
        return Finding(
            strength=_strength(case, bool(compared), missing),
            title=f"the loader took {short(taken) if taken else 'a library'} that does not fit the code which uses it",
            evidence=evidence(
                (one_line(said, 240), "stderr") if said else None,
                (f"LD_LIBRARY_PATH is {folders}", "environment") if folders else None,
                (f"it was taken from {taken}", "/proc/PID/maps") if taken else None,
                (f"{short(missing.library)} asked for {missing.symbol}", "loader") if missing else None,
                (f"exit code {case.crash.outcome.exit_code}, no signal", "wait status") if case.fault is None else None,
                *case.fault_evidence,
            ),
            fixes=_fixes(case, taken),
        )


def _died_in_taken(case: Case) -> str | None:
    """It died in a library that only a search path led to."""
    taken = taken_from_search_path(case)
    if taken is None or not case.is_native_crash or case.hits_stack_end:
        return None
    return taken if any(frame.library == taken for frame in case.native_stack[:5]) else None


def _strength(case: Case, compared: bool, missing: Unresolved | None) -> float:
    misled = bool(search_path(case.crash) or preloaded(case.crash) or case.crash.program.environment.get("PYTHONPATH"))
    if compared and (not missing or case.crash.outcome.kind == "exit"):
        return PROVEN if misled else STRONG
    if missing:
        if missing.provider:
            return STRONG if misled else LIKELY + 0.1
        return LIKELY + 0.07 if misled or _WRONG_PYTHON.search(final_text(case)) else POSSIBLE
    return POSSIBLE


def _fixes(case: Case, taken: str | None) -> tuple[Fix, ...]:
    folders = ":".join(search_path(case.crash))
    first = (
        safe(f"take {folders} out of LD_LIBRARY_PATH", "the program's own libraries are found without it")
        if folders
        else consider(f"install the {short(taken) if taken else 'library'} that the code was built with")
    )
    return first, consider("build the code again in this environment", "then it fits the libraries that are found")
