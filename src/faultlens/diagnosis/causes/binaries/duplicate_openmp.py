from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.loader import openmp_runtimes, short
from faultlens.diagnosis.evidence.senders import caller_of_abort
from faultlens.text.safe import one_line

_SAID = r"OMP: Error #15[^\n]*"
_ALLOWED = "KMP_DUPLICATE_LIB_OK"


class DuplicateOpenmp(Cause):
    """
    ## What it is
    Two OpenMP runtimes (libomp, libiomp5, libgomp) were loaded into one process, usually by two packages that each
    bring their own. They do not know of each other's threads; LLVM's and Intel's notice it and abort.

    ## How it looks
    SIGABRT with "OMP: Error #15: Initializing libomp.so, but found libiomp5 already initialized". With
    `KMP_DUPLICATE_LIB_OK=TRUE` the abort is gone, and crashes, wrong results or a hang at exit take its place.

    ## How to prove it
    The message, and two such libraries from two places in `/proc/PID/maps`.

    ## How to fix it
    Let all packages use one runtime: take them all from conda-forge or all from PyPI, remove the package that brings
    the second one, or build your own library against the one that is there. Do not set `KMP_DUPLICATE_LIB_OK`.
    """

    slug = "duplicate-openmp"
    code = "FL407"
    headline = "Two OpenMP runtimes in one process"

    def examine(self, case: Case) -> Finding | None:
        said = case.said(_SAID) if case.signal == "SIGABRT" or case.crash.outcome.kind == "exit" else None
        runtimes = openmp_runtimes(case.crash)
        allowed = case.crash.program.environment.get(_ALLOWED)
        inside = _inside(case, runtimes)
        if said is None and (len(runtimes) < 2 or not inside):
            return None
        names = " and ".join(dict.fromkeys(short(path) for path in runtimes)) or "two of them"
        gives_up = _gives_up(case, runtimes)
        return Finding(
            strength=PROVEN if said else STRONG if gives_up else LIKELY if allowed else POSSIBLE + 0.1,
            title=f"two OpenMP runtimes are in the process: {names}",
            evidence=evidence(
                (one_line(said, 240), "stderr") if said else None,
                (f"loaded: {', '.join(runtimes[:3])}", "/proc/PID/maps") if runtimes else None,
                (f"{_ALLOWED}={allowed} silences the check", "environment") if allowed else None,
                (f"stopped in {short(inside)}", "native stack") if inside else None,
                ("it called abort() itself, as it does when it finds another one", "native stack")
                if gives_up
                else None,
                *case.fault_evidence[:1],
            ),
            fixes=(
                consider("let all packages use one OpenMP runtime", "take them all from conda-forge, or all from PyPI"),
                safe(f"do not set {_ALLOWED}", "it hides the message and leads to hangs and wrong results"),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        runtimes = openmp_runtimes(case.crash)
        if case.fault is None or not case.crash.libraries or len(runtimes) > 1:
            return None
        return (
            f"only one OpenMP runtime is loaded ({short(runtimes[0])})" if runtimes else "no OpenMP runtime is loaded"
        )


def _gives_up(case: Case, runtimes: tuple[str, ...]) -> bool:
    """Where its message was not kept: it ends the process for little else, and would have said so."""
    caller = caller_of_abort(case)
    return caller is not None and caller.library in runtimes and not case.said(r"OMP: [^\n]*")


def _inside(case: Case, runtimes: tuple[str, ...]) -> str | None:
    """The OpenMP runtime that died, or in which a hanging program waits at its end."""
    threads = case.crash.threads[:1] if case.crash.was_running else ()
    frames = [*case.native_stack[:6], *(frame for thread in threads for frame in thread.frames[:6])]
    return next((frame.library for frame in frames if frame.library in runtimes), None)
