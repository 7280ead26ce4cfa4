"""Where a variable that is meant for the program breaks the Python that faultlens itself runs on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "import os; print(os.environ.get('LD_LIBRARY_PATH'), [n for n in os.environ if 'OF_PROGRAM' in n])"


def made(folder: Path, name: str, code: str = "") -> Path:
    """A library that has the name of another, but none of its functions."""
    folder.mkdir()
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name), f"-Wl,-soname,{name}"]
    subprocess.run(command, input=code, text=True, check=True, timeout=60)
    return folder


def faultlens(tmp_path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "faultlens", *words],
        env={**os.environ, "FAULTLENS_HOME": str(tmp_path / "home"), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )


@pytest.mark.parametrize("code", ["", "__attribute__((constructor)) static void die(void) { *(volatile int *)8 = 1; }"])
def test_a_program_gets_its_search_path_whatever_it_does_to_us(tmp_path: Path, code: str) -> None:
    folder = str(made(tmp_path / "libraries", "libz.so.1", code))
    done = faultlens(tmp_path, "run", "-c", PROGRAM, LD_LIBRARY_PATH=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder} []\n", "")


def test_a_death_is_told_in_full_all_the_same(tmp_path: Path) -> None:
    folder = str(made(tmp_path / "libraries", "libz.so.1"))
    program = "import ctypes\nctypes.string_at(0)"
    done = faultlens(tmp_path, "run", "--json", "report.json", "-c", program, LD_LIBRARY_PATH=folder)
    assert done.returncode == -11
    report = json.loads((tmp_path / "report.json").read_text())
    assert "string_at" in {frame["function"] for frame in report["crash"]["threads"][0]["frames"]}
    assert report["crash"]["program"]["environment"]["LD_LIBRARY_PATH"] == folder


def test_the_doctor_judges_the_search_path_that_would_kill_it(tmp_path: Path) -> None:
    folder = str(made(tmp_path / "libraries", "libz.so.1"))
    done = faultlens(tmp_path, "doctor", "shadowing", "--json", "-", LD_LIBRARY_PATH=folder)
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["examinations"][0]["findings"]
    assert "LD_LIBRARY_PATH brings another libz.so.1" in found["title"]


def test_other_verbs_start_again_too(tmp_path: Path) -> None:
    folder = str(made(tmp_path / "libraries", "libz.so.1"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.tfrecord").write_bytes(b"")
    done = faultlens(tmp_path, "scan", "data", LD_LIBRARY_PATH=folder)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr


def test_what_no_other_start_mends_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "msgspec.py").write_text("raise ImportError('not for this Python')")
    path = f"{tmp_path / 'modules'}:{os.pathsep.join(filter(None, sys.path))}"
    done = faultlens(tmp_path, "show", "--list", PYTHONPATH=path, PYTHONNOUSERSITE="1", PYTHONSAFEPATH="1")
    if done.returncode == 0:
        pytest.skip("faultlens is installed in this Python, and was started without PYTHONPATH")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("faultlens: Python cannot load a part of faultlens: not for this Python.")
    assert done.stderr.count("\n") == 1
