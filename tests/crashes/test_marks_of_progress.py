"""How far a program had come is known however it ends."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

TRAINING = """\
import os, signal, sys
import numpy as np, tensorflow as tf

keras = tf.keras


class End(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.epoch, batch) == (1, 2):
            {end}


class Dense(keras.layers.Dense):
    def get_config(self):
        {in_save}
        return super().get_config()


x, y = np.ones((10, 2), "float32"), np.ones((10, 1), "float32")
model = keras.Sequential([Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, epochs=3, batch_size=2, verbose=0, validation_data=(x, y), callbacks=[End()])
model.save("model.keras")
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"


def training(folder: Path, end: str = "pass", in_save: str = "pass") -> list[str]:
    (folder / "main.py").write_text(TRAINING.format(end=end, in_save=in_save))
    return [sys.executable, "main.py"]


def test_killed_in_training(run, tmp_path: Path) -> None:
    done = run(training(tmp_path, end=KILL), timeout=150)
    assert done.returncode == -signal.SIGKILL
    progress = done.died.progress
    assert (progress.phase, progress.epoch, progress.epochs) == ("train", 2, 3)
    assert (progress.step, progress.steps) == (3, 5)
    kinds = [mark.kind for mark in progress.marks if mark.kind != "trace"]
    assert kinds == ["train", "epoch", "evaluate", "end", "epoch"]
    seconds = [mark.seconds for mark in progress.marks]
    assert seconds == sorted(seconds) and seconds[-1] < (done.died.seconds or 0)


def test_killed_while_saving(run, tmp_path: Path) -> None:
    done = run(training(tmp_path, in_save=KILL), timeout=150)
    assert done.returncode == -signal.SIGKILL
    progress = done.died.progress
    assert (progress.phase, progress.detail) == ("save", "model.keras")
    assert (progress.marks[-1].kind, progress.marks[-1].text) == ("save", "model.keras")
    assert "train" in [mark.text for mark in progress.marks if mark.kind == "end"]


def test_an_exception_in_training(run, tmp_path: Path) -> None:
    done = run(training(tmp_path, end="raise ValueError('bad batch')"), timeout=150)
    assert done.returncode == 1
    assert "_faultlens" not in done.stderr and "faultlens/inside" not in done.stderr
    progress = done.died.progress
    assert (progress.phase, progress.epoch, progress.step) == ("train", 2, 3)


def test_a_loop_of_its_own_in_a_child_process(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import os, signal\n"
        "import tensorflow as tf\n"
        "for number in tf.data.Dataset.range(3): pass\n"
        "pid = os.fork()\n"
        "if pid == 0: os.abort()\n"
        "os.waitpid(pid, 0)\n"
        "for number, _ in enumerate(tf.data.Dataset.range(9)):\n"
        "    if number == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = run([sys.executable, "main.py"], timeout=150)
    assert done.returncode == -signal.SIGKILL
    assert done.died.progress.step == 5
    (child,) = done.died.children
    assert child.progress is None  # it has come nowhere itself


def test_a_training_at_its_time_limit_is_at_work(run, tmp_path: Path) -> None:
    """Where the machine is so slow that TensorFlow is still being imported, too."""
    endless = TRAINING.replace("epochs=3", "epochs=10**6")
    (tmp_path / "main.py").write_text(endless.format(end="pass", in_save="pass"))
    done = run([sys.executable, "main.py"], options=["--timeout", "8"], timeout=150)
    assert done.died.outcome.kind == "timeout"
    assert "time-limit: still working at the time limit of 8 s" in " ".join(done.stderr.split())
