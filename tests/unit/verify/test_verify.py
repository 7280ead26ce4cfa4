"""`faultlens verify`, as a user types it: what is whole, what is damaged, what cannot be looked at."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import places
from faultlens.cli import main, output
from faultlens.model_files.generations import folder_of
from faultlens.model_files.manifest import Manifest, SavedFile, checksum, place_of
from faultlens.model_files.writer import Writer
from faultlens.records.verification import Verification, VerifiedGeneration, VerifiedSave
from faultlens.report.verified import render
from faultlens.verify import values
from faultlens.verify.confined import Answer, Told
from saved_files import hdf5, keras_archive, tflite, write_checkpoint, write_saved_model

SCHEMA = places.ROOT / "docs" / "verification.schema.json"
Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def verify(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verify:
    """verify(path, …) → exit status, and the JSON. No value is read: the files are made by hand, and hold none."""
    monkeypatch.setattr(values, "ask", lambda *_: Answer(told=Told()))
    monkeypatch.chdir(tmp_path)

    def call(*words: str | Path) -> tuple[int, dict[str, Any]]:
        status = main(["verify", "--json", "-", *map(str, words)])
        return status, json.loads(capsysbinary.readouterr().out)

    return call


def states(found: dict[str, Any]) -> dict[str, list[bool | None]]:
    return {save["path"]: [each["whole"] for each in save["generations"]] for save in found["saves"]}


def write_manifest(target: Path, root: Path, number: int, names: tuple[str, ...] = ("",), form: str = "keras") -> None:
    """As `faultlens.save` leaves it beside what is at `root`."""
    files = []
    for name in names:
        path = place_of(root, SavedFile(name=name, size=0, crc32c=0, mtime_ns=0)) if name else root
        state = path.stat()
        files.append(SavedFile(name=name, size=state.st_size, crc32c=checksum(path), mtime_ns=state.st_mtime_ns))
    manifest = Manifest(generation=number, format=form, time=1.7e9 + number, files=tuple(files))  # type: ignore[arg-type]
    folder_of(target).mkdir(parents=True, exist_ok=True)
    (folder_of(target) / f"{number:08d}.json").write_bytes(msgspec.json.encode(manifest))


def two_generations(target: Path) -> Path:
    """Returns the earlier one."""
    folder_of(target).mkdir(parents=True)
    kept = folder_of(target) / "00000001.keras"
    kept.write_bytes(keras_archive(version="3.1.0"))
    target.write_bytes(keras_archive())
    write_manifest(target, kept, 1)
    write_manifest(target, target, 2)
    return kept


# ------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize(
    ("name", "is_archive", "kerases", "loads"),
    [
        ("model.h5", True, ("3.15.1",), False),
        ("model.hdf5", True, ("2.15.0",), False),
        ("model.h5", True, (), False),
        ("model.keras", False, ("3.15.1",), False),
        ("model.keras", False, ("2.15.0",), None),
        ("model.keras", False, ("3.15.1", "2.19.0"), None),
        ("model.keras", True, ("3.15.1",), None),
        ("model.h5", False, ("3.15.1",), None),
    ],
)
def test_a_format_under_the_name_of_another(
    verify: Verify,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    is_archive: bool,
    kerases: tuple[str, ...],
    loads: bool | None,
) -> None:
    monkeypatch.setattr("faultlens.cli.verify._python", lambda _: (sys.executable, kerases))
    (tmp_path / name).write_bytes(keras_archive() if is_archive else hdf5())
    status, found = verify(name)
    (generation,) = found["saves"][0]["generations"]
    assert (status, generation["whole"], generation["loaded"]) == (0 if loads is None else 1, True, loads)
    if loads is False:
        assert ("under the name of an HDF5 file" if is_archive else "does not read under") in generation["load_problem"]
        assert f"mv -n {name} model.{'keras' if is_archive else 'h5'}" in generation["load_problem"]
        assert not (is_archive and generation["taken"])


def test_a_checkpoint_that_lost_its_index_is_found_in_its_folder(verify: Verify, tmp_path: Path) -> None:
    prefix = tmp_path / "train" / "ckpt-1"
    write_checkpoint(prefix)
    write_checkpoint(tmp_path / "train" / "ckpt-2")
    index = prefix.with_name("ckpt-1.index")
    index.unlink()
    status, found = verify("train")
    assert (status, states(found)) == (1, {"train/ckpt": [True, False]})
    assert found["saves"][0]["generations"][1]["damages"] == [
        "ckpt-1.index is missing, so that the data files cannot be understood"
    ]
    prefix.with_name("ckpt-2.index").unlink()
    assert states(verify("train")[1]) == {"train/ckpt": [False, False]}
    assert states(verify("train/ckpt-1")[1]) == {"train/ckpt-1": [False]}


def test_a_managed_checkpoint_that_lost_its_index(verify: Verify, tmp_path: Path) -> None:
    prefix = tmp_path / "ckpt-1"
    write_checkpoint(prefix)
    write_manifest(tmp_path / "ckpt", prefix, 1, (".index", ".data-00000-of-00001"), "checkpoint")
    prefix.with_name("ckpt-1.index").unlink()
    status, found = verify(".")
    assert (status, states(found)) == (0, {"ckpt": []})
    assert found["saves"][0]["notes"] == [
        "an interrupted save left data without an index (ckpt-1); the next save removes it"
    ]
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ckpt-1"\n')  # it was written to the end
    status, found = verify(".")
    assert (status, states(found)) == (1, {"ckpt": [False]})
    assert found["saves"][0]["generations"][0]["damages"] == [
        "ckpt-1.index is missing, so that the data files cannot be understood"
    ]


def test_what_is_gone_altogether(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "checkpoint").write_text('model_checkpoint_path: "ckpt-5"\n')
    model = tmp_path / "models" / "model.keras"
    model.parent.mkdir()
    model.write_bytes(keras_archive())
    write_manifest(model, model, 1)
    model.unlink()
    status, found = verify("train", "models")
    assert status == 1
    assert [(save["path"], save["missing"], save["generations"]) for save in found["saves"]] == [
        ("train/ckpt", True, []),
        ("models/model.keras", True, []),
    ]
    assert found["saves"][0]["notes"] == ["the file `checkpoint` names ckpt-5, which is not there"]
    assert verify(model)[0] == 1


def test_every_format(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_bytes(keras_archive())
    (tmp_path / "model.h5").write_bytes(hdf5())
    (tmp_path / "model.tflite").write_bytes(tflite())
    write_saved_model(tmp_path / "exported")
    write_checkpoint(tmp_path / "train" / "ckpt-1")
    write_checkpoint(tmp_path / "train" / "ckpt-2")
    write_checkpoint(tmp_path / "alone")
    status, found = verify(".")
    assert status == 0
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert states(found) == {
        "alone": [True],
        "exported": [True],
        "model.h5": [True],
        "model.keras": [True],
        "model.tflite": [True],
        "train/ckpt": [True, True],
    }
    compared = {save["path"]: save["generations"][0]["compared"] for save in found["saves"]}
    assert compared["model.keras"] == compared["alone"] == "checksums" and compared["model.h5"] == "structure"
    for name in ("model.keras", "exported/saved_model.pb", "train/ckpt-2", "train/ckpt-2.index", "alone", "train/ckpt"):
        assert verify(name)[0] == 0, name


def test_generations_and_which_one_is_loaded(verify: Verify, tmp_path: Path) -> None:
    target = tmp_path / "model.keras"
    kept = two_generations(target)
    status, found = verify("model.keras")
    newer, older = found["saves"][0]["generations"]
    assert status == 0 and (newer["number"], older["number"]) == (2, 1)
    assert newer["taken"] and newer["current"] and newer["compared"] == "manifest" and newer["time"] == 1.7e9 + 2
    assert not older["taken"] and older["path"] == str(kept)

    state = target.stat()
    data = bytearray(target.read_bytes())
    data[-40] ^= 1
    target.write_bytes(data)
    os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns))  # as on a disk that forgets
    status, found = verify("model.keras")
    newer, older = found["saves"][0]["generations"]
    assert status == 1 and newer["whole"] is False and older["whole"] and older["taken"] and not newer["taken"]
    assert "is not what was written" in newer["damages"][0]

    target.unlink()
    status, found = verify("model.keras")
    assert status == 1 and found["saves"][0]["missing"]
    for name in (".faultlens/model.keras/00000001.keras", ".faultlens/model.keras", ".faultlens", "."):
        assert states(verify(name)[1]) == {"model.keras": [True]}, name
    kept.unlink()
    assert verify("model.keras")[0] == 1  # its manifest is still there


def test_what_was_changed_after_it_was_written(verify: Verify, tmp_path: Path) -> None:
    """The graph of a SavedModel has no checksum of its own."""
    target = tmp_path / "model"
    write_saved_model(target)
    names = ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001")
    write_manifest(target, target, 3, names, "saved_model")
    assert states(verify("model")[1]) == {"model": [True]}
    graph = (target / "saved_model.pb").read_bytes()
    (target / "saved_model.pb").write_bytes(graph.replace(b"node", b"nude"))
    status, found = verify("model")
    (changed,) = found["saves"][0]["generations"]
    assert status == 2 and "changed after faultlens.save wrote it as generation 3" in changed["unknown"]
    (target / "saved_model.pb").write_bytes(graph + b"\x12\x00")  # something else, by somebody else
    status, found = verify("model")
    assert status == 0 and found["saves"][0]["generations"][0]["notes"] == ["it was not written by faultlens.save"]


def test_interrupted_saves_are_recognised(verify: Verify, tmp_path: Path) -> None:
    two_generations(tmp_path / "model.keras")
    folder = folder_of(tmp_path / "model.keras")
    unfinished = folder / Writer.own().new_name()
    unfinished.mkdir(0o700)
    (unfinished / "model.keras").write_bytes(bytes(2048))
    (folder / "00000009.json").write_bytes(b"{")
    status, found = verify("model.keras")
    assert status == 0
    assert found["saves"][0]["notes"] == [
        "an interrupted save was left (2 KiB); the next save removes it",
        "the manifest 00000009.json cannot be read",
    ]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert verify("model.keras")[1]["saves"][0]["notes"][0] == "a save is under way (2 KiB so far)"
    unfinished.rename(folder / replace(Writer.own(), host="elsewhere", boot="another").new_name())
    assert verify("model.keras")[1]["saves"][0]["notes"][0] == "a save may be under way on elsewhere (2 KiB so far)"
    write_checkpoint(tmp_path / "ckpt-1")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ckpt-5"\n')
    assert verify("ckpt")[1]["saves"][0]["notes"] == ["the file `checkpoint` names ckpt-5, which is not there"]


# ---------------------------------------------------------------------------------------- hostile things


def test_damage_and_hostile_contents(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "empty.keras").touch()
    (tmp_path / "cut.keras").write_bytes(keras_archive()[:-200])
    (tmp_path / "bomb.keras").write_bytes(bomb())
    (tmp_path / "cut.h5").write_bytes(hdf5()[:-200])
    (tmp_path / "cut.tflite").write_bytes(tflite()[:-200])
    write_saved_model(tmp_path / "huge")
    (tmp_path / "huge" / "saved_model.pb").write_bytes(b"\x12\xff\xff\xff\xff\xff\x7f" + b"z" * 10)
    write_checkpoint(tmp_path / "lost")
    (tmp_path / "lost.data-00000-of-00001").write_bytes(b"x")
    folder_of(tmp_path / "evil.keras").mkdir(parents=True)
    shutil.copy(tmp_path / "cut.keras", folder_of(tmp_path / "evil.keras") / "00000001.keras")
    evil = Manifest(
        generation=1, format="keras", time=1e300, files=(SavedFile(name="", size=2**60, crc32c=0, mtime_ns=0),)
    )
    (folder_of(tmp_path / "evil.keras") / "00000001.json").write_bytes(msgspec.json.encode(evil))
    status, found = verify(".")
    assert status == 1
    bomb_state = states(found).pop("bomb.keras")
    assert bomb_state == [None]
    assert all(each == [False] for path, each in states(found).items() if path != "bomb.keras")
    assert len(states(found)) == 8


def bomb() -> bytes:
    """Four gigabytes of nothing."""
    file = io.BytesIO(keras_archive())
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/zeros", bytes(1 << 20))
    data = bytearray(file.getvalue())
    entry = data.rindex(b"PK\1\2")
    data[entry + 24 : entry + 28] = struct.pack("<I", 0xF0000000)
    return bytes(data)


@pytest.mark.parametrize("make", ["fifo", "loop", "nowhere", "device", "text", "nothing", "empty folder", "nul"])
def test_what_cannot_be_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path, make: str) -> None:
    path = tmp_path / "model.keras"
    if make == "fifo":
        os.mkfifo(path)
    elif make in ("loop", "nowhere"):
        path.symlink_to(path if make == "loop" else "gone")
    elif make == "device":
        path = Path("/dev/zero")
    elif make == "text":
        path = tmp_path / "notes.txt"
        path.write_text("no model")
    elif make == "empty folder":
        path = tmp_path
    name = "a\0b" if make == "nul" else str(path)
    assert main(["verify", name]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("faultlens: ") and said.err.count("\n") == 1


def test_a_folder_is_looked_through_whatever_lies_in_it(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_bytes(keras_archive())
    os.mkfifo(tmp_path / "pipe.keras")
    (tmp_path / "loop.keras").symlink_to("loop.keras")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / ".faultlens").mkdir()
    (tmp_path / ".faultlens" / "file").touch()
    (tmp_path / "faiss.index").write_bytes(b"something else")
    assert states(verify(".")[1]) == {"model.keras": [True]}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_without_permission(tmp_path: Path) -> None:
    """In a process of its own, which gives its rights up."""
    for path in (tmp_path, *tmp_path.parents[:-1]):
        if path.stat().st_uid == os.getuid() and path.name.startswith("pytest"):
            path.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "model.keras").write_bytes(keras_archive())
    (tmp_path / "mine.keras").write_bytes(keras_archive())
    (tmp_path / "mine.keras").chmod(0o600)
    expected = {"closed": 2, "closed/model.keras": 2, "mine.keras": 2, ".": 2}
    for name, status in expected.items():
        pid = os.fork()
        if pid == 0:
            found = 99
            try:
                import faultlens.verify.verify  # noqa: F401 (what lies in root's folders is imported before)

                os.chdir(tmp_path)
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                found = main(["verify", name])
            finally:
                os._exit(found)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, name


# ------------------------------------------------------------------------------------------- the screen


def shown(found: Verification, width: int = 80, verbose: bool = False) -> str:
    stream = io.StringIO()
    console = output.console(stream)
    console.width = width
    render(found, console=console, verbose=verbose)
    return stream.getvalue()


def generation(number: int | None = 7, **facts: Any) -> VerifiedGeneration:
    given = {
        "path": f"/runs/{number}",
        "format": "Keras archive",
        "whole": True,
        "compared": "manifest",
        "size": 12 << 20,
    }
    return VerifiedGeneration(number=number, time=1.7e9, **{**given, **facts})


def test_the_screen() -> None:
    newer = generation(7, whole=False, damages=("its model.weights.h5 has a wrong checksum", "and", "so", "on", "too"))
    older = generation(6, taken=True, notes=("3 values of /layers/dense/vars/0 are NaN or infinite",))
    left = "an interrupted save was left (3 MiB); the next save removes it"
    found = Verification(saves=(VerifiedSave(path="runs/model.keras", generations=(newer, older), notes=(left,)),))
    text = shown(found)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[0] == "runs/model.keras  Keras archive"
    assert "✗ generation 7" in text and "damaged: its model.weights.h5 has a wrong checksum" in text
    assert "12 MiB  whole; faultlens.load takes it\n" in text
    assert "and 1 more damage (-v)" in text and "1 more" not in shown(found, verbose=True)
    assert "note: 3 values" in text and left in text and "1 of 2 saves is damaged." in text
    assert max(map(len, shown(found, width=40).splitlines())) <= 46


def test_the_screen_says_what_it_knows() -> None:
    def of(found: VerifiedGeneration, path: str = "model.h5", **facts: Any) -> str:
        save = VerifiedSave(path=path, generations=(found,), **facts)
        return shown(Verification(saves=(save,)), verbose=True)

    text = of(generation(None, compared="structure"))
    assert "complete (it has no checksums)" in text and "No damage was found." in text
    assert "Nothing whole is left of model.h5" in of(generation(None, whole=False, damages=("it is empty",)))
    text = of(generation(None, whole=None, unknown="it took too long"))
    assert "! 2023-11-1" in text and "uncertain: it took too long" in text
    text = of(generation(None, loaded=False, load_problem="ValueError: no"))
    assert "whole, does not load: ValueError: no" in text and "It does not load." in text and "is damaged" not in text
    assert "model.keras is gone." in of(generation(3, taken=True), "model.keras", missing=True)
    evil = generation(None, whole=False, damages=("\x1b[2Jx" * 900,), notes=("\u202ey",), details=("z\x00",))
    assert not set("\x1b\u202e\x00\x07") & set(of(evil, "\x1b]0;x\x07m"))


def test_exit_status() -> None:
    def of(*generations: VerifiedGeneration, **facts: Any) -> tuple[bool, bool]:
        found = Verification(saves=(VerifiedSave(path="m", generations=generations, **facts),))
        return found.damaged, found.untold

    assert of(generation()) == (False, False)
    assert of(generation(), generation(whole=False)) == (True, False)
    assert of(generation(), missing=True) == (True, False)
    assert of(generation(whole=None)) == (False, True)
    assert of(generation(loaded=False, load_problem="x")) == (True, False)
    assert of(generation(load_problem="it needs the class Mine")) == (False, True)
    assert Verification(saves=(), problems=("There is no x.",)).untold
