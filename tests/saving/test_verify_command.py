"""`faultlens verify` on what Keras, TensorFlow and `faultlens.save` really write, damaged in real ways."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import faultlens
from faultlens.model_files.generations import newest_whole

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.tensorflow

OURS = {"keras": "model.keras", "weights": "model.weights.h5", "saved_model": "exported", "checkpoint": "ckpt"}


def verify(*words: str | Path, folder: Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, JSON, and what was said on the screen."""
    found = folder / "found.json"
    command = [sys.executable, "-m", "faultlens", "verify", "--json", str(found), *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(found.read_text()), done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two generations in every format of ours, and one of each by Keras and TensorFlow themselves."""
    folder = tmp_path_factory.mktemp("made")
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(96, activation="relu"), keras.layers.Dense(4, dtype="bfloat16")]
    model = keras.Sequential([keras.Input((64,)), *layers])
    model.compile("adam", keras.losses.MeanSquaredError())
    model.fit(np.ones((8, 64), "float32"), np.ones((8, 4), "float32"), verbose=0)
    (folder / "ours").mkdir()
    for _ in range(2):
        for form, name in OURS.items():
            faultlens.save(model, folder / "ours" / name, format=form)
    theirs = folder / "theirs"
    theirs.mkdir()
    model.save(theirs / "model.keras")
    model.save_weights(theirs / "model.weights.h5")
    model.export(theirs / "exported", verbose=False)
    tf.train.Checkpoint(model).write(str(theirs / "ckpt"))
    model.layers[0].kernel.assign(np.full((64, 96), np.nan, "float32"))
    model.save(theirs / "broken.keras")
    tf.train.Checkpoint(model).write(str(theirs / "broken"))
    return folder


@pytest.fixture
def ours(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "ours", tmp_path / "saves", copy_function=shutil.copy2)


@pytest.fixture
def theirs(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "theirs", tmp_path / "saves", copy_function=shutil.copy2)


def test_values_that_this_python_cannot_read_are_told(theirs: Path) -> None:
    venv.create(theirs / "bare", with_pip=False, symlinks=True)  # without h5py and NumPy
    python = ("--python", theirs / "bare" / "bin" / "python")
    status, _, said = verify("broken.keras", *python, folder=theirs)
    assert status == 0
    assert "its values were not read: No module named 'h5py'" in " ".join(said.split())
    status, found, said = verify("model.weights.h5", *python, folder=theirs)  # no checksums: then nothing is known
    assert (status, found["saves"][0]["generations"][0]["whole"]) == (2, None)
    assert "It could not be judged." in said


def overwrite(path: Path, at: int, data: bytes) -> None:
    """As a disk does that forgets: the times stay."""
    state = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def data_of(target: Path, form: str) -> Path:
    if form == "saved_model":
        return target / "variables" / "variables.data-00000-of-00001"
    return target.with_name("ckpt-2.data-00000-of-00001") if form == "checkpoint" else target


def test_everything_is_whole(ours: Path) -> None:
    status, found, said = verify(ours, folder=ours.parent)
    assert status == 0, said
    assert {save["path"].rpartition("/")[2]: len(save["generations"]) for save in found["saves"]} == dict.fromkeys(
        OURS.values(), 2
    )
    for save in found["saves"]:
        newest = save["generations"][0]
        assert newest["taken"] and newest["compared"] == "manifest"
        assert any("variables read" in detail for detail in newest["details"]), save["path"]


def test_values_that_are_no_numbers_are_noted(theirs: Path) -> None:
    status, found, said = verify(theirs, folder=theirs.parent)
    assert status == 0, said
    notes = {save["path"].rpartition("/")[2]: save["generations"][0]["notes"] for save in found["saves"]}
    assert notes.pop("broken.keras") == ["6,144 values of /layers/dense/vars/0 are NaN or infinite"]
    assert "6,144 values of " in notes.pop("broken")[0]
    assert not any(notes.values())


@pytest.mark.parametrize("form", OURS)
def test_a_few_bytes_are_wrong(ours: Path, form: str) -> None:
    target = ours / OURS[form]
    file = data_of(target, form)
    overwrite(file, file.stat().st_size // 2, b"\x00\x01\x02\x03")
    status, found, said = verify(target, folder=ours)
    (save,) = found["saves"]
    newer, older = save["generations"]
    assert status == 1 and newer["whole"] is False and older["whole"] and older["taken"], said
    if form in ("keras", "weights"):
        assert any(damage.startswith("the damage is in /") for damage in newer["damages"])
    taken = newest_whole(target)[0]
    assert taken is not None and str(taken.path) == older["path"]  # as `faultlens.load` does


def test_zeros_within_hdf5(made: Path, ours: Path, tmp_path: Path) -> None:
    """HDF5 has no checksums: only what was written down beside it tells."""
    overwrite(ours / "model.weights.h5", 20_000, bytes(4096))
    status, found, _ = verify(ours / "model.weights.h5", folder=ours)
    assert status == 1 and "is not what was written" in found["saves"][0]["generations"][0]["damages"][0]
    plain = Path(shutil.copy2(made / "theirs" / "model.weights.h5", tmp_path))
    overwrite(plain, 20_000, bytes(4096))
    status, found, said = verify(plain, folder=tmp_path)
    assert found["saves"][0]["generations"][0]["compared"] == "structure"
    assert status == 1 or "complete (it has no checksums)" in said


# -------------------------------------------------------------------------------------- hostile HDF5 files


def endless(data: bytes) -> bytes:
    """Every list of free space within the heaps of names leads back to itself: libhdf5 follows it for ever."""
    image = bytearray(data)
    for at in _all(data, b"HEAP"):
        size, head, segment = struct.unpack_from("<QQQ", image, at + 8)
        if head < size:
            struct.pack_into("<Q", image, segment + head, head)
    return bytes(image)


def _all(data: bytes, what: bytes) -> Iterator[int]:
    at = data.find(what)
    while at >= 0:
        yield at
        at = data.find(what, at + 1)


def test_a_file_that_libhdf5_reads_for_ever(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.weights.h5"
    path.write_bytes(endless((made / "theirs" / "model.weights.h5").read_bytes()))
    status, found, said = verify(path, "--time-limit", "8", folder=tmp_path)
    (damage,) = found["saves"][0]["generations"][0]["damages"]
    # It takes memory as it goes: what comes first, the limit of memory or of time, depends on the machine.
    assert status == 1 and ("never ends" in damage or "cannot be read" in damage), said


def test_hdf5_that_leads_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("huge", shape=(1 << 20, 1 << 20, 1 << 10), dtype="f4", chunks=(64, 64, 64))
        file.create_dataset("elsewhere", shape=(100,), dtype="u1", external=[("/etc/passwd", 0, 100)])
        file["soft"], file["self"] = h5py.SoftLink("/soft"), file["/"]
        file["outside"] = h5py.ExternalLink("/dev/zero", "/")
        file.create_dataset("packed", data=np.zeros((1000, 1000)), compression="gzip")
        file["texts"] = ["one", "two"]
    status, found, said = verify(path, folder=tmp_path)
    (only,) = found["saves"][0]["generations"]
    assert status == 1 and only["damages"] == ["/huge says that it has 4503599627370496 bytes, the file has"
                                               f" {path.stat().st_size}"], said  # fmt: skip
    assert only["notes"] == ["/elsewhere lies in another file, which was not read"]


def test_mutations_are_judged_in_any_case(made: Path, tmp_path: Path) -> None:
    """A fixed set of bytes overwritten with addresses of the file itself."""
    data = (made / "theirs" / "model.weights.h5").read_bytes()
    (tmp_path / "many").mkdir()
    for number in range(2):
        image = bytearray(data)
        for at in range(200 + 64 * number, len(data), 2048):
            image[at : at + 8] = (at // 2).to_bytes(8, "little")
        (tmp_path / "many" / f"{number}.h5").write_bytes(image)
    status, found, said = verify("many", "--time-limit", "10", folder=tmp_path)
    assert status == 1 and len(found["saves"]) == 2, said
    assert all(save["generations"][0]["whole"] is not None for save in found["saves"]), said


# ------------------------------------------------------------------------------------------------ loading


@keras.saving.register_keras_serializable(package="here")
class Mine(keras.layers.Dense):
    pass


def test_load(made: Path, tmp_path: Path) -> None:
    good = shutil.copy2(made / "theirs" / "model.keras", tmp_path / "good.keras")
    shutil.copy2(made / "theirs" / "model.weights.h5", tmp_path / "only.weights.h5")
    keras.Sequential([keras.Input((2,)), Mine(2)]).save(tmp_path / "mine.keras")
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(5)]).save(tmp_path / "other.keras")
    rewrite(tmp_path / "other.keras", "config.json", b'"units": 5', b'"units": 7')
    status, found, said = verify("--load", good, "mine.keras", "only.weights.h5", "other.keras", folder=tmp_path)
    loads, mine, weights, other = (save["generations"][0] for save in found["saves"])
    assert loads["loaded"] is True and "whole, loads" in said
    # That the program's own class is not here says nothing about the save.
    assert mine["whole"] and mine["loaded"] is None and "Mine" in mine["load_problem"], said
    assert weights["notes"] == ["it holds weights only: loading it takes the model"]
    assert other["whole"] and other["loaded"] is False and "does not load" in said
    assert status == 1


def rewrite(path: Path, member: str, old: bytes, new: bytes) -> None:
    """An archive with right checksums around what does not fit."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert old in contents[member]
    contents[member] = contents[member].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
