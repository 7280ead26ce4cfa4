"""`faultlens run --stop-before-oom` itself, with programs that need no TensorFlow, and one that does."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from memory_limit import can_be_limited, join, memory_group

from faultlens.cli import main
from faultlens.cli.run import with_default
from faultlens.model_files.generations import newest_whole
from faultlens.records import report_file
from faultlens.records.report_file import Report
from faultlens.text.sizes import GIB, MIB

GROWS = "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (4 << 20)); time.sleep(0.01)\n"
HANDLES = "import sys, time, signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
TRAINS = """
import sys, time
import keras, numpy as np
from faultlens.keras import SafeCheckpoint

class Grows(keras.callbacks.Callback):
    kept = []
    def on_train_batch_end(self, batch, logs=None):
        self.kept.append(np.ones(20 << 20, dtype="uint8"))
        time.sleep(0.1)

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.ones((400, 8))
model.fit(x, x[:, :1], batch_size=4, epochs=9, verbose=0, callbacks=[Grows(), SafeCheckpoint(sys.argv[1])])
"""

limited = pytest.mark.skipif(not can_be_limited(), reason="needs the right to make a control group")


@dataclass(frozen=True)
class Ran:
    status: int
    stderr: str
    report: Report


def run(folder: Path, command: Sequence[str | Path], limit: int, *options: str) -> Ran:
    target = folder / "report.json"
    with memory_group(limit) as group:
        done = subprocess.run(
            [sys.executable, "-m", "faultlens", "run", "--no-save", "--json", target, *options, "--", *command],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            preexec_fn=functools.partial(join, group),
        )
    return Ran(done.returncode, done.stderr, report_file.read(target))


@limited
def test_a_program_without_a_handler_ends_by_sigterm_and_it_is_said_why(tmp_path: Path) -> None:
    ran = run(tmp_path, [sys.executable, "-c", f"import time\n{GROWS}"], 256 * MIB, "--stop-before-oom=50%")
    assert ran.status == -signal.SIGTERM
    said = ran.stderr.splitlines()[0]
    assert said.startswith("faultlens: memory is at 1") and said.endswith("asked the program to save and end (SIGTERM)")
    assert ran.report.diagnoses[0].cause == "stopped-before-out-of-memory"
    request = ran.report.crash.stop_request
    assert request is not None and request.limit == 256 * MIB and request.limit_of == "control group"
    assert 128 * MIB <= request.used < 192 * MIB


def test_a_size_is_about_the_program_and_not_about_others() -> None:
    """The machine uses more than this; so do its children, which share their pages with it."""
    code = (
        "import os, time\nkept = bytearray(b'x') * (60 << 20)\n"
        "for _ in range(4):\n    if os.fork() == 0:\n        time.sleep(3); os._exit(0)\ntime.sleep(3)\n"
    )
    words = [sys.executable, "-m", "faultlens", "run", "--no-save", "--stop-before-oom=150MiB"]
    done = subprocess.run([*words, "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    grows = code.replace("time.sleep(3); os", "kept += b'y' * (40 << 20); time.sleep(3); os")
    done = subprocess.run([*words, "--", sys.executable, "-c", grows], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGTERM
    assert "stopped by faultlens as asked: its memory reached 150 MiB" in " ".join(done.stderr.split())


@limited
def test_its_own_handler_decides_how_it_ends(tmp_path: Path) -> None:
    ran = run(tmp_path, [sys.executable, "-c", HANDLES + GROWS], 256 * MIB, "--stop-before-oom=100MiB")
    assert ran.status == 3
    assert ran.report.diagnoses[0].cause == "stopped-before-out-of-memory"


@limited
def test_the_program_below_a_shell_is_asked(tmp_path: Path) -> None:
    (tmp_path / "grows.py").write_text(HANDLES + GROWS)
    script = f"{sys.executable} grows.py; echo it ended with $? >&2; exit 0"
    ran = run(tmp_path, ["sh", "-c", f"cd {tmp_path}; {script}"], 256 * MIB, "--stop-before-oom=50%")
    assert (ran.status, ran.report.crash.outcome.kind) == (0, "ok")
    assert "it ended with 3" in ran.stderr


@limited
def test_a_program_that_does_not_listen_is_killed_by_the_kernel(tmp_path: Path) -> None:
    deaf = "import time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    ran = run(tmp_path, [sys.executable, "-c", deaf + GROWS], 256 * MIB, "--stop-before-oom=50%")
    assert ran.status == -signal.SIGKILL
    assert ran.stderr.count("asked the program to save and end") == 1
    best = ran.report.diagnoses[0]
    assert best.cause == "out-of-memory-kill" and any("faultlens sent SIGTERM" in each.fact for each in best.evidence)


@limited
def test_memory_that_is_taken_once_is_no_reason(tmp_path: Path) -> None:
    once = "import time\nkept = bytearray(b'x') * (500 << 20); time.sleep(1)\n"
    ran = run(tmp_path, [sys.executable, "-c", once], GIB, "--stop-before-oom")
    assert (ran.status, ran.stderr, ran.report.crash.stop_request) == (0, "", None)


@limited
def test_a_training_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    (tmp_path / "train.py").write_text(TRAINS)
    ran = run(tmp_path, [sys.executable, tmp_path / "train.py", tmp_path / "model.keras"], GIB, "--stop-before-oom")
    assert ran.status == -signal.SIGTERM, ran.stderr
    found, _ = newest_whole(tmp_path / "model.keras")
    assert found is not None and found.manifest is not None and found.manifest.training["step"] > 0
    assert "stopped by faultlens before memory ran out" in " ".join(ran.stderr.split())
    assert ran.report.diagnoses[0].fixes[0].title == "start it again from model.keras"
    facts = [item.fact for item in ran.report.diagnoses[0].evidence]
    assert any("the list `.kept` of class Grows: " in fact and "uint8[20971520]" in fact for fact in facts), facts


@limited
def test_what_held_the_memory_before_it_was_killed(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    ran = run(tmp_path, [sys.executable, Path(__file__).parent / "holding.py", str(GIB), "2"], GIB)
    assert ran.status == -signal.SIGKILL, ran.stderr
    held = ran.report.crash.held
    assert held is not None and held.inside and held.limit == GIB
    assert held.used > 0.85 * GIB and held.seconds < (ran.report.crash.seconds or 0)
    named = [each for each in held.holders if "no Python object was seen to hold" not in each.text]  # how much varies
    images, history, kernel = named[:3]
    assert images.text.startswith("the array `.images` of a Loader object: uint8[")
    assert history.text == (
        "the list `history` (global of holding.py): 25 EagerTensors of float32[4,256,1024], about 100 MiB in all"
    )
    assert kernel.text == "the variable `sequential/wide/kernel`: float32[1024,10240], 40 MiB"
    best = ran.report.diagnoses[0]
    facts = [item.fact for item in best.evidence]
    assert best.cause == "out-of-memory-kill" and {images.text, history.text, kernel.text} <= set(facts)
    assert any("s before the end" in fact and "seen between two" in fact for fact in facts)


# ---------------------------------------------------------------------------------------- the command line


def test_the_value_may_be_left_out() -> None:
    alone = ["run", "--stop-before-oom", "train.py", "--stop-before-oom"]
    assert with_default(alone) == ["run", "--stop-before-oom=95%", "train.py", "--stop-before-oom"]
    later = ["run", "--timeout", "5", "--stop-before-oom", "--", "x"]
    assert with_default(later) == ["run", "--timeout", "5", "--stop-before-oom=95%", "--", "x"]
    assert with_default(["show", "--stop-before-oom"]) == ["show", "--stop-before-oom"]


@pytest.mark.parametrize("value", ["0%", "101%", "", "half", "x%", "-5%", "0", "nan%"])
def test_bad_values_are_refused_in_one_sentence(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"--stop-before-oom={value}", "true"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"faultlens: --stop-before-oom={value} is neither a share of the limit nor a size")


@limited
def test_a_kill_for_memory_in_a_recursion_names_the_line(tmp_path: Path) -> None:
    program = tmp_path / "main.py"
    program.write_text(
        "import sys\nsys.setrecursionlimit(10**9)\n"
        "def walk(path):\n    path = [*path[-500:], len(path)]\n    return walk(path)\nwalk([0] * 500)\n"
    )
    if sys.version_info < (3, 11):
        pytest.skip("before 3.11 the stack overflows first")
    for _ in range(4):  # other tests may have both CPUs when it is looked at: it fills its group within a second
        verdict = run(tmp_path, [sys.executable, program], 256 * MIB).report.diagnoses[0]
        assert verdict.cause == "out-of-memory-kill"
        if verdict.location is not None:
            break
    assert "walk calls itself without end" in verdict.title
    assert verdict.location is not None
    assert (verdict.location.function, verdict.location.line in (4, 5)) == ("walk", True)
    assert "main.py" in verdict.location.file
