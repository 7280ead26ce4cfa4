"""What a reproducer needs is kept where it stays; where nothing can be kept, it says what to do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from faultlens.custom_op.building import Target
from faultlens.custom_op.fuzz import kept
from faultlens.op_model.arrays import Array, npy
from faultlens.sandbox.trial.trial import SCRIPT
from faultlens.target_env.op_library import Interface

FILES = {SCRIPT: b"x = np.load('x0.npy')\n", "x0.npy": npy(Array("int32", (3,), (1, 2, 3)))}
LIBRARY = "library = tf.load_op_library({!r})"


def test_arrays_are_loaded_from_where_they_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path))
    text = kept.text_of("MyOp", FILES)
    found = re.search(r"np\.load\('(.+)'\)", text)
    assert found and Path(found[1]).read_bytes() == FILES["x0.npy"]
    assert kept.text_of("MyOp", FILES) == text  # the same again takes no more room
    assert kept.text_of("MyOp", {SCRIPT: b"pass"}) == "pass"


def test_the_latest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path))
    texts = [kept.text_of(f"Op{number}", FILES) for number in range(kept.MOST + 3)]
    assert len(list((tmp_path / "ops").iterdir())) == kept.MOST
    assert Path(texts[-1].split("'")[1]).exists()


def test_where_nothing_can_be_kept_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "file"))
    assert kept.text_of("MyOp", FILES).startswith("# Set FAULTLENS_HOME")
    target = Target(sys.executable, Interface("2.16.1", Path("/nowhere/tensorflow"), None, 1))
    library = kept.Library(tmp_path / "gone" / "my.so", tmp_path / "my.cc", target, lasts=False)
    first, second = library.text(LIBRARY.format(str(library.path))).splitlines()
    assert first.startswith("# first: g++ ") and str(library.source) in first and " -o my.so " in first
    assert second == LIBRARY.format("./my.so")
