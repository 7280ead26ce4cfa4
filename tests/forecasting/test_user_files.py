"""Files as people have them: that train, ask, exit or crash; measured all the same, or refused in a sentence."""

from __future__ import annotations

import sys
import textwrap

import pytest
from asking import MODELS, PROGRAMS, forecast, measured

from faultlens.errors import FaultlensError
from faultlens.forecasting.runs import Runs
from faultlens.forecasting.subject import function_of

TRAINS = PROGRAMS / "trains_at_import.py"
MODEL = """
import argparse, os, sys
import keras, numpy as np, tensorflow as tf

def build_model():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model
"""


def write(folder, text, name="train.py"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MODEL + textwrap.dedent(text))
    return str(file)


# ------------------------------------------------------------------------------- training at import


def test_a_file_that_trains_is_stopped_there_and_measured_like_another(runs):
    trains = measured(runs, "build_model", file=str(TRAINS), batch=64, steps=4)
    alone = measured(runs, "images", batch=64, steps=4)
    added = [ran.result["train"]["peaks"][-1] - ran.result["built"] for ran in (trains, alone)]
    assert added[0] == pytest.approx(added[1], rel=0.2)
    assert (
        "trains when it is imported: it was stopped there (trains_at_import.py, line 27: fit)"
        in (trains.result["notes"][0])
    )


def test_its_forecast_says_so_and_makes_sense():
    words = ("--batch", "32", "--data", f"{TRAINS}:make_dataset", "--limit", "8GiB", "--json", "-")
    told = forecast(f"{TRAINS}:build_model", *words)
    assert told.status == 0, told.errors
    assert "trains when it is imported" in told.json["notes"][0]
    assert told.json["largest_batch"] < (8 << 30) // (64 * 64 * 48 * 4)


@pytest.mark.parametrize(
    "training",
    [
        "model.train_on_batch(np.zeros((8, 4)), np.zeros((8, 1)))",
        "keras.optimizers.SGD().apply_gradients([(tf.zeros_like(each), each) for each in model.trainable_variables])",
        "tf.function(lambda: keras.optimizers.Adam().apply([tf.zeros((4, 1)), tf.zeros(1)], model.variables))()",
        "main = lambda: model.fit(np.zeros((8, 4)), np.zeros((8, 1)))\n"
        "try:\n    main()\nexcept Exception:\n    sys.exit(7)",
    ],
)
def test_any_way_to_train_is_noticed(runs, tmp_path, training):
    ran = measured(runs, "build_model", file=write(tmp_path, f"model = build_model()\n{training}\n"))
    assert ran.result, ran.words
    assert "train.py trains when it is imported" in ran.result["notes"][0]


@pytest.mark.parametrize(
    ("file", "function", "sentence"),
    [
        (
            TRAINS,
            "too_late",
            "trains_at_import.py trains when it is imported (trains_at_import.py, line 27: fit), before",
        ),
        (None, "trained", "trained() trains the model itself (train.py, line 11: fit)."),
    ],
)
def test_what_cannot_be_measured_without_training_is_refused(runs, tmp_path, file, function, sentence):
    text = """
    def trained():
        build_model().fit(np.zeros((8, 4)), np.zeros((8, 1)))
    """
    ran = measured(runs, function, file=str(file or write(tmp_path, text)))
    assert ran.refused and sentence in ran.words


# ------------------------------------------------------------------------------------ awkward files


@pytest.mark.parametrize(
    ("text", "function", "sentence"),
    [
        (
            "sys.exit(3)",
            "build_model",
            "train.py ended itself when it was imported (train.py, line 9): exit status 3.",
        ),
        (
            "parser = argparse.ArgumentParser(); parser.add_argument('--data', required=True); parser.parse_args()",
            "build_model",
            "It had said: train.py: error: the following arguments are required: --data",
        ),
        ("input('Which data? ')", "build_model", "train.py reads from standard input (train.py, line 9)"),
        ("def ends(): sys.exit('no data')", "ends", "ends() ended its process (train.py, line 9): no data."),
        ("def nothing(): build_model()", "nothing", "returned None, not a Keras model. Does it lack a `return`?"),
        ("def one(): yield build_model()", "one", "one() returned generator, not a Keras model."),
        ("def unbuilt(): return keras.Sequential([keras.layers.Dense(1)])", "unbuilt", "does not declare its inputs"),
    ],
)
def test_what_the_user_can_mend_is_told(runs, tmp_path, text, function, sentence):
    ran = measured(runs, function, file=write(tmp_path, text))
    assert ran.refused and sentence in ran.words, ran.words


def test_labels_are_asked_for_where_nothing_declares_them(runs, tmp_path):
    file = write(tmp_path, "def unbuilt(): return keras.Sequential([keras.layers.Dense(1)])")
    spec = {"x": ["float32", [4], None]}
    ran = measured(runs, "unbuilt", file=file, spec=spec)
    assert ran.refused and "Say the labels, too" in ran.words
    assert measured(runs, "unbuilt", file=file, spec={**spec, "y": ["float32", [1], None]}).result


def test_an_optimizer_may_be_given_its_variables_by_an_update(runs, tmp_path):
    text = """
    def prepared():
        model = build_model()
        model.optimizer.apply([tf.zeros_like(each) for each in model.trainable_variables], model.trainable_variables)
        return model
    """
    ran = measured(runs, "prepared", file=write(tmp_path, text))
    assert ran.result and not ran.result["notes"], ran.words


def test_relative_imports_work(runs, tmp_path):
    write(tmp_path, "", "project/models/__init__.py")
    write(tmp_path, "WIDTH = 3", "project/sizes.py")
    file = write(tmp_path, "from ..sizes import WIDTH\ndef build():\n    assert WIDTH == 3\n    return build_model()",
                 "project/models/train.py")  # fmt: skip
    ran = measured(runs, "build", file=file)
    assert ran.result, ran.words


@pytest.mark.parametrize(
    ("text", "function", "words"),
    [
        ("import nowhere", "build_model", "Importing train.py failed (train.py, line 9): ModuleNotFoundError: No mod"),
        ("def broken(): return {}['units']", "broken", "broken() failed (train.py, line 9): KeyError: 'units'"),
        ("os._exit(4)", "build_model", "The model ended its process, with exit status 4."),
        ("os.kill(os.getpid(), 9)", "build_model", "most likely for want of memory."),
    ],
)
def test_errors_are_told_with_what_was_done_and_the_line(runs, tmp_path, text, function, words):
    ran = measured(runs, function, file=write(tmp_path, text))
    assert not ran.refused and words in ran.words


# ------------------------------------------------------------------------------ names, and crashes


def test_a_wrong_name_is_refused_before_tensorflow_is_imported(tmp_path, monkeypatch):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('it was imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = forecast(f"{MODELS}:image", "--batch", "8")
    assert told.status == 2
    assert told.errors == "faultlens: models.py has no function image. Did you mean images?\n"
    assert "it was imported" in forecast(f"{MODELS}:images", "--batch", "8").errors


def test_a_tensorflow_that_dies_when_it_is_imported_is_told(tmp_path, monkeypatch):
    (tmp_path / "tensorflow.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = forecast(f"{MODELS}:images", "--batch", "8")
    assert "it died by SIGABRT. " in told.errors and "-c 'import tensorflow'` say what it dies of" in told.errors


def test_a_server_that_was_killed_is_told_in_a_sentence(tmp_path):
    with Runs(sys.executable, []) as runs:
        runs.wait_until_ready()
        with pytest.raises(FaultlensError, match=r"The measuring process was killed \(SIGKILL\)"):
            measured(runs, "build_model", file=write(tmp_path, "os.kill(os.getppid(), 9)"))


def test_so_are_functions_of_data():
    functions = [function_of(f"{MODELS}:images", given=1)]
    with Runs(sys.executable, [], functions) as runs, pytest.raises(FaultlensError, match="takes no argument"):
        runs.wait_until_ready()


CRASHES = """
import ctypes, tensorflow

class Reads(keras.layers.Layer):
    def call(self, x):
        if tensorflow.executing_eagerly():  # not yet when it is built
            ctypes.string_at(0)
        return x

def crashes():
    model = keras.Sequential([keras.Input((4,)), Reads()])
    model.compile("adam", "mse", run_eagerly=True)
    return model
"""


def test_a_model_that_crashes_is_diagnosed(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    told = forecast(f"{write(tmp_path, CRASHES)}:crashes", "--batch", "1")
    assert told.status == 2
    assert "null-pointer-passed" in told.errors
    assert "train.py:15" in told.errors
    assert "check the pointer before the call" in told.errors
    assert told.errors.endswith("faultlens: No forecast could be made: training with a batch of 1 died.\n")
    assert list((tmp_path / "home").glob("**/report.json"))


def test_a_function_that_crashes_while_it_builds(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    text = """
    def crashes():
        import ctypes
        ctypes.string_at(0)
    """
    told = forecast(f"{write(tmp_path, text)}:crashes", "--batch", "2")
    assert told.status == 2
    assert told.errors.endswith("faultlens: No forecast could be made: building the model died.\n")


def test_what_is_assumed_of_a_model_that_is_not_compiled(tmp_path):
    text = """
    def bare():
        return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    """
    file = write(tmp_path, text)
    with Runs(sys.executable, []) as runs:
        runs.wait_until_ready()
        assert measured(runs, "bare", file=file).result["notes"] == [
            "the model is not compiled: optimizer adam, loss mse assumed"
        ]
        assert measured(runs, "bare", file=file, optimizer="sgd").result["notes"] == [
            "the model is not compiled: loss mse assumed"
        ]
