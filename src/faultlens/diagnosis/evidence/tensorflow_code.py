"""Whether TensorFlow's own code is to blame for a crash, and what it was doing: computing, optimising, compiling."""

from __future__ import annotations

import re
from typing import Literal

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.owners import first_owned, owner_of
from faultlens.records.crash import Crash, Frame

Activity = Literal["compiled code", "compiling", "optimising", "translating"]

_DISTRIBUTIONS = re.compile(
    r"^(?:tensorflow(?:[-_](?:cpu|gpu|intel|rocm|macos|cpu[-_]aws|aarch64))?|tf[-_]nightly.*)$", re.I
)
# Functions that serve everything else: who called them tells what was going on.
_HELPER = re.compile(
    r"^(?:[\w:]+(?:<.*?>)?[&*]? )?(?:std::|__gnu_cxx::|absl::|tsl::|Eigen::|google::protobuf|operator (?:new|delete)"
    r"|tensorflow::(?:Tensor|TensorShape\w*|PartialTensorShape|TensorShapeRep|AttrSlice|GetNodeAttr|Status\w*"
    r"|GetTensorDimIndex|NodeDef\w*|Node|Graph|core::\w+|internal::\w+)\b)|^\?\?$"
)
_ACTIVITIES: tuple[tuple[Activity, re.Pattern[str]], ...] = (
    (
        "compiling",
        re.compile(r"^(?:[\w:]+(?:<.*?>)?[&*]? )?(?:\(anonymous namespace\)::)?(?:xla|mlir|llvm|stablehlo)::"),
    ),
    (
        "optimising",
        re.compile(
            r"tensorflow::(?:grappler::|(?:\(anonymous namespace\)::)?\w*(?:Pass|Rewriter|Optimizer)(?:<.*>)?::)"
        ),
    ),
    (
        "translating",
        re.compile(r"::Compile\(tensorflow::XlaOpKernelContext|XlaOpKernelContext::|XlaCompiler::|tf2xla::"),
    ),
)
_COMPILES = re.compile(
    r"[Cc]ompil|PassManager|runOnOperation|OpToOpPassAdaptor|HloPass|RunPasses|[Cc]onvert\w*(?:ToMlir|ToHlo|ToTFLite|GraphDef)"
    r"|[Ll]egaliz|[Ll]ower|XlaBuilder|HloEvaluator|Verifier|mlir::\w*(?:parse|import|translate)"
)
_RUNS_COMPILED = re.compile(r"\bxla::(?:cpu::)?(?:\w*Thunk\w*|CpuExecutable|\w*KernelThunk|ThunkExecutor|Host\w+)\b")
_ESCAPED = re.compile(
    r"pybind11::detail::(?:translate_exception|apply_exception_translators|try_translate_exceptions)|nanobind::detail::nb_func_error"
)
# What reads the Python arguments of a call, before the op is there.
_CONVERTS = re.compile(
    r"(?:^|::)(?P<step>Parse\w+Value|SetOpAttr\w*|ConvertToEagerTensor\w*|NumpyToTFE_\w+|PySeqToTFE_\w+)\("
)
# How sources speak of memory that TensorFlow does not own.


def version(crash: Crash) -> str | None:
    python = crash.program.python
    found = [package.version for package in (python.packages if python else ()) if _DISTRIBUTIONS.match(package.name)]
    return found[0] if found else None


def converting(case: Case) -> str | None:
    """The function that was reading an argument of the user's call."""
    return next((match["step"] for frame in case.native_stack[:4] if (match := _CONVERTS.search(frame.function))), None)


def responsible(case: Case) -> Frame | None:
    """The frame of TensorFlow's that died, or asked libc or Python to do what killed it.

    Code of the user's own below it means that a custom op called TensorFlow wrongly."""
    if case.custom_frame is not None:
        return None
    if case.owner == "tensorflow":
        return case.culprit
    if case.owner == "python" and not case.custom_libraries and not escaped_exception(case):
        outer = next((frame for frame in case.native_stack if owner_of(frame) not in ("python", "system")), None)
        return outer if outer and owner_of(outer) == "tensorflow" else None
    return case.culprit if activity(case) == "compiled code" else None


def activity(case: Case) -> Activity | None:
    """What it was doing besides running kernels; None for those."""
    if runs_compiled(case):
        return "compiled code"
    leading = leading_frame(case)
    if leading is None:
        return None
    found = next((name for name, pattern in _ACTIVITIES if pattern.search(leading.function)), None)
    return found if found != "compiling" or _compiles(case) else None


def _compiles(case: Case) -> bool:
    """A compiler is at work, and not just a helper of it, which TensorFlow's other code uses as well."""
    compiler = _ACTIVITIES[0][1]
    frames = [frame.function for frame in case.native_stack if owner_of(frame) == "tensorflow"]
    return any(_COMPILES.search(each) for each in frames) or sum(bool(compiler.search(each)) for each in frames) > 2


def runs_compiled(case: Case) -> bool:
    """Died in machine code that belongs to no file, called by XLA."""
    first = next((frame for frame in case.native_stack if owner_of(frame) != "system"), None)
    if first is None or first.library:
        return False
    return any(_RUNS_COMPILED.search(frame.function) for frame in case.native_stack[:6])


def leading_frame(case: Case) -> Frame | None:
    """The innermost frame of TensorFlow's that is not a general helper."""
    owned = [frame for frame in case.native_stack if owner_of(frame) == "tensorflow"]
    return next((frame for frame in owned if not _HELPER.search(frame.function)), None)


def escaped_exception(case: Case) -> Frame | None:
    """A C++ exception is being turned into a Python one, by a thread that does not hold the GIL: that kills it."""
    frame = next((frame for frame in case.native_stack if _ESCAPED.search(frame.function)), None)
    return frame if frame is not None and case.owner in ("python", "tensorflow") else None


def threw(case: Case) -> Frame | None:
    """The frame of TensorFlow's that threw the exception which ended the process; None when others' code threw it."""
    frames = case.thrown.frames if case.thrown else case.native_stack
    if first_owned(frames, "custom"):
        return None
    owned = [frame for frame in frames if owner_of(frame) == "tensorflow"]
    return next((frame for frame in owned if not _HELPER.search(frame.function)), owned[0] if owned else None)


def uses_foreign_memory(case: Case) -> str | None:
    """The line of the sources that hands memory to TensorFlow which others own and may free."""
    found = case.mentions(Wording.FOREIGN_MEMORY)
    return (
        f"{found.file.rpartition('/')[2]}:{found.line} shares memory with native code: {found.text}" if found else None
    )
