from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.imports import Unresolved, final_text, unresolved
from faultlens.diagnosis.evidence.loader import preloaded, search_path, short, tensorflow_from_search_path
from faultlens.diagnosis.evidence.tensorflow_code import version
from faultlens.records.diagnosis import Fix

# Mangled names of TensorFlow's C++ interface and of the libraries it is made of.
_TENSORFLOW = re.compile(r"^_Z\w*?(?:10tensorflow|3tsl|4absl|5Eigen|8protobuf|3xla|15stream_executor)|^TF_|^TFE_")
_LOADS_OP = re.compile(r"/load_library\.py$")
_LOADING = re.compile(r"^load_op_library$|^load_library$|TF_LoadLibrary")
_MISSING = re.compile(r"(?P<file>libtensorflow\w*\.so[\w.]*): cannot open shared object file")
_BAD_FILE = re.compile(r"(?P<file>[^\s:'\"]+\.so[^\s:'\"]*): wrong ELF class")
_OLD_STRING = re.compile(r"NS(?:t7__cxx11|s)|RKSs|7__cxx1112basic_string")


class CustomOpAbiMismatch(Cause):
    """
    ## What it is
    A custom op is a C++ library that links against TensorFlow's C++ interface, which changes with every release and
    with the C++ ABI flag (`_GLIBCXX_USE_CXX11_ABI`). An op that was built for another release, or with another flag
    or compiler, looks for functions that this TensorFlow does not have.

    ## How it looks
    `tf.load_op_library` raises NotFoundError: "undefined symbol: _ZN10tensorflow…"; or the loader misses
    `libtensorflow_framework.so.1` or a version of `libstdc++`. A crash while the op is being loaded is rare.

    ## How to prove it
    `c++filt` turns the symbol into a function; `nm -DC libtensorflow_framework.so.2 | grep NAME` shows the one this
    release has instead.

    ## How to fix it
    Build the op again in this very environment, with the flags of this TensorFlow: `tf.sysconfig.get_compile_flags()`
    and `tf.sysconfig.get_link_flags()`. For an installed package: the release of it that fits this TensorFlow.
    """

    slug = "custom-op-abi-mismatch"
    code = "FL405"
    headline = "A custom op was built for another TensorFlow or C++ ABI"

    def examine(self, case: Case) -> Finding | None:
        if case.crash.outcome.kind == "exception":
            return self._refused(case)
        return self._died_loading(case) if case.is_native_crash else None

    def _refused(self, case: Case) -> Finding | None:
        found, text = unresolved(case), final_text(case)
        loading = _loads_op(case)
        missing, bad = _MISSING.search(text), _BAD_FILE.search(text)
        if found is None and (bad is None or not loading) and missing is None:
            return None
        if found is not None and not loading and not _TENSORFLOW.search(found.symbol):
            return None
        library = short(found.library if found else bad["file"] if bad else "the op")
        release = version(case.crash)
        return Finding(
            strength=_strength(case, found, loading),
            title=f"{library} was built for another TensorFlow or C++ ABI than the installed {release or 'one'}",
            evidence=evidence(
                (found.text if found else missing[0] if missing else bad[0] if bad else "", "traceback"),
                (f"{found.symbol} belongs to TensorFlow's C++ interface", "symbol name")
                if found and _TENSORFLOW.search(found.symbol)
                else None,
                ("raised by tf.load_op_library", "traceback") if loading else None,
                (f"TensorFlow {release} is installed", "packages") if release else None,
                (f"exit code {case.crash.outcome.exit_code}, no signal", "wait status"),
            ),
            fixes=_fixes(library, found),
        )

    def _died_loading(self, case: Case) -> Finding | None:
        """The initialisers of the op ran against functions of another layout."""
        frame = case.calls(_LOADING.pattern)
        opened = case.calls(r"\bdlopen\b|_dl_open|call_init|TF_LoadLibrary")
        if frame is None or opened is None or case.custom_frame is None:
            return None
        library = short(case.custom_frame.library or "the op")
        return Finding(
            strength=LIKELY,
            title=f"{library} died while TensorFlow loaded it: it was most likely built for another one",
            evidence=evidence(*case.fault_evidence, ("tf.load_op_library was loading it", "stack")),
            fixes=_fixes(library, None),
        )


def _loads_op(case: Case) -> bool:
    frames = case.exception.frames if case.exception else ()
    return any(_LOADS_OP.search(frame.file or "") or _LOADING.search(frame.function) for frame in frames[:3])


def _strength(case: Case, found: Unresolved | None, loading: bool) -> float:
    if found is None:
        return STRONG if loading else LIKELY
    if found.provider is not None:  # a version of libstdc++ or libc: a search path may be at fault as well
        return (POSSIBLE if search_path(case.crash) else STRONG) if loading else POSSIBLE
    misled = bool(search_path(case.crash) or preloaded(case.crash))
    if _TENSORFLOW.search(found.symbol):
        return POSSIBLE if misled and tensorflow_from_search_path(case) else PROVEN
    return POSSIBLE if misled else LIKELY + 0.1  # of some other library, which a search path may have replaced


def _fixes(library: str, found: Unresolved | None) -> tuple[Fix, ...]:
    flag = " (the C++ ABI flag is the usual one)" if found and _OLD_STRING.search(found.symbol) else ""
    return (
        safe(
            f"build {library} again in this environment",
            f"with tf.sysconfig.get_compile_flags() and get_link_flags(){flag}",
        ),
        consider("install the TensorFlow release that it was built for"),
    )
