"""What did a scan find, file by file, and is the file still the one that was scanned?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, get_args

import msgspec

from faultlens.data.source import is_remote
from faultlens.errors import FaultlensError
from faultlens.records.scan import Flaw, Identity, Scan, Scanned
from faultlens.records.severity import Severity, rank
from faultlens.text.file_names import to_name, to_text

Given: TypeAlias = Scan | Iterable[Flaw] | str | os.PathLike[str]
TFRECORD = "TFRecord"  # compressed: followed by GZIP or ZLIB in brackets


class Findings:
    """Flaws of a severity or worse. Files are known by their absolute path, a text: see `text/file_names.py`."""

    def __init__(self, given: Given, severity: Severity = "error") -> None:
        if severity not in get_args(Severity):
            raise FaultlensError(f"There is no severity {severity!r:.60}.", "Say 'error' or 'warning'.")
        scan = given if isinstance(given, Scan) else _scan(given)
        # On another machine, the data may lie elsewhere: then they are looked for from here.
        folder = scan.folder if os.path.isdir(to_name(scan.folder)) else ""
        self._files = {normal(file.path, folder): file for file in scan.files}
        self._flaws: dict[str, list[Flaw]] = {}
        for flaw in scan.flaws:
            if rank(flaw.severity) <= rank(severity):
                self._flaws.setdefault(normal(flaw.place.path, folder), []).append(flaw)
        wanted: tuple[Severity, ...] = ("error",) if severity == "error" else ("error", "warning")
        untold = [path for path, file in self._files.items() if self._counted(file, wanted) > self._told(path, wanted)]
        for path in untold:
            self._flaws.setdefault(path, [])
        self.untold = frozenset(untold)  # files with flaws that were counted only

    def paths(self) -> list[str]:
        return list(self._flaws)

    def flaws(self, path: str) -> list[Flaw]:
        return self._flaws.get(normal(path), [])

    def file(self, path: str) -> Scanned | None:
        return self._files.get(normal(path))

    def _told(self, path: str, severities: tuple[Severity, ...]) -> int:
        return sum(flaw.severity in severities for flaw in self.flaws(path))

    @staticmethod
    def _counted(file: Scanned, severities: tuple[Severity, ...]) -> int:
        return file.errors + (file.warnings if "warning" in severities else 0)


def normal(path: str, folder: str = "") -> str:
    path = path.removeprefix("file://")
    here = folder or to_text(os.getcwd())
    return path if is_remote(path) else os.path.normpath(os.path.join(here, path))


def same(scanned: Identity, now: Identity) -> bool:
    """Copies of a data set that keep sizes and times are as good as what was scanned."""
    same_time = not (scanned.modified and now.modified) or scanned.modified == now.modified
    same_tag = not (scanned.tag and now.tag) or scanned.tag == now.tag
    return scanned.size == now.size and same_time and same_tag


def changed(path: str) -> FaultlensError:
    return FaultlensError(f"{path} changed since it was scanned.", "Scan it again.")


def _scan(given: Iterable[Flaw] | str | os.PathLike[str]) -> Scan:
    if not isinstance(given, (str, os.PathLike)):
        return Scan(roots=(), flaws=tuple(given))
    path = Path(given)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Scan)
    except OSError as error:
        raise FaultlensError(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FaultlensError(
            f"{path} holds no findings: {error}.", "Write them with `faultlens scan PATH --json FILE`."
        ) from error
