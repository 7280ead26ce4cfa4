from __future__ import annotations

import re
from itertools import pairwise

from faultlens.diagnosis.causes.base import (
    LIKELY,
    POSSIBLE,
    PROVEN,
    STRONG,
    Cause,
    Finding,
    Words,
    consider,
    evidence,
    safe,
)
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.loader import copies, preloaded, short
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import is_nameless, short_function
from faultlens.inspection.owners import is_runtime, owner_of
from faultlens.records.crash import Frame
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

# What a second copy of a library says when it registers what the first one has registered.
_TWICE = re.compile(
    r"File already exists in database|GeneratedDatabase\(\)->Add|[Ff]lag '?\w+'? was defined more than once"
    r"|Another metric with the same name already exists|ODR violation|defined more than once \(in files"
)
# Libraries of which frameworks carry copies of their own, under the same symbol names.
_CARRIED = re.compile(
    r"/lib(?:crypto|ssl|protobuf|grpc|absl|z|png|jpeg|gif|sqlite3|curl|re2|snappy|hwloc|icu|hdf5|cares|lz4|zstd)\w*[-.\d]*\.so"
)
_NOT_SHADOWED = re.compile(r"/(?:libpython|_ctypes\.|numpy/|numpy\.libs/)")


class DuplicateNativeLibrary(Cause):
    """
    ## What it is
    Two copies of one native library are in the process, or a library that was forced in front of the others
    (`LD_PRELOAD`) exports the same names as another one. Calls go to the wrong copy, which takes the data of the
    other for its own. TensorFlow carries its own protobuf, abseil and BoringSSL, whose names are also OpenSSL's.

    ## How it looks
    SIGSEGV or an abort far from TensorFlow, for instance in `import ssl` or `import hashlib`; or "File already exists
    in database" from protobuf. It depends on the order of imports.

    ## How to prove it
    The same library name with two paths in `/proc/PID/maps`, or a preloaded library; `LD_DEBUG=bindings` shows whose
    function was taken. Without the second copy it works.

    ## How to fix it
    Remove the library from `LD_PRELOAD`; install one copy only; link custom code against the copy that TensorFlow
    brings instead of adding another one.
    """

    slug = "duplicate-native-library"
    code = "FL406"
    headline = "Two copies of a native library, or one that shadows another"
    words = Words(
        _TWICE,
        "a second copy of a native library is in the process: {said}",
        consider("install one copy only", "and link custom code against the one that TensorFlow brings"),
        LIKELY,
    )

    def examine(self, case: Case) -> Finding | None:
        if not case.is_native_crash or case.hits_stack_end:
            return None
        said = line_saying(case.crash, _TWICE) if case.signal == "SIGABRT" else None
        forced, double = _shadowing(case), _died_in_copy(case)
        if (met := _taken_for_another(case)) is not None and not (said or forced):
            return _of_symbol(case, *met)
        if not (said or forced or double):
            return None
        where = short(_innermost(case) or "native code")
        return Finding(
            strength=_strength(case, said, forced),
            title=_title(forced, double, where),
            evidence=evidence(
                (one_line(said, 240), "stderr") if said else None,
                (f"LD_PRELOAD puts {short(forced)} in front of every other library", "environment") if forced else None,
                (f"it died in {where}, which {short(forced)} has nothing to do with by itself", "native stack")
                if forced
                else None,
                (f"loaded twice: {' and '.join(double[:2])}", "/proc/PID/maps") if double else None,
                *case.fault_evidence,
            ),
            fixes=_fixes(forced),
        )


def _taken_for_another(case: Case) -> tuple[Frame, Frame] | None:
    """A function of the user's own that an installed package called, which does not know it: the loader gave it that
    one for another of the same name. Only a library that is open to all can be met so."""
    frames = [frame for frame in case.native_stack if frame.library]
    for inner, outer in pairwise(frames):
        if owner_of(inner) == "custom" and owner_of(outer) in ("package", "numpy"):
            shared = case.mentions(Wording.OPENS_TO_ALL) is not None or bool(preloaded(case.crash))
            return (inner, outer) if shared and not is_nameless(inner) else None
    return None


def _of_symbol(case: Case, inner: Frame, outer: Frame) -> Finding:
    name, own, other = short_function(inner.function), short(inner.library or ""), short(outer.library or "")
    return Finding(
        strength=STRONG + 0.05,
        title=f"{other} called {name} of {own}, which shadows a function of the same name that it needs",
        evidence=evidence(
            (f"{short_function(outer.function)} of {other} called {name} of {own}", "native stack"),
            (f"{other} belongs to an installed package, which does not know {own}", "native stack"),
            (f"{own} is loaded for all to see (RTLD_GLOBAL or LD_PRELOAD)", "source"),
            *case.fault_evidence[:1],
        ),
        fixes=(
            safe(f"open {own} without RTLD_GLOBAL", "ctypes.CDLL(path) keeps its names to itself"),
            consider(f"rename {name}, or make it static", "-fvisibility=hidden, and export only what Python calls"),
        ),
    )


def _shadowing(case: Case) -> str | None:
    """A preloaded library, while another library that did not ask for it died."""
    forced = next(iter(preloaded(case.crash)), None)
    innermost = _innermost(case)
    if forced is None or case.custom_frame is not None or innermost is None or _NOT_SHADOWED.search(innermost):
        return None
    return forced if short(innermost) != short(forced) or _intrudes(case, forced) else None


def _intrudes(case: Case, forced: str) -> bool:
    """A library that knows nothing of the preloaded one called into it: its symbol was taken instead of another's."""
    frames = [frame for frame in case.native_stack if frame.library]
    return any(
        short(inner.library or "") == short(forced)
        and owner_of(outer) == "system"
        and not is_runtime(outer.library or "")
        for inner, outer in pairwise(frames)
    )


def _innermost(case: Case) -> str | None:
    """The library that died, libc and the like left out."""
    libraries = (frame.library for frame in case.native_stack if frame.library)
    return next((path for path in libraries if not is_runtime(path)), None)


def _died_in_copy(case: Case) -> tuple[str, ...]:
    """The copies of a library that lies on the stack."""
    near = [frame.library for frame in case.native_stack[:8] if frame.library and not is_runtime(frame.library)]
    return next((paths for paths in copies(case.crash).values() if any(path in paths for path in near)), ())


def _strength(case: Case, said: str | None, forced: str | None) -> float:
    if said:
        return PROVEN
    if forced and (_intrudes(case, forced) or _CARRIED.search(_innermost(case) or "")):
        return LIKELY + 0.1
    return POSSIBLE + 0.05


def _title(forced: str | None, double: tuple[str, ...], where: str) -> str:
    if forced:
        return f"{short(forced)} is preloaded, and its symbols shadow those that {where} needs"
    if double:
        return f"two copies of {short(double[0])} are loaded"
    return "a second copy of a native library registered what was registered before"


def _fixes(forced: str | None) -> tuple[Fix, ...]:
    keep_one = consider("keep one copy of the library", "install it once, and link custom code against that one")
    if forced:
        return safe(f"take {short(forced)} out of LD_PRELOAD", "unset LD_PRELOAD, and run it again"), keep_one
    return keep_one, consider("change the order of imports", "it decides whose symbols are taken; a workaround at best")
