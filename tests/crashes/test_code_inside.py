"""The code that is put into Python programs: there when TensorFlow is imported, and not to be noticed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import faultlens
from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.guest.live import here
from faultlens.inspection.graph_lines import GraphLines
from faultlens.supervise.live import notes_of

needs_tensorflow = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")

# Everything that a program can see of itself, with tracebacks of exceptions that pass through functions we hook.
LOOK_AROUND = r"""
import inspect, json, os, re, sys, threading, traceback
import numpy as np, tensorflow as tf

finders = [type(finder).__name__ for finder in sys.meta_path]
keras, errors = tf.keras, []


def attempt(call):
    try:
        call()
    except Exception:
        errors.append(re.sub(r"0x[0-9a-f]+|__inference_\w+|generated_file\w+|_\d+", "", traceback.format_exc()))


class Raising(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        raise KeyError(batch)


@tf.function
def wrong(x):
    return tf.matmul(x, tf.zeros([7, 3]))


class PlainOperation(keras.Operation if hasattr(keras, "Operation") else object):
    pass


def numbers():
    yield 1
    raise ZeroDivisionError


model = keras.Sequential([keras.layers.Dense(3)])
model.compile("sgd", "mse")
fit = lambda: model.fit(np.ones((4, 2)), np.ones((4, 3)), verbose=0, callbacks=[Raising()])
for _ in range(2):
    attempt(lambda: wrong(tf.zeros([2, 2])))
    attempt(fit)
    attempt(lambda: tf.train.Checkpoint(v=tf.Variable(1.0)).write("/proc/none"))
    attempt(lambda: list(tf.data.Dataset.from_generator(numbers, tf.int32)))
    attempt(PlainOperation)
    tf.debugging.disable_traceback_filtering()
functions = model.fit, model.save, keras.layers.Layer.__init__, tf.train.Checkpoint.write, tf.saved_model.save
modules = (name for name in sys.modules if not name.startswith(("_faultlens_inside", "__autograph_generated")))
seen = {
    "finders": finders,
    "finders at the end": [type(finder).__name__ for finder in sys.meta_path],
    "modules": sorted(modules),
    "path": sys.path,
    "environment": {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "FAULTLENS_AGENT")},
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "threads": [thread.name for thread in threading.enumerate()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile()],
    "signatures": [str(inspect.signature(function)) for function in functions],
    "errors": errors,
}
print(json.dumps(seen))
if "expect" in sys.argv:
    assert "_faultlens_inside" in sys.modules
"""


@pytest.mark.tensorflow
@needs_tensorflow
def test_a_program_sees_no_difference(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(LOOK_AROUND)
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "FAULTLENS_HOME": str(tmp_path / "home")}
    alone = subprocess.run(
        [sys.executable, "main.py"], env={**os.environ, **environment}, cwd=tmp_path, capture_output=True, text=True
    )
    under = run([sys.executable, "main.py", "expect"], env=environment, timeout=150)
    assert (alone.returncode, under.returncode) == (0, 0), under.stderr
    expected, seen = json.loads(alone.stdout), json.loads(under.stdout)
    assert len(expected["errors"]) >= 8
    for name, value in expected.items():
        assert seen[name] == value, name


def test_other_programs_are_left_alone(run) -> None:
    done = run("import sys, json, asyncio; print([name for name in sys.modules if 'faultlens' in name])")
    assert done.stdout == "[]\n"


# -------------------------------------------------------------------------- without TensorFlow's weight

OPS = """\
class Op:
    def __init__(self, name):
        self.name = name


class Graph:
    building_function, name, _functions = False, "f", ()

    def _record_op_seen_by_control_dependencies(self, op):
        pass

    def add(self, name):
        self._record_op_seen_by_control_dependencies(Op(name))
"""
PROGRAM = """\
import os, sys
sys.path.insert(0, "site-packages")
before = list(sys.meta_path)
import tensorflow
assert sys.meta_path == before
graph = tensorflow.ops.Graph()
graph.add("node")
tensorflow.atomic_function.from_func_graph("__inference_f_1", graph, {})
print("_faultlens_inside" in sys.modules, len(os.listdir("/proc/self/fd")))
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A program with a package that has TensorFlow's name and the few functions that we look for."""
    modules = {
        "__init__": (
            "from tensorflow.python.framework import ops\n"
            "from tensorflow.python.eager.polymorphic_function import atomic_function\n"
        ),
        "python/__init__": "",
        "python/framework/__init__": "",
        "python/framework/ops": OPS,
        "python/eager/__init__": "",
        "python/eager/polymorphic_function/__init__": "",
        "python/eager/polymorphic_function/atomic_function": "def from_func_graph(name, graph, attrs): pass",
    }
    for name, text in modules.items():
        path = tmp_path / "site-packages" / "tensorflow" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "main.py").write_text(PROGRAM)
    return [sys.executable, str(tmp_path / "main.py")]


def start(program: list[str], area: SharedArea) -> Any:
    environment = launch.agent_environment(os.environ, area.path, follow_children=True)
    return subprocess.run(
        program, env=environment, cwd=Path(program[1]).parent, capture_output=True, text=True, timeout=60
    )


def test_lines_are_noted(program: list[str]) -> None:
    area = SharedArea()
    done = start(program, area)
    assert (done.stdout, done.stderr) == ("True 4\n", "")
    frame = GraphLines.parse(area.notes()).find("node").frame
    assert frame and (frame.file, frame.line) == (program[1], 7)


@pytest.mark.parametrize(
    ("field", "value"),
    [("inside", b""), ("inside", b"/nonexistent"), ("notes", b"/nonexistent/notes"), ("notes", b"/")],
)
def test_where_nothing_can_be_noted_the_program_goes_on(program: list[str], field: str, value: bytes) -> None:
    area = SharedArea()
    setattr(area.area, field, value)
    done = start(program, area)
    assert (done.stdout.split()[1], done.stderr, done.returncode) == ("4", "", 0)


def test_no_room_for_progress(program: list[str]) -> None:
    area = SharedArea()
    for page in area.area.progress:
        page.pid = os.getpid()
    done = start(program, area)
    assert (done.stdout, done.stderr) == ("True 4\n", "")


def test_pages_of_dead_processes_are_used_again(program: list[str]) -> None:
    area = SharedArea()
    for _ in range(20):
        assert start(program, area).returncode == 0
    assert sum(bool(page.pid) for page in area.area.progress) == 1


# ---------------------------------------------------------------------- programs that ask for it themselves

INSTALL = "import faultlens; faultlens.install(); faultlens.install()\n"
LEFT = "import os; print(os.listdir(os.environ['FAULTLENS_HOME'] + '/live'))\n"
KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.fixture
def installed(program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the program with more lines before and after it, without faultlens around it."""
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))

    def start(before: str, after: str, *prefix: str) -> subprocess.CompletedProcess[str]:
        script = Path(program[1])
        script.write_text(before + PROGRAM.replace("assert sys.meta_path == before\n", "") + after)
        source = str(Path(faultlens.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source}
        command = [*prefix, *program]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return start


def test_what_is_remembered_is_there_after_a_death(installed, tmp_path: Path) -> None:
    done = installed(INSTALL, LEFT + KILLED)
    assert done.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "home" / "live").iterdir()
    remembered = notes_of(int(folder.name.partition("-")[0]), time.time())
    assert remembered is not None
    frame = GraphLines.parse(remembered.notes).find("node").frame
    assert frame and (frame.file, frame.line) == (str(tmp_path / "main.py"), 7)
    assert len(remembered.progress) == 4096
    assert notes_of(1, time.time()) is None


def test_nothing_is_left_of_programs_that_end(installed, tmp_path: Path) -> None:
    done = installed(INSTALL, LEFT)
    assert done.returncode == 0 and len(done.stdout.splitlines()[-1]) > 4
    assert list((tmp_path / "home" / "live").iterdir()) == []


def test_few_are_kept(installed, tmp_path: Path) -> None:
    live = tmp_path / "home" / "live"
    for number in range(30):
        (live / f"{4_000_000 + number}-1-{here()}").mkdir(parents=True)
    installed(INSTALL, KILLED)
    assert len(list(live.iterdir())) == 21


def test_programs_of_other_containers_are_left_alone(installed, tmp_path: Path) -> None:
    """Their process ids say nothing here; only what was silent for long has ended."""
    live = tmp_path / "home" / "live"
    for number in range(60):
        folder = live / f"{4_000_000 + number}-1-elsewhere"
        folder.mkdir(parents=True)
        if number < 30:
            os.utime(folder, (time.time() - 30 * 86400,) * 2)
    installed(INSTALL, KILLED)
    assert len(list(live.iterdir())) == 20 + 30 + 1


def test_what_others_left_is_not_taken_for_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to write as another user")
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path))
    folder = tmp_path / "live" / "4000000-1-elsewhere"
    folder.mkdir(parents=True)
    (folder / "notes").write_bytes(b"planted")
    remembered = notes_of(4_000_000, time.time())
    assert remembered is not None and remembered.notes == b"planted"
    os.chown(folder, 65534, 65534)
    assert notes_of(4_000_000, time.time()) is None


def test_under_faultlens_there_is_nothing_to_install(installed, tmp_path: Path) -> None:
    done = installed(INSTALL, "", sys.executable, "-m", "faultlens", "run", "--no-save", "--")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home" / "live").exists()


def test_a_home_that_cannot_be_written(installed, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    done = installed(INSTALL, "")
    assert (done.returncode, done.stderr) == (0, "")
