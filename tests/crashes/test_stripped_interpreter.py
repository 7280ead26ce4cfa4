"""A distribution's python3 has no symbols of its own: the same crash gets the same verdict there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from faultlens.diagnosis.rank import diagnose
from faultlens.inspection.symbols import is_stripped
from faultlens.records.diagnosis import Diagnosis

STRIPPED = os.path.realpath("/usr/bin/python3")

CRASHES = {
    "null pointer": "import ctypes\nctypes.string_at(0)\n",
    "value at null": "import ctypes\nvalue = ctypes.c_long.from_address(0)\nprint(value.value)\n",
    "abort": "import os\n\n\ndef give_up():\n    os.abort()\n\n\ngive_up()\n",
    "raised": "import faulthandler\nfaulthandler._sigsegv()\n",
    "overwritten object": "import ctypes\nvalue = [1]\nctypes.memset(id(value), 0x41, 16)\nprint(value)\n",
}


@pytest.mark.skipif(
    not os.access(STRIPPED, os.X_OK) or not is_stripped(STRIPPED), reason="needs a /usr/bin/python3 that is stripped"
)
@pytest.mark.parametrize("kind", CRASHES)
def test_the_same_verdict_with_and_without_symbols(run, tmp_path: Path, kind: str) -> None:
    (tmp_path / "main.py").write_text(CRASHES[kind])

    def verdict(python: str) -> tuple[str, str, object]:
        best: Diagnosis = diagnose(run([python, "main.py"]).died).diagnoses[0]
        return best.cause, best.title, best.location

    without, with_symbols = verdict(STRIPPED), verdict(sys.executable)
    assert without == with_symbols
    assert without[0] != "unknown"
