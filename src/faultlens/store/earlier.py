"""What earlier runs of the same program were judged to have died of."""

from __future__ import annotations

import msgspec

from faultlens.fs.state_dir import home
from faultlens.records.report_file import Report
from faultlens.store import folder
from faultlens.store.keeping import REPORT, read_regular

_LOOKED_AT = 5  # reports
_MAX_REPORT = 64 << 20


class _Judged(msgspec.Struct):
    cause: str


class _Program(msgspec.Struct):
    command: tuple[str, ...] = ()


class _Crash(msgspec.Struct):
    program: _Program = msgspec.field(default_factory=_Program)
    source_digests: dict[str, str] = msgspec.field(default_factory=dict)
    time: float | None = None


class _Kept(msgspec.Struct):
    crash: _Crash
    diagnoses: list[_Judged] = msgspec.field(default_factory=list)


def earlier_causes(report: Report) -> tuple[str, ...]:
    """Of the last reports of one's own: those of the same command and the same sources, before this run began."""
    crash = report.crash
    began = (crash.time or 0.0) - (crash.seconds or 0.0)
    if not crash.source_digests:
        return ()
    found = []
    for entry in folder.listing()[:_LOOKED_AT]:
        kept = _read(entry) if entry.owner is None and entry.time is not None and entry.time < began else None
        same = kept is not None and kept.crash.source_digests == crash.source_digests
        if kept is not None and same and kept.crash.program.command == crash.program.command and kept.diagnoses:
            found.append(kept.diagnoses[0].cause)
    return tuple(dict.fromkeys(found))


def _read(entry: folder.Entry) -> _Kept | None:
    try:
        return msgspec.json.decode(read_regular(home() / entry.name / REPORT, _MAX_REPORT), type=_Kept)
    except (OSError, ValueError):
        return None
