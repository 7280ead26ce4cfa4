"""What was not looked at is said: "Nothing wrong was found" covers nothing else."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from checked_bytes import checked
from core_python import core_python
from faultlens.data.engine import plan
from faultlens.data.findings import Findings
from faultlens.data.formats.arrow_file import ArrowFile
from faultlens.data.formats.csv_file import CsvFile
from faultlens.data.formats.tar_file import TarFile
from faultlens.data.formats.tfrecord import TFRecord
from faultlens.data.formats.zip_file import ZipFile
from faultlens.data.look import MAX_FLAWS
from faultlens.data.native import PythonWalker
from faultlens.data.scanning import LocalEngine, Options, scan
from faultlens.data.tfrecord import records
from faultlens.records.scan import Checked, Scan
from tfrecords import example, file_of

NOBODY = 65534


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> str:
    python = core_python(tmp_path_factory.mktemp("core") / "venv")
    assert subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 1
    return str(python)


def command(*arguments: object, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [python, "-m", "faultlens", "scan", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return subprocess.CompletedProcess(ran.args, ran.returncode, " ".join(ran.stdout.split()), ran.stderr)


# ------------------------------------------------------------------------------------ a plain installation


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A NaN in each file."""
    np, h5py = pytest.importorskip("numpy"), pytest.importorskip("h5py")
    values = np.array([1.0, np.nan], "float32")
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "a.npy", values)
    np.savez(folder / "a.npz", x=values)
    np.save(folder / "whole.npy", np.arange(3))
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = values
    return folder


def test_without_numpy_it_is_said_that_nobody_looked_for_nan(data: Path, core: str, tmp_path: Path) -> None:
    (data / "a.h5").unlink()
    ran = command(data, "--json", tmp_path / "found.json", python=core)
    assert ran.returncode == 0, ran.stderr
    words = f"NaN and infinity in arrays, in 2 files ({data}/a.npy, …): NumPy is not installed"
    assert f"{words} (pip install 'faultlens[data]')" in ran.stdout
    assert "Nothing wrong was found in what was checked." in ran.stdout
    (unchecked,) = msgspec.json.decode((tmp_path / "found.json").read_bytes(), type=Scan).unchecked
    assert (unchecked.files, unchecked.first, unchecked.reason) == (2, f"{data}/a.npy", "NumPy is not installed")
    assert command(data, "--strict", python=core).returncode == 2
    assert "Nothing wrong was found." in command(data / "whole.npy", "--strict", python=core).stdout


def test_a_file_without_its_reader_was_not_looked_at(data: Path, core: str) -> None:
    ran = command(data / "a.h5", python=core)
    assert ran.returncode == 2
    assert f"what is in HDF5 files, in {data}/a.h5: h5py is not installed (pip install" in ran.stdout


def test_what_is_installed_meanwhile_is_used_when_the_scan_goes_on(data: Path, core: str) -> None:
    assert command(data, python=core).returncode == 2
    ran = command(data, "--resume")
    assert "3 warnings in 3 of 4 files" in ran.stdout
    assert "Not checked" not in ran.stdout


def test_pixels_that_nothing_can_decode_are_refused(data: Path, core: str) -> None:
    ran = command(data, "--pixels", python=core)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "simplejpeg and Pillow, which are not installed" in ran.stderr


# ------------------------------------------------------------------------------------ limits of a check


def unchecked(found: Checked) -> list[str]:
    return [each.check for each in found.unchecked]


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return packed.getvalue()


def test_without_a_compiler_nobody_looks_into_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file_of([example(x=[float("nan")])])
    assert unchecked(checked(TFRecord(), data)) == []
    monkeypatch.setattr(records, "walker", PythonWalker)
    assert unchecked(checked(TFRecord(), data)) == ["what is in Examples"]


def test_a_record_too_large_to_be_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_HELD", 100)
    data = file_of([b"x" * (3 << 20)])  # more than a window holds
    assert unchecked(checked(TFRecord(), data)) == ["what is in large records"]


def test_tables_in_an_archive_are_not_looked_into() -> None:
    found = checked(ZipFile(), zipped(a_csv=b"1,2\n3\n", a_txt=b"text", a_json=b"{}"))
    assert (found.flaws, unchecked(found)) == ((), ["what is in CSV files in archives"])


def test_arrays_in_an_archive_in_an_archive() -> None:
    inner = zipped(a_npz=zipped(x_npy=b"no array"))
    assert unchecked(checked(ZipFile(), zipped(inner_zip=inner))) == ["what is in .npz files in archives"]


def test_sparse_members_of_a_tar_archive() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("a.png")
        member.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(member)
    assert unchecked(checked(TarFile(), packed.getvalue())) == ["what is in members of tar archives"]


def test_lines_that_are_no_table() -> None:
    chance = random.Random(1)
    lines = "".join(",".join("x" * chance.randrange(1, 40)) + "\n" for _ in range(200))
    assert unchecked(checked(CsvFile(), lines.encode())) == ["columns, quotes and numbers of CSV files"]


def test_numbers_in_maps() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    kind = pyarrow.map_(pyarrow.string(), pyarrow.float64())
    table = pyarrow.table({"x": pyarrow.array([[("a", float("nan"))]], kind)})
    file = io.BytesIO()
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    assert unchecked(checked(ArrowFile(), file.getvalue())) == ["NaN and infinity in some columns"]


# ------------------------------------------------------------------------------------ what is not walked into


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    real, folder = tmp_path / "elsewhere", tmp_path / "data"
    (real / "sub").mkdir(parents=True)
    folder.mkdir()
    (real / "sub" / "a.csv").write_text("1,2\n")
    (folder / "train").symlink_to(real)
    (folder / "twice").symlink_to(real)
    (real / "loop").symlink_to(folder)
    (folder / "all").symlink_to("/")
    assert [found.path for found in plan.files([str(folder)])] == [f"{folder}/train/sub/a.csv"]


def test_zeros_instead_of_an_archive() -> None:
    assert [flaw.reason for flaw in checked(TarFile(), bytes(3 << 20)).flaws] == ["there are zeros in it, and no files"]
    assert checked(TarFile(), bytes(10240)).flaws == ()  # what tar writes for no files


def test_hidden_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "data" / ".git").mkdir(parents=True)
    (tmp_path / "data" / ".git" / "a.csv").write_text("1,2\n")
    (tmp_path / "data" / ".b.csv").write_text("1,2\n")
    ran = command(tmp_path / "data")
    assert ran.returncode == 2 and "2 names begin with a dot" in ran.stderr
    (tmp_path / "data" / "a.csv").write_text("1,2\n")
    assert "2 names that begin with a dot were passed over." in command(tmp_path / "data").stdout


def test_a_folder_that_may_not_be_read_is_a_finding() -> None:
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        closed = Path(root, "closed")
        closed.mkdir(mode=0)
        Path(root, "a.csv").write_text("1,2\n")
        own = os.geteuid()
        if own == 0:
            os.seteuid(NOBODY)
        try:
            found = list(plan.files([root]))
        finally:
            os.seteuid(own)
    assert [each.path for each in found] == [f"{root}/a.csv", str(closed)]
    assert found[1].flaw is not None and "Permission denied" in found[1].flaw.reason


def test_links_that_lead_nowhere_are_counted(tmp_path: Path) -> None:
    (tmp_path / "gone.npy").symlink_to("nowhere")
    ran = command(tmp_path / "gone.npy")
    assert ran.returncode == 1
    assert "it is a link that leads nowhere" in ran.stdout
    assert ran.stdout.endswith("1 error in 1 of 1 file.")  # and no advice on copies of it


# ------------------------------------------------------------------------------------ more than is listed


def test_warnings_that_are_only_counted_are_no_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(file_of([example(x=[float("nan")])] * (MAX_FLAWS + 500)))
    found = scan([str(path)], Options(), LocalEngine(1))
    assert (found.errors, found.warnings) == (0, MAX_FLAWS + 500)
    assert Findings(found).paths() == []
    assert Findings(found, "warning").untold == {str(path)}
