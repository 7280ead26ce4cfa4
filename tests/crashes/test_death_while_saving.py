"""A program that dies while it saves: the report says which save is safe, and what is lost."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faultlens.model_files.generations import newest_whole

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

# Saves twice; the third time it ends within the layer's own code, when half of the file is written.
PROGRAM = """\
import ctypes, os, signal, sys, time
import keras
import faultlens

ends = False


@keras.saving.register_keras_serializable()
class Mine(keras.layers.Dense):
    def get_config(self):
        if ends and {in_config}:
            {end}
        return super().get_config()

    def save_own_variables(self, store):
        super().save_own_variables(store)
        if ends and not {in_config}:
            {end}


model = keras.Sequential([keras.Input((64,)), Mine(64), keras.layers.Dense(4)])
save = lambda: {save}
save()
save()
ends = True
save()
"""
FAULTLENS = (sys.executable, "-m", "faultlens")
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
PLAIN = 'model.save("model.keras")'
OURS = 'faultlens.save(model, "model.keras")'


def dies(run, folder: Path, save: str, end: str = KILL, in_config: bool = False):
    (folder / "main.py").write_text(PROGRAM.format(save=save, end=end, in_config=in_config))
    return run([sys.executable, "main.py"], timeout=150)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_killed_in_a_save_by_keras(run, tmp_path: Path) -> None:
    done = dies(run, tmp_path, PLAIN)
    assert done.returncode == -signal.SIGKILL
    saving = done.died.saving
    assert saving is not None and saving.under_way and not saving.kept
    assert (saving.path, [save.whole for save in saving.saves]) == (str(tmp_path / "model.keras"), [False])
    said = flat(done.stderr)
    assert "was killed while saving model.keras, which is damaged now: it is cut off" in said
    assert "before the end is lost; faultlens.save would have kept it" in said  # it saw the save before
    assert 'save with faultlens.save(model, "model.keras")' in said or "signal-raised-by-program" in said


def test_killed_in_a_save_of_ours(run, tmp_path: Path) -> None:
    done = dies(run, tmp_path, OURS)
    assert done.returncode == -signal.SIGKILL
    saving = done.died.saving
    assert saving is not None and saving.under_way and saving.kept and saving.unfinished
    assert [(save.generation, save.whole, save.current) for save in saving.saves] == [(2, True, True), (1, True, False)]
    said = flat(done.stderr)
    assert "was killed while saving model.keras: generation 2 is safe" in said
    assert 'faultlens.load("model.keras") takes it' in said
    found, passed_over = newest_whole(tmp_path / "model.keras")
    assert found is not None and found.number == 2 and not passed_over
    # And later, from the report that was kept; the interrupted save is still there.
    shown = subprocess.run(
        [*FAULTLENS, "show"], env={**os.environ, "FAULTLENS_HOME": str(done.home)}, capture_output=True, text=True
    )
    assert "now generation 2: whole (Keras archive" in flat(shown.stdout)
    verified = subprocess.run([*FAULTLENS, "verify", "model.keras"], cwd=tmp_path, capture_output=True, text=True)
    assert verified.returncode == 0 and "an interrupted save was left" in verified.stdout


def test_a_segfault_in_get_config(run, tmp_path: Path) -> None:
    """Keras has emptied the file by then."""
    done = dies(run, tmp_path, PLAIN, "ctypes.string_at(8)", in_config=True)
    assert done.returncode == -signal.SIGSEGV
    saving = done.died.saving
    assert saving is not None and saving.saves[0].damage == "it is empty: a save began and did not end"
    assert "died while saving model.keras, which is damaged now: it is empty" in flat(done.stderr)


def test_an_exception_in_a_save(run, tmp_path: Path) -> None:
    done = dies(run, tmp_path, PLAIN, "raise OSError(28, os.strerror(28))")
    assert done.returncode == 1
    saving = done.died.saving
    assert saving is not None and not saving.under_way and saving.saves[0].whole is False
    assert "its last save to model.keras had failed" in flat(done.stderr)


def test_killed_from_outside_while_a_slow_disk_writes(tmp_path: Path) -> None:
    """Nobody who asks a program to end (SIGTERM) asks for the loss of its model: this is told."""
    (tmp_path / "main.py").write_text(PROGRAM.format(save=PLAIN, end="time.sleep(60)", in_config=False))
    command = [*FAULTLENS, "run", "--", sys.executable, "main.py"]
    variables = {**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")}
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as program:
        deadline = time.monotonic() + 120
        while not _is_cut(tmp_path / "model.keras") and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1)
        program.send_signal(signal.SIGTERM)
        _, said = program.communicate(timeout=30)
    assert program.returncode == -signal.SIGTERM
    assert "was ended while saving model.keras, which is damaged now" in flat(said)
    assert 'save with faultlens.save(model, "model.keras")' in flat(said)


def _is_cut(path: Path) -> bool:
    """For a second or more: whole files are cut for an instant while they are written."""
    from faultlens.model_files.reader import read

    def damaged() -> bool:
        saved = read(path) if path.exists() else None
        return saved is not None and bool(saved.damages)

    if not damaged():
        return False
    time.sleep(1)
    return damaged()
