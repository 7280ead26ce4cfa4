"""The report: one JSON document with the outcome, the diagnoses and the whole Crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from faultlens.errors import FaultlensError
from faultlens.records.crash import Crash, Outcome, address_schema, decode_address, encode_address
from faultlens.records.diagnosis import Diagnosis, Reproducer, RuledOut
from faultlens.records.finding import Finding

SCHEMA_VERSION = 1
MAX_REPORT_BYTES = 256 << 20  # a report of a large TensorFlow process has 1 to 3 MB


class Report(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Outcome
    crash: Crash
    diagnoses: tuple[Diagnosis, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    reproducer: Reproducer | None = None
    findings: tuple[Finding, ...] = ()  # what the doctor found in the environment of the program
    schema: int = SCHEMA_VERSION


def to_json(report: Report) -> bytes:
    try:
        data = msgspec.json.encode(report, enc_hook=encode_address)
    except UnicodeEncodeError:  # bytes that are not UTF-8, in a path or an argument
        data = msgspec.json.encode(printable(msgspec.to_builtins(report, enc_hook=encode_address)))
    return msgspec.json.format(data, indent=1)


def printable(value: Any) -> Any:
    """Builtin values whose strings can be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable(item) for item in value]
    return value


def from_json(data: bytes, name: str = "the report") -> Report:
    version = _schema_version(data, name)
    if version != SCHEMA_VERSION:
        raise FaultlensError(
            f"{name} has schema version {version}; this faultlens reads version {SCHEMA_VERSION}.",
            "Read it with the faultlens release that wrote it.",
        )
    try:
        return msgspec.json.decode(data, type=Report, dec_hook=decode_address)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise FaultlensError(
            f"{name} is damaged: {error}.", "Capture the crash again, or take another copy of the file."
        ) from error


def read(path: Path) -> Report:
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            raise FaultlensError(f"{path} is too large to be a report.", "Name the report.json of a crash folder.")
        data = path.read_bytes()
    except OSError as error:
        raise FaultlensError(
            f"Cannot read {path}: {error.strerror}.", "`faultlens show --list` names the reports there are."
        ) from error
    return from_json(data, str(path))


def json_schema() -> dict[str, Any]:
    return msgspec.json.schema(Report, schema_hook=address_schema)


class _Version(msgspec.Struct):
    schema: int


def _schema_version(data: bytes, name: str) -> int:
    try:
        return msgspec.json.decode(data, type=_Version).schema
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise FaultlensError(
            f"{name} is not a faultlens report: {error}.", "Name a report.json written by `faultlens run`."
        ) from error
