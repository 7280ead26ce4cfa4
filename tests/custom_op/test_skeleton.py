"""`faultlens op new`, as a user does it: written, built, tested, and found clean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.cli import main
from faultlens.custom_op.new import write
from faultlens.errors import FaultlensError
from faultlens.target_env.target import Options, meet

pytestmark = pytest.mark.tensorflow


def test_it_builds_and_passes_its_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["op", "new", "PickRows"]) == 0
    status, said = _make_test(Path("pick_rows"))
    assert status == 0, said
    assert "Ran 11 tests" in said
    # They are worth something: an op that forgets its factor fails them.
    wrapper = Path("pick_rows/pick_rows.py")
    wrapper.write_text(wrapper.read_text().replace("factor=factor", "factor=1.0"))
    status, said = _make_test(Path("pick_rows"))
    assert status != 0
    assert "FAILED (failures=" in said


def _make_test(folder: Path) -> tuple[int, str]:
    command = ["make", "test", f"PYTHON={sys.executable}", "CXXFLAGS=-O1 -Wall -Werror"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_an_op_of_tensorflow_keeps_its_name() -> None:
    with pytest.raises(FaultlensError, match="TensorFlow has an op GatherNd itself"):
        write.check_name_is_free("GatherNd", meet(Options()))
