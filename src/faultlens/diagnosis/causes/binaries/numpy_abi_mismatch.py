from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Cause, Finding, Words, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.imports import final_text, line_at
from faultlens.inspection.frames import package_of
from faultlens.records.crash import Frame
from faultlens.text.safe import one_line

# How NumPy, and modules built against it, say that their binary interfaces differ.
_SAID = re.compile(
    r"A module that was compiled using NumPy 1\.x|compiled against (?:ABI|API) version 0x|_ARRAY_API not found"
    r"|numpy\.(?:_?core\.)?(?:multiarray|umath|_multiarray_umath) failed to import|_UFUNC_API not found"
    r"|numpy\.(?:dtype|ndarray|ufunc) size changed, may indicate binary incompatibility"
    r"|compiled against NumPy C-API version|was built against numpy|numpy C-API (?:version|is not)"
)
POINTER = 8
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line \d+, in ')


class NumpyAbiMismatch(Cause):
    """
    ## What it is
    A compiled module was built for another binary interface of NumPy than the one that is installed. NumPy 2 changed
    it: modules built against NumPy 1 (TensorFlow up to 2.17 among them) cannot be loaded, and modules built against
    a newer NumPy may refuse an older one.

    ## How it looks
    ImportError or AttributeError while importing: "numpy.core.umath failed to import", "_ARRAY_API not found", "A
    module that was compiled using NumPy 1.x cannot be run in NumPy 2", "numpy.dtype size changed". A careless
    extension ignores the failure and dies with SIGSEGV at its first use of NumPy, through a null table of functions.

    ## How to prove it
    Compare `numpy.__version__` with what the module was built for (`pip show`, the requirements of its wheel).

    ## How to fix it
    Install the NumPy the module was built for (`pip install "numpy<2"`), or a newer build of the module.
    """

    slug = "numpy-abi-mismatch"
    code = "FL403"
    headline = "A module was built for another NumPy"
    words = Words(
        _SAID,
        "a module was built for another NumPy: {said}",
        consider("install the NumPy that it was built for, or a newer build of it", 'pip install "numpy<2"'),
        signals=("SIGSEGV",),
    )

    def examine(self, case: Case) -> Finding | None:
        text = final_text(case)
        match = _SAID.search(text)
        ended = case.crash.outcome.kind == "exception" and case.exception is not None
        crashed = case.signal == "SIGSEGV" and case.is_native_crash and case.owner in ("custom", "package", "numpy")
        if match is None or not (ended or crashed):
            return None
        module = _module(case, text)
        version = _version(case)
        return Finding(
            strength=PROVEN if ended else STRONG + 0.04 if _through_empty_table(case) else LIKELY,
            title=f"{module} was built for another NumPy than the installed {version or 'one'}",
            evidence=evidence(
                (one_line(line_at(text, match), 240), "stderr"),
                (f"numpy {version} is installed", "packages") if version else None,
                (f"it was loaded by {module}", "traceback") if ended else None,
                *case.fault_evidence,
            ),
            fixes=(
                safe(_install(version), f"{module} was built for the other one"),
                consider(f"install a build of {module} that fits numpy {version or 'as installed'}", "or rebuild it"),
            ),
        )


def _through_empty_table(case: Case) -> bool:
    """NumPy's functions are reached through a table of pointers, which stays null when the import fails."""
    return case.is_null and case.fault is not None and (case.fault.address or 0) % POINTER == 0


def _module(case: Case, text: str) -> str:
    """The package whose import failed, or the library that died."""
    if case.fault is not None and case.culprit is not None:
        return package_of(case.culprit)
    files = [match["file"] for match in _FRAME.finditer(text)]
    names = [package_of(Frame(kind="python", function="", file=file)) for file in files if "-packages/" in file]
    return next((name for name in reversed(names) if name != "numpy"), "a module")


def _version(case: Case) -> str | None:
    python = case.crash.program.python
    return next(
        (package.version for package in (python.packages if python else ()) if package.name.lower() == "numpy"), None
    )


def _install(version: str | None) -> str:
    if version is None or version.startswith("2"):
        return 'install the NumPy it was built for: pip install "numpy<2"'
    return "install a newer NumPy: pip install --upgrade numpy"
