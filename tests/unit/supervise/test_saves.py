"""A program that died while saving: what is recorded of its saves, and what reports say."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import recorded
from faultlens.cli import main
from faultlens.cli.telling import worth_telling
from faultlens.model_files.generations import folder_of
from faultlens.model_files.manifest import Manifest, SavedFile, checksum
from faultlens.records.crash import Crash, Limit, Outcome, Output, Program, Progress, ProgressMark, SaveState, Saving
from faultlens.report import html, markdown
from faultlens.report.make import make_report
from faultlens.report.saves import saves_now, saving_in_words
from faultlens.store import folder
from faultlens.supervise import saves
from faultlens.supervise.saves import state_of, with_saves
from saved_files import hdf5, keras_archive, write_checkpoint, write_saved_model


def killed(directory: Path | str = "/job", detail: str | None = "model.keras", *marks: ProgressMark) -> Crash:
    """`detail`: what was being saved."""
    return Crash(
        outcome=Outcome(kind="signal", signal="SIGKILL"),
        method="status",
        pid=7,
        time=1.7e9,
        seconds=100.0,
        program=Program(command=("python", "train.py"), directory=str(directory)),
        progress=Progress(phase="save" if detail is not None else None, detail=detail, seconds_before=0.1, marks=marks),
    )


def save(path: Path, number: int, content: bytes) -> None:
    """As `faultlens.save` leaves a generation."""
    target = path if path.parent.parent.name != ".faultlens" else path.parent.parent.parent / path.parent.name
    folder_of(target).mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    state = path.stat()
    file = SavedFile(name="", size=state.st_size, crc32c=checksum(path), mtime_ns=state.st_mtime_ns)
    manifest = Manifest(generation=number, format="keras", time=time.time() - 60, files=(file,))
    (folder_of(target) / f"{number:08d}.json").write_bytes(msgspec.json.encode(manifest))


# ------------------------------------------------------------------------------------------ what is recorded


def test_generations_of_ours(tmp_path: Path) -> None:
    save(tmp_path / "model.keras", 7, keras_archive())
    save(folder_of(tmp_path / "model.keras") / "00000006.keras", 6, keras_archive(version="3.0.0"))
    (folder_of(tmp_path / "model.keras") / "unfinished-host-7-1.keras").write_bytes(bytes(500))
    found = with_saves(killed(tmp_path)).saving
    assert found is not None and found.under_way and found.kept and found.unfinished == 500 and found.disk_free
    assert [(each.generation, each.whole, each.checked, each.current) for each in found.saves] == [
        (7, True, True, True),
        (6, True, True, False),
    ]
    os.truncate(tmp_path / "model.keras", 100)
    found = with_saves(killed(tmp_path)).saving
    assert found is not None and [each.whole for each in found.saves] == [False, True]


@pytest.mark.parametrize("name", ["model.keras", "model.h5", "folder", "ckpt", "ckpt-3"])
def test_saves_by_others(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        write_saved_model(path)
    elif name.startswith("ckpt"):
        write_checkpoint(path)
    else:
        path.write_bytes(keras_archive() if name.endswith(".keras") else hdf5())
    found = with_saves(killed(tmp_path, name)).saving
    assert found is not None and not found.kept and [each.whole for each in found.saves] == [True]
    broken = {"folder": path / "saved_model.pb", "ckpt": tmp_path / "ckpt.data-00000-of-00001"}.get(name, path)
    if name == "ckpt-3":
        broken = tmp_path / "ckpt-3.data-00000-of-00001"
    os.truncate(broken, 0)
    found = with_saves(killed(tmp_path, name)).saving
    assert found is not None and [each.whole for each in found.saves] == [False] and found.saves[0].damage


def test_a_checkpoint_that_has_no_index_yet(tmp_path: Path) -> None:
    for number in (1, 2):
        write_checkpoint(tmp_path / f"ckpt-{number}")
    (tmp_path / "ckpt-3.data-00000-of-00001.tempstate123").touch()
    found = with_saves(killed(tmp_path, "ckpt-3")).saving
    assert found is not None and [Path(each.path).name for each in found.saves] == ["ckpt-2", "ckpt-1"]
    assert saving_in_words(replace(killed(tmp_path, "ckpt-3"), saving=found))[0].startswith(
        "was killed while saving ckpt-3: ckpt-2 is safe (4.2 KiB"
    )


def test_what_was_saved_before_under_other_names(tmp_path: Path) -> None:
    (tmp_path / "01.keras").write_bytes(keras_archive())
    (tmp_path / "02.keras").write_bytes(keras_archive()[:300])
    (tmp_path / "other.keras").write_bytes(keras_archive())  # not by this program
    marks = [ProgressMark(seconds=5, kind="saved", text=f"0{number}.keras") for number in (1, 2)]
    found = with_saves(killed(tmp_path, "03.keras", *marks)).saving
    assert found is not None
    assert [(Path(each.path).name, each.whole) for each in found.saves] == [("02.keras", False), ("01.keras", True)]
    said = saving_in_words(replace(killed(tmp_path, "03.keras"), saving=found))
    assert said[0].startswith("was killed while saving 03.keras: 01.keras is safe")


def test_a_save_that_failed_before(tmp_path: Path) -> None:
    """An exception ends the save: what it left is told only where it is damaged."""
    marks = [ProgressMark(seconds=5, kind=kind, text="model.keras") for kind in ("save", "saved")]
    (tmp_path / "model.keras").write_bytes(keras_archive())
    assert with_saves(killed(tmp_path, None, *marks)).saving is None
    (tmp_path / "model.keras").write_bytes(keras_archive()[:-50])
    crash = with_saves(killed(tmp_path, None, *marks))
    assert crash.saving is not None and not crash.saving.under_way
    assert saving_in_words(crash)[0].startswith("its last save to model.keras had failed: it is cut off")


@pytest.mark.parametrize("name", ["gs://bucket/model.keras", "...odel.keras", "a\0b", ""])
def test_names_that_cannot_be_looked_at(tmp_path: Path, name: str) -> None:
    assert with_saves(killed(tmp_path, name)).saving is None


def test_hostile_files_cost_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "model.keras")
    found = state_of(tmp_path / "model.keras")
    assert isinstance(found, Saving) and found.saves[0].whole is None
    (tmp_path / "loop.keras").symlink_to("loop.keras")
    assert isinstance(state_of(tmp_path / "loop.keras"), Saving)
    monkeypatch.setattr(saves, "SECONDS", 0.05)
    monkeypatch.setattr(saves, "_save", lambda _: time.sleep(60))
    crash = with_saves(killed(tmp_path))
    assert crash.saving is None and crash.gaps == ("saves of model.keras: took longer than 0.05 s",)


def test_a_program_that_ended_well_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model.keras").touch()
    assert with_saves(replace(killed(tmp_path), outcome=Outcome(kind="ok"))).saving is None


# ----------------------------------------------------------------------------------------- what is said of it

WHOLE = SaveState(
    path="/job/model.keras",
    generation=7,
    current=True,
    format="Keras archive",
    time=1.7e9 - 180,
    size=12 << 20,
    whole=True,
)
CUT = SaveState(path="/job/model.keras", current=True, size=0, whole=False, damage="it is empty: a save began")


def said(saving: Saving, *marks: ProgressMark) -> list[str]:
    return saving_in_words(replace(killed("/job", "model.keras", *marks), saving=saving))


def test_which_one_is_safe() -> None:
    assert said(Saving(path="/job/model.keras", kept=True, saves=(WHOLE,), unfinished=5)) == [
        "was killed while saving model.keras: generation 7 is safe (12 MiB, saved 3 min before the end)",
        'faultlens.load("model.keras") takes it; the next faultlens.save removes what is left of this one',
    ]
    older = replace(WHOLE, path="/job/.faultlens/model.keras/00000006.keras", generation=6, current=False)
    assert said(Saving(path="/job/model.keras", kept=True, saves=(CUT, older)))[1:] == [
        "generation 6 is safe (12 MiB, saved 3 min before the end)",
        'faultlens.load("model.keras") takes it',
    ]


def test_what_is_lost() -> None:
    assert said(Saving(path="/job/model.keras", saves=(CUT,))) == [
        "was killed while saving model.keras, which is damaged now: it is empty: a save began",
        "what was saved as model.keras before, if anything was, is lost; faultlens.save would have kept it",
    ]
    before = ProgressMark(seconds=40, kind="saved", text="model.keras")
    assert said(Saving(path="/job/model.keras", saves=(CUT,)), before)[1] == (
        "the save of 1 min before the end is lost; faultlens.save would have kept it"
    )
    assert said(Saving(path="/job/model.keras")) == [
        "was killed while saving model.keras: nothing has been saved under this name before"
    ]
    assert said(Saving(path="/job/model.keras", saves=(replace(WHOLE, generation=None),))) == [
        "was killed while saving model.keras: model.keras is whole (12 MiB, saved 3 min before the end)"
    ]
    unread = SaveState(path="/job/model.keras", current=True, damage="Permission denied")
    assert "could not be told (Permission denied)" in said(Saving(path="/job/model.keras", saves=(unread,)))[0]


def test_every_report_tells_it() -> None:
    crash = replace(killed("/home/ada/run"), saving=Saving(path="/home/ada/run/model.keras", saves=(CUT,)))
    report = make_report(crash)
    text = recorded.plain(report)
    assert "saves  was killed while saving model.keras, which is damaged now" in text
    assert 'save with faultlens.save(model, "model.keras")' in text
    assert "/home/ada/run/model.keras" in recorded.plain(report, verbose=True)
    page = html.page(report)
    assert '<section id="saves">' in page and "which is damaged now" in page and 'href="#saves"' in page
    document = markdown.document(report)
    assert "Was killed while saving model.keras, which is damaged now" in document and "ada" not in document


def test_show_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    (tmp_path / "model.keras").write_bytes(keras_archive()[:-50])
    crash = with_saves(killed(tmp_path))
    stored = folder.save(make_report(crash))
    assert main(["show"]) == 0
    assert "now  model.keras: damaged (Keras archive" in capsys.readouterr().out
    (tmp_path / "model.keras").write_bytes(keras_archive())
    assert main(["show"]) == 0
    shown = capsys.readouterr().out
    assert "now  model.keras: whole (Keras archive" in shown and "which is damaged now" in shown
    (tmp_path / "model.keras").unlink()
    assert main(["show"]) == 0
    assert "now  model.keras is not there any more" in capsys.readouterr().out
    elsewhere = shutil.copy(stored, tmp_path / "report.json")  # a report of another machine
    assert main(["show", str(elsewhere)]) == 0
    assert "now  " not in capsys.readouterr().out
    assert saves_now(Saving(path=str(tmp_path / "model.keras")), crash) == ["model.keras is not there any more"]


# --------------------------------------------------------------------------------------------- what follows


def fixes(crash: Crash) -> list[str]:
    return [fix.title for fix in make_report(crash).diagnoses[0].fixes]


def test_advice_only_where_a_save_was_under_way() -> None:
    advice = 'save with faultlens.save(model, "model.keras")'
    saving = Saving(path="/job/model.keras", saves=(CUT,))
    assert advice in fixes(replace(killed(), saving=saving))
    assert advice not in fixes(replace(killed(detail=None)))
    assert advice not in fixes(replace(killed(), saving=replace(saving, kept=True)))
    full = replace(
        killed(),
        outcome=Outcome(kind="exception", exit_code=1),
        output=Output(stderr='Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n'
                             "OSError: [Errno 28] No space left on device\n"),
    )  # fmt: skip
    assert make_report(full).diagnoses[0].cause == "disk-full" and advice not in fixes(full)
    assert advice in fixes(replace(full, saving=saving))


def test_a_file_that_may_not_grow() -> None:
    text = (
        'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nOSError: [Errno 27] File too large\n'
    )
    crash = replace(
        killed(),
        outcome=Outcome(kind="exception", exit_code=1),
        output=Output(stderr=text),
        limits={"RLIMIT_FSIZE": Limit(soft=1 << 20, hard=None)},
        saving=Saving(path="/job/model.keras", saves=(CUT,)),
    )
    best = make_report(crash).diagnoses[0]
    assert best.cause == "file-size-limit" and "1 MiB (ulimit -f)" in best.title and best.confidence > 0.9
    assert 'save with faultlens.save(model, "model.keras")' in fixes(crash)
    signal = replace(killed(detail=None), outcome=Outcome(kind="signal", signal="SIGXFSZ"))
    assert make_report(signal).diagnoses[0].cause == "file-size-limit"


def test_a_lost_save_is_told_whoever_asked_for_the_end() -> None:
    ended = replace(killed(), outcome=Outcome(kind="signal", signal="SIGTERM"))
    assert not worth_telling(make_report(ended))
    assert worth_telling(make_report(replace(ended, saving=Saving(path="/job/model.keras", saves=(CUT,)))))
    assert not worth_telling(make_report(replace(ended, saving=Saving(path="/job/model.keras", saves=(WHOLE,)))))
