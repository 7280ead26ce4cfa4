"""What was started, with which Python, and what it printed."""

from __future__ import annotations

from faultlens.records.base import Record


class Package(Record, frozen=True):
    name: str
    version: str


class PythonInfo(Record, frozen=True):
    version: str | None = None
    executable: str | None = None
    prefix: str | None = None  # its virtual environment
    path: tuple[str, ...] = ()  # its `sys.path`, where that could be read
    packages: tuple[Package, ...] = ()


class Program(Record, frozen=True):
    """What was started. Arguments and environment are redacted in every report, unless the user asked otherwise."""

    command: tuple[str, ...] = ()
    directory: str | None = None
    executable: str | None = None
    environment: dict[str, str] = {}
    redacted: bool = True
    python: PythonInfo | None = None


class Output(Record, frozen=True):
    """The last of what the process wrote; None where it could not be seen."""

    stdout: str | None = None
    stderr: str | None = None
