"""A reproducer is handed over in a folder of its own and kept with its report; nothing else is touched."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

import hostile
import recorded
from faultlens.cli import main
from faultlens.diagnosis.signature import Signature
from faultlens.errors import FaultlensError
from faultlens.records import report_file
from faultlens.records.diagnosis import Reproducer
from faultlens.repro.folder import readme, write_folder
from faultlens.repro.task import Found
from faultlens.sandbox.trial.trial import write_files
from faultlens.store import folder

DEATH = Signature(signal="SIGABRT", function="tensorflow::Tensor::Slice", check="tensor.cc:1120")
FOUND = Found("op", "BlockLSTM", {"reproduce.py": b"import tensorflow as tf\n", "x.npy": b"\x93NUMPY"}, DEATH, 3, 3)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    return tmp_path


def test_what_is_in_the_folder() -> None:
    written = write_folder(FOUND, "fa19185f", None)
    assert str(written) == "faultlens-repro-BlockLSTM-fa19185f"
    assert sorted(path.name for path in written.iterdir()) == ["README.md", "reproduce.py", "x.npy"]
    assert (written / "x.npy").read_bytes() == b"\x93NUMPY"


def test_the_readme_says_how_to_run_it_and_what_happens() -> None:
    proof = recorded.report("segv_in_custom_op").crash
    text = readme(FOUND._replace(proof=proof))
    assert "python reproduce.py" in text
    assert "SIGABRT in tensorflow::Tensor::Slice (tensor.cc:1120)" in text
    assert "died this way 3 times" in text
    assert proof.program.python and proof.program.python.version
    assert f"- Python {proof.program.python.version}" in text


def test_names_of_strangers_are_no_markdown_and_no_path() -> None:
    evil = FOUND._replace(kind="script", name="../../<img src=x>\n# a", signature=Signature(signal="<b>\x1b[2J"))
    written = write_folder(evil, "../x", None)
    assert written.parent == Path()
    assert ".." not in written.parts
    text = (written / "README.md").read_text()
    assert "\\<img" in text
    assert "\x1b" not in text


def test_an_earlier_folder_stays_as_it_is() -> None:
    first, second = write_folder(FOUND, "fa19185f", None), write_folder(FOUND, "fa19185f", None)
    assert (first.name, second.name) == ("faultlens-repro-BlockLSTM-fa19185f", "faultlens-repro-BlockLSTM-fa19185f-2")
    with pytest.raises(FaultlensError, match="is not empty"):
        write_folder(FOUND, "fa19185f", first)


def test_no_file_is_written_outside_of_its_folder(elsewhere: Path) -> None:
    with pytest.raises(FaultlensError, match="outside"):
        write_files(elsewhere / "in", {"../out.py": b""})
    assert not (elsewhere / "out.py").exists()


def test_a_kept_report_is_updated_in_its_place(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    report = recorded.report("segv_in_custom_op")
    path = folder.save(report)
    found = Reproducer(kind="op", script="import tensorflow as tf\n", runs=3, same=3)
    folder.update(path, replace(report, reproducer=found))
    assert report_file.read(path) == replace(report, reproducer=found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.id for entry in folder.listing()] == [folder.identity(path)]
    assert main(["show", "--json", str(elsewhere / "shown.json")]) == 0
    assert report_file.read(elsewhere / "shown.json").reproducer == found
    capsys.readouterr()


def test_which_reports_are_our_own(elsewhere: Path) -> None:
    path = folder.save(recorded.report("segv_in_custom_op"))
    copy = elsewhere / "report.json"
    copy.write_bytes(path.read_bytes())
    assert folder.is_kept(path)
    assert not folder.is_kept(copy)
    assert len(folder.identity(copy)) == 8


def test_a_hostile_report_runs_nothing(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """Without a word of consent no program is started, whatever the report says."""
    report = hostile.hostile()
    kernel = replace(report.crash.kernels[0], attributes={}, at_fault=True)
    kernel = replace(kernel, inputs=tuple(replace(each, shape=each.shape[:9]) for each in kernel.inputs[:9] if each))
    crash = replace(report.crash, kernels=(kernel,), threads=report.crash.threads[:2], progress=None, timeline=())
    (elsewhere / "report.json").write_bytes(report_file.to_json(replace(report, crash=crash)))
    report_file.read(elsewhere / "report.json")  # strange, but a report
    before = sorted(elsewhere.iterdir())
    assert main(["repro", "report.json", "--python", "/bin/false"]) in (1, 2)
    assert main(["repro", "report.json"]) in (1, 2)
    assert sorted(elsewhere.iterdir()) == before
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert shown.count("\n") == 2
