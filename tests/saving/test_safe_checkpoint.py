"""`SafeCheckpoint`: trainings that were killed end as if they had not been, and saves that fail end nothing."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training import BATCHES, EPOCHS, Data, Ended, Run, Trainings

import faultlens
from faultlens.errors import FaultlensError
from faultlens.model_files.generations import folder_of, generations
from faultlens.saving import training_state

np = pytest.importorskip("numpy")
keras = pytest.importorskip("keras", minversion="3")
tf = pytest.importorskip("tensorflow")

from faultlens.keras import SafeCheckpoint  # noqa: E402 (it needs Keras)
from faultlens.saving.data_position import Resumable  # noqa: E402

X = np.random.default_rng(0).random((20, 4), dtype="float32")
Y = X[:, :1]


def make_model(**options: Any) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
    model.compile("adam", "mse", run_eagerly="steps_per_execution" not in options, **options)
    return model


def fit(model: Any, *callbacks: Any, epochs: int = 3, **options: Any) -> Any:
    options = {"x": X, "y": Y, "batch_size": 5, "verbose": 0, **options}
    return model.fit(**options, epochs=epochs, callbacks=list(callbacks))


def weights(model: Any) -> list[bytes]:
    return [each.numpy().tobytes() for each in (*model.weights, *model.optimizer.variables)]


def where(path: Path) -> list[tuple[int, int]]:
    """Epoch and step of the saves of one name, the newest first."""
    found = [each.manifest.training for each in generations(path) if each.manifest]
    return [(state["epoch"], state["step"]) for state in found]


def told(caught: Any) -> list[str]:
    return [str(each.message) for each in caught if each.category is RuntimeWarning]


@pytest.fixture
def caught() -> Iterator[Any]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


class Values(keras.callbacks.Callback):  # type: ignore[misc]
    """Puts a quantity with known values into the logs of the epochs."""

    def __init__(self, *values: float, name: str = "val_loss") -> None:
        super().__init__()
        self.values, self.name = values, name

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs[self.name] = self.values[epoch]


class Raises(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        if epoch == self.epoch:
            raise RuntimeError("as planned")


# ------------------------------------------------------------------------- killed, and started again


@pytest.fixture(scope="module")
def trainings() -> Iterator[Trainings]:
    with Trainings() as server:
        yield server


@pytest.fixture(scope="module")
def undisturbed(trainings: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a training ends with that nobody kills."""
    known: dict[Data, Ended] = {}

    def run(data: Data) -> Ended:
        if data not in known:
            known[data] = trainings.run(Run(str(tmp_path_factory.mktemp("whole") / "model.keras"), data))
        return known[data]

    return run


@pytest.mark.parametrize(
    ("name", "data", "save_freq", "background", "at"),
    [
        ("model.keras", "dataset", "epoch", False, (2, 1)),
        ("{epoch}-{batch}.weights.h5", "dataset", 5, True, (1, 4)),  # the last batch of an epoch, before its end
        ("model.weights.h5", "arrays", 2, False, (1, 2)),
        ("model.keras", "unknown length", 2, True, (1, 3)),
        ("model.keras", "repeated", 2, False, (1, 3)),
        ("model.keras", "PyDataset", 2, False, (1, 3)),
    ],
)
def test_a_killed_training_ends_as_if_it_had_not_been(
    trainings: Trainings,
    undisturbed: Any,
    tmp_path: Path,
    name: str,
    data: Data,
    save_freq: Any,
    background: bool,
    at: tuple[int, int],
) -> None:
    """Bit for bit: dropout, shuffles, Adam, metrics. One of the models gets its variables with the first batch."""
    run = Run(str(tmp_path / name), data, save_freq, background, built=data != "arrays")
    assert trainings.run(replace(run, signal_at=at)).status == -signal.SIGKILL
    resumed, whole = trainings.run(run), undisturbed(data)
    assert (resumed.status, resumed.warnings, resumed.digest) == (0, (), whole.digest)
    assert {key: values[-1] for key, values in resumed.logs.items()} == {
        key: values[-1] for key, values in whole.logs.items()
    }
    assert len(resumed.logs["loss"]) < EPOCHS


def test_sigterm_saves_and_then_ends_the_program(trainings: Trainings, undisturbed: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    ended = trainings.run(Run(str(path), signal_at=(1, 1), signal=signal.SIGTERM, background=True))
    assert ended.status == -signal.SIGTERM
    assert where(path)[0] == (1, 3)  # the signal came after the checkpoint's turn, so the next batch is the last
    assert trainings.run(Run(str(path))).digest == undisturbed("dataset").digest


def test_sigterm_reaches_the_handler_that_was_there(trainings: Trainings, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    run = Run(str(path), signal_at=(1, 1), signal=signal.SIGTERM, save_on_sigterm=True, handler=True)
    ended = trainings.run(run)
    assert (ended.status, ended.heard) == (0, 1)
    assert where(path) == [(1, 3), (1, 0)]
    assert len(ended.logs["loss"]) == 2


# ------------------------------------------------------------------------------------- what is saved


def test_takes_the_arguments_of_model_checkpoint() -> None:
    theirs = list(inspect.signature(keras.callbacks.ModelCheckpoint).parameters.values())
    ours = list(inspect.signature(SafeCheckpoint).parameters.values())[: len(theirs)]
    assert [(each.name, each.default) for each in ours] == [(each.name, each.default) for each in theirs]


def test_plain_keras_reads_what_was_written(tmp_path: Path) -> None:
    model = make_model()
    fit(model, *(SafeCheckpoint(tmp_path / name) for name in ("m.keras", "m.weights.h5", "m.h5")))
    assert weights(keras.saving.load_model(tmp_path / "m.keras")) == weights(model)
    for name in ("m.weights.h5", "m.h5"):
        other = make_model()
        other.load_weights(tmp_path / name)
        assert weights(other)[:2] == weights(model)[:2]
    assert where(tmp_path / "m.keras") == [(3, 0), (2, 0)]


def test_a_missing_folder_is_made_as_model_checkpoint_does(tmp_path: Path) -> None:
    fit(make_model(), keras.callbacks.ModelCheckpoint(tmp_path / "plain" / "deep" / "model.keras"), epochs=1)
    fit(make_model(), SafeCheckpoint(tmp_path / "ours" / "deep" / "model.keras"), epochs=1)
    assert (tmp_path / "plain" / "deep" / "model.keras").is_file()
    assert (tmp_path / "ours" / "deep" / "model.keras").is_file()


def test_best_only(tmp_path: Path) -> None:
    best = SafeCheckpoint(tmp_path / "m.keras", save_best_only=True, keep=None)
    fit(make_model(), Values(np.nan, 3.0, 1.0, np.nan, 2.0, 0.5), best, epochs=6)
    assert where(tmp_path / "m.keras") == [(6, 0), (3, 0), (2, 0)]
    assert best.best == 0.5


@pytest.mark.parametrize(
    ("options", "epochs"),
    [
        ({"monitor": "val_mae"}, [3, 2, 1]),  # Keras' metric knows that it should be small
        ({"monitor": "val_mae", "mode": "max"}, [1]),
        ({"monitor": "val_mae", "initial_value_threshold": 0.25}, [3]),
        ({"monitor": "val_accuracy"}, [1]),
    ],
)
def test_which_is_better(tmp_path: Path, options: dict[str, Any], epochs: list[int]) -> None:
    checkpoint = SafeCheckpoint(tmp_path / "m.keras", save_best_only=True, keep=None, **options)
    fit(make_model(metrics=["mae", "accuracy"]), Values(0.4, 0.3, 0.2, name=options["monitor"]), checkpoint)
    assert [epoch for epoch, _ in where(tmp_path / "m.keras")] == epochs


def test_what_cannot_be_judged_is_saved_and_told(tmp_path: Path, caught: Any) -> None:
    unknown = SafeCheckpoint(tmp_path / "u.keras", "own", save_best_only=True)
    missing = SafeCheckpoint(tmp_path / "m.keras", "val_own", save_best_only=True)
    fit(make_model(), Values(1.0, 2.0, 3.0, name="own"), unknown, missing)
    assert where(tmp_path / "u.keras") == where(tmp_path / "m.keras") == [(3, 0), (2, 0)]
    first, second = told(caught)
    assert "whether own should be small or large" in first
    assert "val_own is not a number in the logs (loss, own)" in second


def test_the_best_is_remembered_after_a_restart(tmp_path: Path) -> None:
    for resume in (False, True):
        checkpoint = SafeCheckpoint(tmp_path / "m.keras", save_best_only=True, resume=resume)
        fit(make_model(), Values(2.0, 1.0, 1.5, 3.0), checkpoint, epochs=3 + resume)
    assert where(tmp_path / "m.keras") == [(2, 0), (1, 0)]


def test_every_few_batches(tmp_path: Path) -> None:
    fit(make_model(), SafeCheckpoint(tmp_path / "m.keras", save_freq=3, keep=None), epochs=2)
    assert where(tmp_path / "m.keras") == [(1, 2), (0, 3)]
    fit(make_model(steps_per_execution=4), SafeCheckpoint(tmp_path / "n.keras", save_freq=3, keep=None), epochs=2)
    assert where(tmp_path / "n.keras") == [(1, 4), (0, 4)]


def test_a_group_of_steps_is_passed_over_as_a_whole(tmp_path: Path) -> None:
    """Four batches in groups of three: the last group is smaller."""
    whole = make_model(steps_per_execution=3)
    fit(whole, SafeCheckpoint(tmp_path / "w.keras"))
    fit(make_model(steps_per_execution=3), SafeCheckpoint(tmp_path / "m.keras", save_freq=3), epochs=1)
    assert where(tmp_path / "m.keras") == [(0, 6), (0, 3)]
    resumed = make_model(steps_per_execution=3)
    history = fit(resumed, SafeCheckpoint(tmp_path / "m.keras", save_freq=3))
    assert weights(resumed) == weights(whole)
    assert history.epoch == [0, 1, 2]


def test_a_training_that_was_stopped_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    class Stop(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.model.stop_training = batch == 1

    fit(make_model(), SafeCheckpoint(tmp_path / "m.keras"), Stop())
    assert where(tmp_path / "m.keras") == [(0, 2)]


# ----------------------------------------------------------------------------------------- many names


def test_names_with_placeholders(tmp_path: Path) -> None:
    path = tmp_path / "run {{1}}" / "{epoch:02d}-{val_loss:.1f}.keras"
    fit(make_model(), Values(0.1, 3.0, 2.0, 4.0), SafeCheckpoint(path), epochs=4)
    there = tmp_path / "run {1}"
    # Two in all: the newest, and the best.
    assert sorted(each.name for each in there.glob("*.keras")) == ["01-0.1.keras", "04-4.0.keras"]
    assert sorted(os.listdir(there / ".faultlens")) == ["01-0.1.keras", "04-4.0.keras"]
    model = make_model()
    assert fit(model, Values(0, 0, 0, 0, 9.0), SafeCheckpoint(path, keep=None), epochs=5).epoch == [4]
    assert len(list(there.glob("*.keras"))) == 3


def test_a_folder_for_each_epoch(tmp_path: Path) -> None:
    path = tmp_path / "{epoch}" / "model.weights.h5"
    fit(make_model(), SafeCheckpoint(path, keep=1), epochs=2)
    assert [each.parent.name for each in tmp_path.glob("*/*.h5")] == ["2"]
    assert fit(make_model(), SafeCheckpoint(path)).epoch == [2]


def test_a_placeholder_that_stands_for_nothing(tmp_path: Path, caught: Any) -> None:
    fit(make_model(), Values(0.5), SafeCheckpoint(tmp_path / "{epoch}-{val_los:.2f}-{val_loss:d}.keras"), epochs=1)
    assert [each.name for each in tmp_path.glob("*.keras")] == ["1-unknown-0.5.keras"]
    assert "there is no val_los" in told(caught)[0]


# ------------------------------------------------------------------------------------------- resuming


def test_damaged_saves_are_passed_over(tmp_path: Path, caught: Any) -> None:
    path = tmp_path / "m.keras"
    fit(make_model(), SafeCheckpoint(path))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert fit(make_model(), SafeCheckpoint(path)).epoch == [2]
    (problem,) = told(caught)
    assert "m.keras" in problem and "going on from generation 2" in problem


def test_no_save_is_whole(tmp_path: Path, caught: Any) -> None:
    fit(make_model(), SafeCheckpoint(tmp_path / "{epoch}.keras"))
    for path in tmp_path.glob("*.keras"):
        path.write_bytes(path.read_bytes()[:-100])
    assert fit(make_model(), SafeCheckpoint(tmp_path / "{epoch}.keras")).epoch == [0, 1, 2]
    assert "the training starts from its beginning" in told(caught)[0]


def test_saves_of_others_are_not_taken_for_a_training(tmp_path: Path, caught: Any) -> None:
    make_model().save(tmp_path / "m.keras")
    assert fit(make_model(), SafeCheckpoint(tmp_path / "m.keras")).epoch == [0, 1, 2]
    assert "does not tell where its training stood" in told(caught)[0]


def test_nothing_is_left_to_train(tmp_path: Path, caught: Any) -> None:
    whole, again = make_model(), make_model()
    fit(whole, SafeCheckpoint(tmp_path / "m.keras"))
    assert fit(again, SafeCheckpoint(tmp_path / "m.keras")).epoch == []
    assert weights(again) == weights(whole)
    assert "nothing is left to train" in told(caught)[0]
    assert fit(again, SafeCheckpoint(tmp_path / "m.keras", resume=False)).epoch == [0, 1, 2]


def test_in_one_process(tmp_path: Path) -> None:
    """After an exception it goes on; after a training that ended the next one is another."""
    model, checkpoint = make_model(), SafeCheckpoint(tmp_path / "m.keras")
    with pytest.raises(RuntimeError, match="as planned"):
        fit(model, checkpoint, Raises(2))
    assert fit(model, checkpoint).epoch == [2]
    assert fit(model, checkpoint).epoch == [0, 1, 2]
    assert fit(model).epoch == [0, 1, 2]


def test_another_model(tmp_path: Path) -> None:
    fit(make_model(), SafeCheckpoint(tmp_path / "m.keras"))
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(7), keras.layers.Dense(1)])
    other.compile("adam", "mse")
    with pytest.raises(faultlens.SaveError, match=r"cannot be loaded into this model.*resume=False"):
        fit(other, SafeCheckpoint(tmp_path / "m.keras"))


def test_the_newest_save_of_several_callbacks(tmp_path: Path) -> None:
    def callbacks() -> list[Any]:
        return [
            Values(1.0, 2.0, 3.0, 4.0),
            SafeCheckpoint(tmp_path / "best.keras", save_best_only=True),
            SafeCheckpoint(tmp_path / "some.keras", save_freq=5),
            SafeCheckpoint(tmp_path / "last.keras"),
            SafeCheckpoint(tmp_path / "first.keras", save_best_only=True, mode="max", initial_value_threshold=1.5),
        ]

    fit(make_model(), *callbacks())
    assert where(tmp_path / "some.keras")[0] == (2, 2)
    model = make_model()
    assert fit(model, *callbacks(), epochs=4).epoch == [3]
    assert training_state.iterations(model) == 16  # no batch of the last epoch was passed over
    assert where(tmp_path / "best.keras") == [(1, 0)]


def test_the_old_format_has_no_optimizer(tmp_path: Path, caught: Any) -> None:
    fit(make_model(), SafeCheckpoint(tmp_path / "m.h5"))
    assert fit(make_model(), SafeCheckpoint(tmp_path / "m.h5"), epochs=4).epoch == [3]
    assert any("no state of this optimizer" in each for each in told(caught))


# --------------------------------------------------------------------------------------------- the data


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(20, seed=1).batch(5)


def numbers() -> Any:
    return tf.data.Dataset.range(20)


@pytest.mark.parametrize(
    "make",
    [
        lambda: numbers().shuffle(20, seed=1).batch(4).prefetch(2),
        lambda: numbers().shuffle(20, seed=1).batch(4).shuffle(3, seed=2),
        lambda: numbers().shuffle(20, seed=1).repeat(2).batch(4),
        lambda: numbers().shuffle(20, seed=1).interleave(lambda n: tf.data.Dataset.from_tensors(n)).shuffle(9, seed=2),
        lambda: tf.data.Dataset.zip((numbers().shuffle(20, seed=1), numbers().shuffle(20, seed=2))),
        lambda: (
            numbers().take(9).shuffle(9, seed=1).concatenate(numbers().skip(9).shuffle(9, seed=2)).shuffle(4, seed=3)
        ),
        lambda: numbers().shuffle(20, seed=1).cache().shuffle(20, seed=2),
        lambda: numbers().shuffle(20, seed=1, reshuffle_each_iteration=False),
    ],
    ids=["plain", "two", "repeated", "files", "zip", "concatenated", "cached", "always the same"],
)
def test_every_pass_through_a_dataset_has_its_own_order(make: Any) -> None:
    def orders(passes: int, saved: Any = None) -> list[Any]:
        data = Resumable(make())
        batches = int(data.cardinality())
        data.begin_training(batches if batches >= 0 else None, saved, pytest.fail)
        found = []
        for _ in range(passes):
            data.begin_epoch()
            found.append([np.asarray(each).tolist() for each in data])
            iter(data)  # Keras does so, and never uses it
        assert data.position(in_epoch=False) == {"passes": passes + (saved or {}).get("passes", 0), "batches": 0}
        return found

    assert orders(2, {"passes": 2, "batches": 0}) == orders(4)[2:]


def test_a_dataset_can_be_looked_at() -> None:
    data = Resumable(numbers().batch(20))
    assert next(iter(data)).shape == iter(data).get_next().shape == (20,)
    assert [len(each) for each in data.as_numpy_iterator()] == [20]


def test_a_shuffled_dataset_needs_to_be_resumable(tmp_path: Path, caught: Any) -> None:
    path = tmp_path / "m.keras"
    for epochs in (2, 3):
        fit(make_model(), SafeCheckpoint(path, save_freq=3), x=dataset(), y=None, batch_size=None, epochs=epochs)
    assert "in another order than it was begun in" in told(caught)[0]


def test_data_that_cannot_be_found_again(tmp_path: Path, caught: Any) -> None:
    for epochs in (1, 2):
        checkpoint = SafeCheckpoint(tmp_path / "m.keras")
        data = checkpoint.resumable(dataset())
        fit(make_model(), checkpoint, x=data, y=None, batch_size=None, steps_per_epoch=2, epochs=epochs)
    assert "epochs of 2 batches cannot be found again in a dataset of 4" in told(caught)[0]
    checkpoint = SafeCheckpoint(tmp_path / "n.keras")
    data = checkpoint.resumable(dataset())
    fit(make_model(), checkpoint, x=data, y=None, batch_size=None, class_weight={0: 1.0, 1: 2.0}, epochs=1)
    assert "Keras does not use the resumable dataset" in told(caught)[1]


# ------------------------------------------------------------------------------------- saves that fail


def test_a_full_disk_does_not_end_the_training(tmp_path: Path, caught: Any) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs root, to mount a small file system")
    try:
        (tmp_path / "filler").write_bytes(bytes(1 << 20))
        model = make_model()
        for background in (False, True):
            checkpoint = SafeCheckpoint(tmp_path / "{epoch}.keras", background=background)
            assert fit(model, checkpoint).epoch == [0, 1, 2]
        assert len(told(caught)) == 2  # one for each callback, not for each epoch
        assert all("1.keras was not saved" in each and "The training goes on" in each for each in told(caught))
        (tmp_path / "filler").unlink()
        fit(model, SafeCheckpoint(tmp_path / "m.keras"))
        assert where(tmp_path / "m.keras")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_better_state_is_saved_when_the_best_could_not_be(tmp_path: Path, caught: Any) -> None:
    class Repair(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            if epoch == 1:
                (tmp_path / "gone").unlink()

    (tmp_path / "gone").touch()  # a file where the folder should be
    path = tmp_path / "gone" / "m.keras"
    fit(make_model(), Values(1.0, 2.0, 3.0), SafeCheckpoint(path, save_best_only=True), Repair())
    assert where(path) == [(2, 0)]
    assert len(told(caught)) == 1


class Apply(keras.layers.Layer):  # type: ignore[misc]
    """It has no configuration: what its constructor needs is not known to Keras."""

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)


class Scale(keras.layers.Layer):  # type: ignore[misc]
    """Its configuration does not hold what its constructor needs."""

    def __init__(self, factor: float, **options: Any) -> None:
        super().__init__(**options)
        self.factor = factor

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor


def with_layer(layer: Any) -> Any:
    model = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(1)])
    model.compile("adam", "mse", run_eagerly=True)
    return model


@pytest.mark.parametrize("background", [False, True])
def test_a_layer_that_cannot_be_rebuilt_is_told_of_and_saved(tmp_path: Path, caught: Any, background: bool) -> None:
    path = tmp_path / "{epoch}.keras"
    fit(with_layer(Scale(2.0, name="own")), SafeCheckpoint(path, background=background))
    assert ["the layer 'own' (Scale) cannot be made again" in each for each in told(caught)] == [True]
    assert fit(with_layer(Scale(2.0, name="own")), SafeCheckpoint(path), epochs=4).epoch == [3]
    fit(with_layer(Scale(2.0)), SafeCheckpoint(tmp_path / "strict.keras", strict=True))
    assert where(tmp_path / "strict.keras") == []


def test_of_a_model_that_keras_cannot_describe_the_weights_are_saved(tmp_path: Path, caught: Any) -> None:
    def model() -> Any:
        return with_layer(Apply(lambda each: each * 2))

    fit(model(), SafeCheckpoint(tmp_path / "m.keras"))
    assert where(tmp_path / "m.weights.h5") == [(3, 0), (2, 0)]
    assert len(told(caught)) == 1 and "only the weights are saved" in told(caught)[0]
    assert fit(model(), SafeCheckpoint(tmp_path / "m.keras"), epochs=4).epoch == [3]


def test_values_that_are_no_numbers(tmp_path: Path, caught: Any) -> None:
    model = make_model()
    fit(model, SafeCheckpoint(tmp_path / "m.keras", strict=True, check_values=True), epochs=1)
    model.layers[-1].bias.assign([np.nan])
    fit(model, SafeCheckpoint(tmp_path / "m.keras", strict=True, check_values=True, resume=False), epochs=1)
    assert where(tmp_path / "m.keras") == [(1, 0)]
    assert "NaN or infinite" in told(caught)[0]


def test_what_can_be_known_before_the_training(tmp_path: Path) -> None:
    for options in (
        {"filepath": "model"},
        {"filepath": "m.keras", "save_weights_only": True},
        {"filepath": "{}.keras"},
        {"filepath": "m.keras", "save_freq": "batch"},
        {"filepath": "m.keras", "save_freq": 0},
        {"filepath": "m.keras", "keep": 0},
        {"filepath": "m.keras", "mode": "best"},
        {"filepath": "m.keras", "save_best_only": True, "save_on_sigterm": True},
    ):
        with pytest.raises(ValueError):
            SafeCheckpoint(**options)
    with pytest.raises(FaultlensError, match="Keras 3"):
        SafeCheckpoint(tmp_path / "m.keras").set_model(object())


def test_keras_2_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("__version__ = '2.15.0'\n")
    code = "import faultlens.keras"
    refused = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert "FaultlensError: faultlens.keras needs Keras 3, and this is Keras 2.15.0." in refused.stderr


# ----------------------------------------------------------------------------------------------- SIGTERM


def test_sigterm_is_as_it_was_after_the_training(tmp_path: Path, caught: Any) -> None:
    former = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    heard: list[int] = []
    try:
        ours = signal.getsignal(signal.SIGTERM)
        checkpoint = SafeCheckpoint(tmp_path / "m.keras", save_on_sigterm=True, resume=False)
        fit(make_model(), checkpoint)
        assert signal.getsignal(signal.SIGTERM) is ours
        with pytest.raises(RuntimeError):  # nobody tells a callback of that
            fit(make_model(), checkpoint, Raises(1))
        signal.raise_signal(signal.SIGTERM)
        assert heard == [1]
        assert signal.getsignal(signal.SIGTERM) is ours
        thread = threading.Thread(target=fit, args=(make_model(), checkpoint))
        thread.start()
        thread.join()
        assert "only the main thread" in told(caught)[0]
        assert signal.getsignal(signal.SIGTERM) is ours
    finally:
        signal.signal(signal.SIGTERM, former)


def test_sigterm_cuts_a_validation_short(tmp_path: Path) -> None:
    class Signal(keras.callbacks.Callback):  # type: ignore[misc]
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.last = batch
            if batch == 1:
                signal.raise_signal(signal.SIGTERM)

    former = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        sender, checkpoint = Signal(), SafeCheckpoint(tmp_path / "m.keras", save_on_sigterm=True)
        history = fit(make_model(), sender, checkpoint, validation_data=(X, Y), validation_batch_size=1)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert (history.epoch, sender.last, where(tmp_path / "m.keras")) == ([0], 1, [(1, 0)])


# -------------------------------------------------------------------------------- loops of the user's own


def loop(model: Any, iterator: Any, steps: int) -> None:
    for _ in range(steps):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        model.optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )


def test_a_loop_with_an_iterator_that_is_saved_too(tmp_path: Path) -> None:
    def begin() -> tuple[Any, Any]:
        model = make_model()
        model.optimizer.build(model.trainable_variables)
        return model, iter(dataset().repeat())

    whole, data = begin()
    loop(whole, data, 10)
    first, data = begin()
    loop(first, data, 5)
    state = training_state.capture(first, epoch=1, step=1)
    assert state["global_step"] == 5
    faultlens.save({"model": first, "data": data}, tmp_path / "ckpt", format="checkpoint", training=state)
    again, data = begin()
    found = faultlens.restore_latest(tmp_path, into={"model": again, "data": data})
    assert found is not None
    assert training_state.restore(found.training, again) == (1, 1)
    loop(again, data, 5)
    assert weights(again) == weights(whole)


def test_every_generator_of_random_numbers_is_put_back(tmp_path: Path) -> None:
    class Noise(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seeds = [keras.random.SeedGenerator(3)]
            self.generator = tf.random.Generator.from_seed(4)

        def call(self, inputs: Any) -> Any:
            return inputs

    model = keras.Sequential([keras.Input((4,)), Noise(), keras.layers.Dropout(0.1)])

    def draw() -> list[Any]:
        noise = model.layers[0]
        drawn = [
            keras.random.normal((2,)),  # Keras' global generator
            keras.random.normal((2,), seed=noise.seeds[0]),
            noise.generator.normal((2,)),
            tf.random.get_global_generator().normal((2,)),
            tf.random.normal((2,)),
            model(np.ones((1, 4), "float32"), training=True),
        ]
        return [each.numpy().tolist() for each in drawn]

    tf.random.set_seed(5)
    draw()
    state = training_state.capture(model)
    saved = faultlens.save(model, tmp_path / "m.weights.h5", strict=False, training=state)
    after = draw()
    tf.random.set_seed(6)
    assert draw() != after
    training_state.restore(generations(saved.path)[0].manifest.training, model)
    assert draw() == after


def test_saving_draws_no_random_numbers(tmp_path: Path) -> None:
    model = make_model()
    before = training_state.capture(model)["random"]
    faultlens.save(model, tmp_path / "m.keras")
    assert training_state.capture(model)["random"] == before
    assert folder_of(tmp_path / "m.keras").is_dir()


assert BATCHES == 5  # test_a_killed_training…: the last batch of an epoch
