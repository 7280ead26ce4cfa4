"""Crashes of real TensorFlow programs."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

from faultlens.records.crash import Frame

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]


def own_lines(frames: tuple[Frame, ...], name: str) -> list[int | None]:
    return [frame.line for frame in frames if frame.kind == "python" and (frame.file or "").endswith(name)]


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_check_inside_keras_fit(run) -> None:
    program = EXAMPLES / "train.py"
    done = run([sys.executable, program], timeout=120)
    crash = done.died
    assert done.returncode == -signal.SIGABRT
    assert "Check failed: limit <= dim0_size (10 vs. 9)" in crash.output.stderr
    assert any("BlockLSTMOp" in frame.function for frame in crash.crashed_thread.frames)
    assert crash.crashed_thread.name == "tf_Compute"
    assert own_lines(crash.launching_thread.frames, "train.py")[0] == line_of(program, "model.fit(")
    packages = {package.name.lower().replace("_", "-"): package.version for package in crash.program.python.packages}
    assert packages["numpy"] and ("tensorflow" in packages or "tensorflow-cpu" in packages)
    assert not [gap for gap in crash.gaps if gap]
    assert [state for state in crash.files if state.state != "same"] == []


def test_an_op_called_eagerly(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\n"
        "def lstm(x, steps):\n"
        "    zero, peephole = tf.zeros([2, 5]), tf.zeros([5])\n"
        "    return tf.raw_ops.BlockLSTMV2(\n"
        "        seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=zero, h_prev=zero, w=tf.zeros([9, 20]),\n"
        "        wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20]))\n"
        "lstm(tf.zeros([3, 2, 4]), steps=9)\n"
    )
    done = run([sys.executable, "main.py"], timeout=120)
    assert done.returncode == -signal.SIGABRT
    first, second = own_lines(done.died.launching_thread.frames, "main.py")
    assert first in (4, 5, 6) and second == 7
    assert any("BlockLSTM" in frame.function for frame in done.died.crashed_thread.frames)


def test_a_healthy_training_is_left_alone(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import numpy as np, tensorflow as tf\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)\n"
        "print('trained')\n"
    )
    done = run([sys.executable, "main.py"], timeout=120)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.died.outcome.kind == "ok"
    assert done.saved == []
