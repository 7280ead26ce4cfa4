"""Whether the import of TensorFlow works, tried in the user's Python: in a sandbox, and in a process that may die."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from faultlens.inspection.siginfo import signal_name
from faultlens.records.crash import Record
from faultlens.sandbox.guest import confinement, guard
from faultlens.sandbox.guests import guest_command
from faultlens.text.safe import last_lines

CHILD = Path(__file__).parent / "guest" / "try_import.py"
SECONDS = 180.0


class Failure(Record, frozen=True):
    """What the process told; it runs foreign code, so nothing else is believed."""

    statement: str = ""
    error: str = ""  # "ModuleNotFoundError: No module named 'urllib3'"
    module: str = ""  # that could not be imported, where it is known
    place: str = ""  # "…/requests/compat.py:11"


class _Answer(Record, frozen=True):
    told: Failure


class Trial(Record, frozen=True):
    failure: Failure | None = None  # an exception
    died: str = ""  # "SIGILL", "exit status 3"
    last_words: tuple[str, ...] = ()
    late: bool = False

    @property
    def works(self) -> bool:
        return self.failure is None and not self.died and not self.late


def try_import(python: str, statements: Sequence[str], variables: Mapping[str, str], seconds: float = SECONDS) -> Trial:
    """Raises OSError where no process can be started."""
    with tempfile.TemporaryDirectory(prefix="faultlens-import-", ignore_cleanup_errors=True) as folder:
        request = {
            "statements": list(statements),
            "folder": folder,
            "means": confinement.available(),
        }
        said = Path(folder, "stderr")
        with said.open("wb") as stderr:
            child = subprocess.Popen(
                guest_command(python, CHILD, json.dumps(request)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=folder,
                env={**variables, "TMPDIR": folder},
                start_new_session=True,
            )
        try:
            answer, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return Trial(late=True)
        finally:
            status = guard.end(child)  # and what it may have started
            assert child.stdout is not None
            child.stdout.close()
        try:
            told = msgspec.json.decode(answer, type=_Answer).told
        except (msgspec.MsgspecError, ValueError, RecursionError):
            how = signal_name(-status) if status < 0 else f"exit status {status}"
            return Trial(died=how, last_words=tuple(last_lines(said.read_bytes().decode("utf-8", "replace"), 3, 200)))
        return Trial(failure=told if told.error else None)
