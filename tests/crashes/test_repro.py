"""`faultlens repro`: from a real crash to a small script that is seen to die the same way."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome, Program, PythonInfo
from faultlens.records.report_file import Report
from faultlens.sandbox.guest import confinement

FAULTLENS = (sys.executable, "-m", "faultlens")
needs_tensorflow = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")


@pytest.fixture
def repro(tmp_path: Path):
    """repro(*options) works on the reports that `run` kept, and writes to the folder "out"."""

    def start(*options: str, seconds: int = 15) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FAULTLENS, "repro", "--seconds", str(seconds), "--out", "out", *options],
            env={**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )

    return start


def dies_by(folder: Path) -> int:
    """The signal that ends the script when somebody runs it."""
    done = subprocess.run([sys.executable, "reproduce.py"], cwd=folder, capture_output=True, timeout=60)
    return -done.returncode


PROGRAM = """\
import ctypes
import json
import sys


class Settings:
    def __init__(self, path):
        self.path = path
        self.values = {{"rows": 3, "scale": [1.0, 2.0]}}


def prepare(settings):
    print("preparing", settings.path, flush=True)
    return json.dumps(settings.values)


def work(library, rows):
    for row in range(rows):
        if row == rows - 1:
            library.read_null()
    return rows


def main():
    settings = Settings("nowhere")
    text = prepare(settings)
    library = ctypes.CDLL({library!r})
    print(len(text), work(library, settings.values["rows"]))
    print("never printed")


if __name__ == "__main__":
    main()
"""


def test_a_script_is_reduced(run, repro, native: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native)))
    crashed = run([sys.executable, "main.py"])
    done = repro()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reproduces 3 of 3, ")
    script = (tmp_path / "out" / "reproduce.py").read_text()
    assert "read_null()" in script
    assert len(script.splitlines()) <= 4
    assert dies_by(tmp_path / "out") == signal.SIGSEGV
    assert (tmp_path / "out" / "README.md").read_text().startswith("# Reproducer: SIGSEGV in")
    (saved,) = crashed.saved
    kept = report_file.read(saved)
    assert kept.reproducer is not None
    assert (kept.reproducer.kind, kept.reproducer.runs, kept.reproducer.same) == ("script", 3, 3)
    assert kept.reproducer.script == script
    assert kept.crash == crashed.died  # the rest of the report is as it was
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_nothing_that_is_there_is_overwritten(run, repro, native: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native)))
    run([sys.executable, "main.py"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "reproduce.py").write_text("mine")
    done = repro(seconds=0)
    assert done.returncode == 2
    assert "out is not empty" in done.stderr
    assert (tmp_path / "out" / "reproduce.py").read_text() == "mine"


def test_a_report_from_elsewhere_runs_nothing_without_trust(run, repro, native: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native)))
    crashed = run([sys.executable, "main.py"])
    copy = shutil.copy(crashed.saved[0], tmp_path / "theirs.json")
    for options in ((), ("--yes",), ("--python", sys.executable)):
        refused = repro(str(copy), *options)
        assert refused.returncode == 2
        assert "Nothing was run: this report was given as a file" in refused.stderr
        assert "--trust" in refused.stderr
    assert not (tmp_path / "out").exists()
    done = repro(str(copy), "--trust", "--json", "-", seconds=0)
    assert done.returncode == 0, done.stderr
    assert report_file.from_json(done.stdout.encode()).reproducer is not None


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A report as an attacker would write it: its Python is a program of theirs."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntouch {tmp_path}/harm\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    info = PythonInfo(version="3.11", executable=str(python))
    outcome = Outcome(kind="signal", signal="SIGSEGV")
    crash = Crash(
        outcome=outcome,
        method="agent",
        program=Program(command=("python", "main.py"), directory=str(tmp_path), python=info),
        sources={"main.py": "print(1)\n"},
    )
    path = tmp_path / "home" / "20251116T120000Z-python-SIGSEGV-0123abcd" / "report.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(report_file.to_json(Report(outcome=outcome, crash=crash)))
    for place, mode in ((path, 0o600), (path.parent, 0o700), (path.parent.parent, 0o700)):
        place.chmod(mode)
    return path


@pytest.mark.parametrize("which", ["home", "folder", "report"])
def test_a_planted_report_runs_nothing(repro, planted: Path, tmp_path: Path, which: str) -> None:
    """Where all may write."""
    place = {"home": tmp_path / "home", "folder": planted.parent, "report": planted}[which]
    place.chmod(0o777)
    done = repro()
    assert done.returncode == 2
    assert f"other users can write to {place}" in done.stderr
    assert f"chmod {'700' if which == 'home' else 'go-w'} {place}" in done.stderr
    assert not (tmp_path / "harm").exists()


def test_a_report_that_is_trusted_runs_inside_the_sandbox(repro, planted: Path, tmp_path: Path) -> None:
    """From the first start of the Python that it names."""
    if not confinement.available().holds_files:
        pytest.skip("needs Landlock or namespaces")
    (tmp_path / "home").chmod(0o777)
    done = repro("--trust")
    assert done.returncode == 1
    assert "main.py, run again, ended otherwise" in done.stderr
    assert not (tmp_path / "harm").exists()
    assert report_file.read(planted).reproducer is None


def test_a_report_of_another_user_runs_nothing(repro, planted: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to write as another user")
    os.chown(planted, 65534, 65534)
    done = repro()
    assert done.returncode == 2
    assert "belongs to another user (id 65534)" in done.stderr
    assert not (tmp_path / "harm").exists()


@pytest.mark.usefixtures("planted")
def test_a_folder_like_tmp_is_safe(repro, tmp_path: Path) -> None:
    """With the sticky bit others can add reports, and touch none of mine."""
    (tmp_path / "home").chmod(0o1777)
    assert repro("--yes").returncode == 1
    assert (tmp_path / "harm").exists()  # one's own report, run as ever


@pytest.mark.parametrize("named", [True, False])
def test_showing_a_report_runs_nothing(planted: Path, tmp_path: Path, named: bool) -> None:
    """Not even one's own."""
    done = subprocess.run(
        [*FAULTLENS, "show", "-v", *([str(planted)] if named else [])],
        env={**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "harm").exists()


def test_files_of_this_machine_do_not_come_along_for_others(run, repro, native: Path, tmp_path: Path) -> None:
    """They would be in the reproducer that is sent back."""
    (tmp_path / "secret.txt").write_text("hunter2")
    (tmp_path / "main.py").write_text(f"import ctypes\nname = 'secret.txt'\nctypes.CDLL({str(native)!r}).read_null()\n")
    crashed = run([sys.executable, "main.py"])
    copy = shutil.copy(crashed.saved[0], tmp_path / "theirs.json")
    done = repro(str(copy), "--trust", "--json", "answer.json", seconds=0)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir() if "secret" in path.name] == []
    assert b"hunter2" not in (tmp_path / "answer.json").read_bytes()


def test_a_program_that_was_changed_is_not_run_without_asking(run, repro, native: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native)))
    for options, answer in ((["--unredacted"], "--yes"), ([], "main.py is not what it was when the program died")):
        (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native)))
        run([sys.executable, "main.py"], options=options)
        (tmp_path / "main.py").write_text("print('something else')\n")
        assert answer in repro().stderr


@pytest.mark.parametrize(
    ("outcome", "status", "sentence"),
    [
        (Outcome(kind="hang"), 1, "hangs"),
        (Outcome(kind="signal", signal="SIGKILL"), 1, "killed"),
        (Outcome(kind="ok", exit_code=0), 1, "ended normally"),
        (Outcome(kind="signal", signal="SIGSEGV"), 2, "--python"),
    ],
)
def test_what_cannot_be_reproduced(repro, tmp_path: Path, outcome: Outcome, status: int, sentence: str) -> None:
    crash = Crash(outcome=outcome, method="status")
    (tmp_path / "report.json").write_bytes(report_file.to_json(Report(outcome=outcome, crash=crash)))
    done = repro("report.json", "--trust")
    assert done.returncode == status
    assert sentence in done.stderr
    assert done.stdout == ""


def test_a_python_that_is_not_there(repro, tmp_path: Path) -> None:
    outcome = Outcome(kind="signal", signal="SIGSEGV")
    report = Report(outcome=outcome, crash=Crash(outcome=outcome, method="status"))
    (tmp_path / "report.json").write_bytes(report_file.to_json(report))
    done = repro("report.json", "--trust", "--python", str(tmp_path / "python"))
    assert done.returncode == 2
    assert "There is no program" in done.stderr


@pytest.mark.tensorflow
@needs_tensorflow
def test_an_op_is_called_by_itself(run, repro, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\n"
        "def conv(image, kernel):\n"
        "    border = tf.constant([[0, 0], [1, 1], [1, 1], [0, 0]])\n"
        "    return tf.raw_ops.FusedPadConv2D(input=image, paddings=border, filter=kernel,\n"
        "                                     mode='REFLECT', strides=[1, 1, 1, 1], padding='VALID')\n"
        "image = tf.random.stateless_uniform([1, 6, 6, 1], seed=[0, 1])\n"
        "conv(image, tf.ones([3, 3, 1, 2]))\n"
        "conv(tf.reduce_mean(image), tf.ones([3, 3, 1, 2]))\n"
    )
    crashed = run([sys.executable, "main.py"], timeout=120)
    assert crashed.returncode == -signal.SIGABRT
    done = repro()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reproduces 3 of 3, ")
    kept = report_file.read(crashed.saved[0]).reproducer
    assert kept is not None
    assert kept.kind == "op"
    assert "tf.raw_ops.FusedPadConv2D(" in kept.script
    assert "input=tf.constant(0.0)" in kept.script


SOURCE = """\
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
using namespace tensorflow;
REGISTER_OP("UncheckedLookup").Input("table: float").Input("ids: int64").Output("found: float");
class UncheckedLookupOp : public OpKernel {
 public:
  explicit UncheckedLookupOp(OpKernelConstruction* c) : OpKernel(c) {}
  void Compute(OpKernelContext* c) override {
    auto table = c->input(0).flat<float>();
    auto ids = c->input(1).flat<int64_t>();
    Tensor* found = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, c->input(1).shape(), &found));
    for (int64_t i = 0; i < ids.size(); i++) found->flat<float>()(i) = table.data()[ids(i)];
  }
};
REGISTER_KERNEL_BUILDER(Name("UncheckedLookup").Device(DEVICE_CPU), UncheckedLookupOp);
"""


@pytest.mark.tensorflow
@needs_tensorflow
def test_an_op_of_the_users_own(run, repro, tmp_path: Path) -> None:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    (tmp_path / "op.cc").write_text(SOURCE)
    (tmp_path / "main.py").write_text(
        "import numpy as np, tensorflow as tf\n"
        "library = tf.load_op_library('./op.so')\n"
        "ids = np.arange(200, dtype=np.int64)\n"
        "ids[150] = 2_000_000_000_000\n"
        "for start in range(0, 200, 100):\n"
        "    print(library.unchecked_lookup(table=tf.random.normal([200]), ids=ids[start:start + 100]).shape)\n"
    )
    import tensorflow.sysconfig as built

    flags = [*built.get_compile_flags(), *built.get_link_flags()]
    command = ["g++", "-w", "-O0", "-shared", "-fPIC", "op.cc", "-o", "op.so", *flags]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=170)
    crashed = run([sys.executable, "main.py"], timeout=120)
    assert crashed.returncode == -signal.SIGSEGV
    done = repro()
    assert done.returncode == 0, done.stderr
    kept = report_file.read(crashed.saved[0]).reproducer
    assert kept is not None
    assert kept.kind == "op"
    assert "library.unchecked_lookup(" in kept.script
    assert kept.files == {}  # a hundred ids became one
