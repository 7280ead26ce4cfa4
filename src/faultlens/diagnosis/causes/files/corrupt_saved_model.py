from __future__ import annotations

import re
import shlex

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.loader import short
from faultlens.diagnosis.evidence.saved_models import loads_model
from faultlens.diagnosis.evidence.saving import left_behind
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.inspection.frames import is_own, short_function
from faultlens.records.crash import FileState
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

_DAMAGED_TYPES = frozenset({
    "DataLossError", "BadZipFile", "DecodeError", "UnpicklingError", "EOFError", "JSONDecodeError",
    "UnicodeDecodeError", "zlib.error", "OutOfRangeError",
})  # fmt: skip
# Said of a file that is there and cannot be understood.
_SURELY = re.compile(
    r"[Cc]hecksum does not match|[Tt]runcated file|file signature not found|bad object header|not an sstable"
    r"|bad magic number|[Cc]annot parse|[Ee]rror parsing|[Ff]ailed to parse|Wire format was corrupt|not a zip file"
    r"|[Bb]ad CRC|[Cc]orrupt|invalid load key|pickle data was truncated|addr overflow|filter returned failure"
    r"|Read less bytes than requested|wrong (?:B-tree|version|signature)|Failed to read all data"
)
_DAMAGED = re.compile(
    r"Unable to (?:synchronously )?(?:open|read|get)|[Cc]an't (?:open|read|synchronously|deserialize)|decompress"
    r"|[Ii]nvalid (?:stored )?block|unknown (?:object|message|compression)|Unexpected end|buffer too small"
)
# TensorFlow Lite's functions that follow the offsets in a model file.
_READS_MODEL = re.compile(r"\btflite::(?:impl::)?(?:InterpreterBuilder|FlatBufferModel(?:Base)?)\b")
# The same words are used for a file that was never there.
_MISSING = re.compile(
    r"No such file|[Ff]ile not found|does not exist|[Nn]ot found|Unable to find|not match(?:ed)? any files"
)


class CorruptSavedModel(Cause):
    """
    ## What it is
    A saved model, checkpoint or weights file is damaged: half-written by a process that was killed, cut by a full
    disk, or changed on the way.

    ## How it looks
    An exception while loading: DataLossError ("Checksum does not match"), "truncated file", "file signature not
    found", "Cannot parse file". Keras may even say "file not found" for a `.keras` file that is no whole zip archive.
    TensorFlow Lite is the exception: it follows the offsets in a `.tflite` file without checking them, and dies by
    SIGSEGV or SIGBUS while it builds the interpreter.

    ## How to prove it
    Loading it anywhere fails in the same way; the size differs from the original; `faultlens verify PATH` compares
    every checksum and reads every value, in a process that may die of it; for `.keras`, `unzip -t` complains.

    ## How to fix it
    Go back to the previous save. `.keras` and `.h5` files are truncated when saving starts, so a kill in the middle
    loses both the old and the new: save to a temporary name, verify, rename (`faultlens.save` does). `faultlens.load`
    takes the newest save that is whole.
    """

    slug = "corrupt-saved-model"
    code = "FL304"
    headline = "A saved model or checkpoint is damaged"

    def examine(self, case: Case) -> Finding | None:
        if case.is_native_crash:
            return _died_reading(case)
        error = case.exception
        if case.fault is not None or case.crash.outcome.kind != "exception" or error is None:
            return None
        loader, there = loads_model(case), _is_there(case, error)
        if loader is None or (strength := STRONG if there else _strength(error)) is None:
            return None
        own = next((frame for frame in error.frames if is_own(frame)), None)
        named = next(iter(case.crash.files), None)
        return Finding(
            strength=strength,
            title=f"{short(there.path)} is there, but it is no whole model: it could not be read"
            if there
            else one_line(f"a saved model could not be read: {error.message or error.type}", 160),
            location=location_of(own),
            evidence=evidence(
                (one_line(f"{error.type}: {error.details}", 300), "traceback"),
                (f"it was raised while loading, in {loader}", "traceback"),
                (f"{short(there.path)} has {there.size} bytes", "stat") if there else None,
                *left_behind(case),
            ),
            fixes=(*_look(there or named), *_FIXES),
        )


def _is_there(case: Case, error: PythonException) -> FileState | None:
    """Of a `.keras` file that is no whole archive, Keras says that it was not found."""
    if not _MISSING.search(error.details):
        return None
    return next((state for state in case.crash.files if state.path.endswith(".keras") and state.size), None)


def _look(state: FileState | None) -> tuple[Fix, ...]:
    return (safe("see what is damaged", command=f"faultlens verify {shlex.quote(state.path)}"),) if state else ()


_FIXES = (
    consider("load an earlier save", "the damaged file cannot be repaired"),
    safe("save to a temporary name, verify, then rename", "so that a kill or a full disk never costs a good file"),
)


def _died_reading(case: Case) -> Finding | None:
    """TensorFlow Lite builds its interpreter straight from the bytes of the file."""
    frame = next((frame for frame in case.native_stack if _READS_MODEL.search(frame.function)), None)
    if frame is None or case.signal not in ("SIGSEGV", "SIGBUS"):
        return None
    models = [state for state in case.crash.files if state.path.endswith(".tflite")]
    name = short(models[0].path) if len(models) == 1 else "the model"
    return Finding(
        strength=STRONG,
        title=f"{name} is damaged: TensorFlow Lite does not check it, and died while reading it",
        evidence=evidence(
            *case.fault_evidence[:1],
            (f"it was reading a model file, in {one_line(short_function(frame.function), 120)}", "native stack"),
            *((f"{state.path} is mapped, {state.size} bytes", "/proc/PID/maps") for state in models[:3]),
        ),
        fixes=(
            safe("look at the file without TensorFlow", command=f"faultlens verify {_quoted(models)}"),
            consider(
                "give the model as bytes, which are checked: a damaged one then raises",
                "tf.lite.Interpreter(model_content=open(path, 'rb').read())",
            ),
            *_FIXES,
        ),
    )


def _quoted(models: list[FileState]) -> str:
    return shlex.quote(models[0].path) if len(models) == 1 else "PATH"


def _strength(error: PythonException) -> float | None:
    if error.type.rpartition(".")[2] in _DAMAGED_TYPES or error.type in _DAMAGED_TYPES:
        return STRONG
    if _SURELY.search(error.details):
        return STRONG
    if _MISSING.search(error.details):
        return POSSIBLE
    return LIKELY + 0.1 if _DAMAGED.search(error.details) else None
