"""The runs a forecast is made of: any model, any data, and never more memory than they may take."""

from __future__ import annotations

import contextlib
import secrets
import sys
from pathlib import Path

import keras
import pytest
from asking import GIB, MODELS, measured

import faultlens
from faultlens.errors import FaultlensError
from faultlens.forecasting.runs import Runs

MIB = 1 << 20


def test_peaks_of_every_step_and_what_the_model_is_made_of(runs):
    ran = measured(runs, "images", steps=3, phases=["train", "evaluate", "predict"])
    assert len(ran.result["train"]["peaks"]) == 3
    assert ran.result["train"]["peaks"] == sorted(ran.result["train"]["peaks"])
    assert ran.result["example"] == 64 * 64 * 3 * 4 + 4
    assert ran.result["model"]["weights"] == 4 * ran.result["model"]["parameters"]
    assert ran.result["model"]["optimizer"] > 2 * ran.result["model"]["weights"]


def test_what_takes_too_much_is_stopped_before_it_has_it(runs):
    ran = measured(runs, "heavy", memory=600 * MIB)
    assert ran.killed == "memory"
    assert 600 * MIB < ran.highest < 900 * MIB
    assert measured(runs, "not_compiled").result  # and the next run is not harmed


def test_what_a_run_leaves_behind_is_ended(monkeypatch):
    mark = f"9{secrets.randbelow(10**8):08}"
    monkeypatch.setenv("DAEMON_MARK", mark)
    with Runs(sys.executable, []) as runs:
        runs.wait_until_ready()
        assert measured(runs, "with_a_daemon").result
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                assert mark.encode() not in path.read_bytes()


def test_weights_gradients_and_optimizer_are_seen(runs):
    ran = measured(runs, "heavy", steps=1)
    size = 10_000 * 10_001 * 4
    assert ran.result["model"]["weights"] == ran.result["model"]["trainable"] == size
    assert ran.result["train"]["peaks"][-1] > 4 * size  # and Adam has two of each


@pytest.mark.parametrize("form", [".keras", ".h5", ".weights.h5", "savedmodel", "checkpoint"])
def test_saving_is_measured_in_every_format(runs, form):
    told = measured(runs, "images", steps=1, phases=["train", form]).result["saves"][form]
    assert told["peak"] >= told["before"] > 100 * MIB, told


def test_several_inputs_and_outputs(runs):
    assert measured(runs, "two_inputs", phases=["train", "predict", "evaluate"]).result["example"] == 8 * 4 + 4 * 4 + 8


def test_a_model_with_steps_of_its_own_is_told_its_inputs(runs):
    ran = measured(runs, "own_step", spec={"x": ["float32", [16], None]}, phases=["train", "predict"])
    assert ran.result["example"] == 64


def test_lengths_that_are_not_fixed_are_asked_for(runs):
    ran = measured(runs, "sentences")
    assert ran.refused and "--data-spec 'tokens=int32[128]'" in ran.words
    assert measured(runs, "sentences", spec={"tokens": ["int32", [50], None]}).result["example"] == 50 * 4 + 4


def test_the_users_own_pipeline_is_used(runs):
    ran = measured(runs, "images", data={"file": str(MODELS), "function": "batches"})
    assert ran.result["example"] is None and ran.result["train"]["peaks"]


def test_another_optimizer(runs):
    plain, adam = (measured(runs, "images", optimizer=name, steps=1).result["model"] for name in ("sgd", None))
    assert plain["optimizer"] < adam["optimizer"]


@pytest.mark.parametrize(
    ("function", "more", "sentence"),
    [
        ("no_model", {}, "no_model() returned int, not a Keras model."),
        ("nowhere", {}, "has no function nowhere."),
        ("own_step", {}, "The model does not declare its inputs."),
        ("images", {"optimizer": "alchemy"}, "Keras knows no optimizer 'alchemy'."),
        ("images", {"data": {"file": str(MODELS), "function": "no_batches"}}, "returned list, not a tf.data.Dataset"),
    ],
)
def test_what_the_user_can_mend_is_told_as_it_is(runs, function, more, sentence):
    ran = measured(runs, function, **more)
    assert ran.refused and sentence in ran.words


def test_an_error_of_the_users_code_is_told_with_its_name(runs):
    ran = measured(runs, "broken")
    assert not ran.refused and ran.words.endswith("): RuntimeError: the file with the vocabulary is missing")


def test_a_model_of_this_program():
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    found = faultlens.forecast(model, 64, limit=2 * GIB)
    assert found.training.verdict == "fits" and found.parameters == model.count_params()


def test_classes_of_the_main_script_are_refused_with_what_to_do():
    class Mine(keras.layers.Dense):
        pass

    Mine.__module__ = "__main__"
    model = keras.Sequential([keras.Input((4,)), Mine(2)])
    model.compile("adam", "mse")
    with pytest.raises(FaultlensError, match=r"train\.py:build_model"):
        faultlens.forecast(model, 8)
