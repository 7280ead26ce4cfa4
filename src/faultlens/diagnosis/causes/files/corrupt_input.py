from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import POSSIBLE, STRONG, Cause, Finding, evidence, safe
from faultlens.diagnosis.causes.files.feature_spec_mismatch import unfit_feature
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.data_places import scan_command
from faultlens.diagnosis.evidence.saved_models import loads_model
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.inspection.frames import is_own
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

# Exceptions that are raised for nothing but damaged or foreign bytes.
_TYPES = frozenset({
    "DataLossError", "UnidentifiedImageError", "BadZipFile", "BadGzipFile", "zlib.error", "UnpicklingError",
    "JSONDecodeError", "UnicodeDecodeError", "DecodeError", "ParserError", "LZMAError", "DecompressionBombError",
    "ArrowInvalid", "ReadError",
})  # fmt: skip
# And what general exceptions say when the bytes are at fault.
_WORDS = re.compile(
    "|".join((
        r"corrupted record", r"truncated record", r"[Cc]orrupt(?:ed)? (?:data|file|input|image|JPEG|PNG|header|block)",
        r"jpeg::Uncompress failed", r"Invalid (?:JPEG|PNG|GIF|BMP|WebP|WAV)", r"Unknown image file format",
        r"Expected image \(", r"image file is truncated", r"broken data stream", r"Premature end", r"[Tt]runcated file",
        r"[Cc]ould(?:n't| not) (?:parse|decode|decompress)", r"[Cc]an(?:not|'t) (?:parse|decode|identify|decompress)",
        r"[Ff]ailed to (?:parse|decode|decompress)", r"[Ee]rror parsing", r"Invalid proto",
        r"not a gzipped file", r"[Cc]ompressed file ended", r"file signature not found", r"bad magic", r"CRC check",
        r"[Ii]nvalid (?:header|magic|compressed|utf-?8|load key)", r"Invalid (?:character found in )?base64",
        r"[Cc]hecksum (?:mismatch|does not match)", r"inconsistent with the (?:size|header)", r"data was truncated",
        r"Expect \d+ fields but have", r"Field \d+ in record", r"[Hh]eader (?:must be|expected)",
        r"Failed to read all data", r"EOF: reading array", r"mmap length is greater than file size",
    ))
)  # fmt: skip
# Ops whose only input is bytes from outside.
_DECODERS = re.compile(r"^(?:Decode|Parse(?:Tensor|Example|Single|Sequence)|TFRecord|UnicodeDecode)")


class CorruptInput(Cause):
    """
    ## What it is
    Input bytes (an image, a record, a compressed or serialised file) are damaged or of another format than the code
    expects, and reading them ended the program.

    ## How it looks
    Mostly an exception that ends the run in the middle of an epoch: DataLossError "corrupted record at …", "Invalid
    JPEG data", "Could not parse example". Native decoders of TensorFlow rarely crash, but `tf.io.parse_tensor` on
    crafted bytes does.

    ## How to prove it
    The message names what is wrong, for records with the offset. Reading the one file alone gives the same error.

    ## How to fix it
    Find the file (`faultlens scan FOLDER --decode`), fetch it again or drop it. To go on despite bad records:
    `dataset.ignore_errors()`. Half-written files come from writers that were killed: write to a temporary name and
    rename it.
    """

    slug = "corrupt-input"
    code = "FL303"
    headline = "Input data are damaged or of another format"

    def examine(self, case: Case) -> Finding | None:
        if case.fault is not None:
            return self._in_native_code(case)
        error = case.exception
        if case.crash.outcome.kind != "exception" or error is None or loads_model(case) or not _is_about_bytes(error):
            return None
        own = next((frame for frame in error.frames if is_own(frame)), None)
        return Finding(
            strength=STRONG,
            title=one_line(f"the input could not be read: {error.message or error.type}", 160),
            location=location_of(own),
            evidence=evidence(
                (one_line(f"{error.type}: {error.message}", 300), "traceback"),
                (f"exit code {case.crash.outcome.exit_code}, no signal: nothing crashed", "wait status"),
            ),
            fixes=_fixes(case),
        )

    def _in_native_code(self, case: Case) -> Finding | None:
        if not case.is_native_crash or not case.op or not _DECODERS.match(case.op) or case.owner == "custom":
            return None
        return Finding(
            strength=POSSIBLE - 0.05,  # its other arguments may be to blame as well
            title=f"{case.op} crashed on the bytes it was given",
            op=case.op,
            evidence=evidence(*case.fault_evidence, (f"{case.op} decodes bytes that come from outside", "op")),
            fixes=_fixes(case),
        )


def _is_about_bytes(error: PythonException) -> bool:
    name = error.type.rpartition(".")[2]
    if unfit_feature(error):
        return False
    return name in _TYPES or error.type in _TYPES or bool(_WORDS.search(error.details))


def _fixes(case: Case) -> tuple[Fix, ...]:
    return (
        safe("find the damaged file, then fetch or write it again", scan_command(case, "--decode")),
        safe(
            "skip bad records",
            "dataset.ignore_errors(), or try/except around the decoder, with a count of what was dropped",
        ),
    )
