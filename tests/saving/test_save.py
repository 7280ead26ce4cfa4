"""`faultlens.save` and `faultlens.load`: what comes back is what was there, and plain Keras and TensorFlow read it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import faultlens
from faultlens.model_files.generations import folder_of, generations
from faultlens.saving.values import array_of

np = pytest.importorskip("numpy")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")


def make_model() -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((300,)),
            keras.layers.Dense(400, activation="relu"),
            keras.layers.Dropout(0.1),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3, dtype="bfloat16"),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    train(model)
    return model


def train(model: Any) -> None:
    data = np.random.default_rng(0).random((32, 300), dtype="float32")
    model.fit(data, data[:, :3], verbose=0)


def state(model: Any) -> list[Any]:
    """Keras does not save the state of random generators."""
    variables = [each for each in model.variables if "seed_generator" not in each.path]
    return [np.array(array_of(each)) for each in (*variables, *model.optimizer.variables)]


def equal(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def model() -> Any:
    return make_model()


def fresh() -> Any:
    """The same layers and no memory of anything."""
    other = make_model()
    train(other)
    return other


# --------------------------------------------------------------------------------------------- formats


def test_keras_archive(model: Any, tmp_path: Path) -> None:
    saved = faultlens.save(model, tmp_path / "model.keras")
    assert (saved.number, saved.path) == (1, tmp_path / "model.keras")
    assert equal(state(faultlens.load(tmp_path / "model.keras")), state(model))
    assert equal(state(keras.saving.load_model(tmp_path / "model.keras")), state(model))


def test_keras_archive_is_laid_out_as_keras_does(model: Any, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    model.save(tmp_path / "plain.keras")
    faultlens.save(model, tmp_path / "ours.keras")
    described = []
    for name in ("plain.keras", "ours.keras"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.testzip() is None
            with archive.open("model.weights.h5") as weights, h5py.File(weights) as file:
                found: dict[str, Any] = {}
                file.visititems(lambda path, item, found=found: found.update({path: describe(item)}))
            described.append((sorted(archive.namelist()), archive.read("config.json"), found))
    assert described[0] == described[1]


def describe(item: Any) -> Any:
    attributes = {name: str(value) for name, value in item.attrs.items()}
    return (str(item.dtype), item.shape, item[()].tobytes(), attributes) if hasattr(item, "shape") else attributes


def test_weights(model: Any, tmp_path: Path) -> None:
    faultlens.save(model, tmp_path / "model.weights.h5")
    other = fresh()
    assert not equal(state(other), state(model))
    assert faultlens.load(tmp_path / "model.weights.h5", into=other) is other
    assert equal(state(other), state(model))
    plain = fresh()
    plain.load_weights(tmp_path / "model.weights.h5")
    assert equal(state(plain), state(model))


def test_saved_model(model: Any, tmp_path: Path) -> None:
    faultlens.save(model, tmp_path / "saved", format="saved_model")
    data = np.ones((2, 300), "float32")
    expected = model(data, training=False).numpy()
    assert np.array_equal(faultlens.load(tmp_path / "saved").serve(data), expected)
    assert np.array_equal(tf.saved_model.load(str(tmp_path / "saved")).serve(data), expected)


def test_checkpoint(model: Any, tmp_path: Path) -> None:
    for _ in range(3):
        saved = faultlens.save(model, tmp_path / "ckpt", format="checkpoint")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(saved.path) == str(tmp_path / "ckpt-3")
    other = fresh()
    faultlens.load(tmp_path / "ckpt", into=other)
    assert equal(state(other), state(model))
    plain = fresh()
    tf.train.Checkpoint(plain).read(tf.train.latest_checkpoint(str(tmp_path))).assert_existing_objects_matched()
    assert equal(state(plain), state(model))


def test_the_hdf5_format_of_old(tmp_path: Path) -> None:
    model = with_layer(keras.layers.Dense(3))
    saved = faultlens.save(model, tmp_path / "model.h5")
    assert "written by Keras itself" in saved.manifest.notes[0]
    loaded = faultlens.load(tmp_path / "model.h5", compile=False)
    assert np.array_equal(loaded.layers[-1].kernel, model.layers[-1].kernel)


def test_variables_and_modules(tmp_path: Path) -> None:
    variables = {"a": tf.Variable([1.0, 2.0]), "b": tf.Variable(["x", "y"])}
    faultlens.save(variables, tmp_path / "variables")
    variables["a"].assign([0.0, 0.0])
    faultlens.load(tmp_path / "variables", into=variables)
    assert variables["a"].numpy().tolist() == [1.0, 2.0]

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = tf.Variable(3.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def times(self, value: Any) -> Any:
            return self.factor * value

    module = Module()
    faultlens.save(module, tmp_path / "module", format="saved_model")
    loaded = faultlens.load(tmp_path / "module")
    assert float(loaded.times(2.0)) == 6.0


def test_an_iterator_goes_on_where_it_stood(tmp_path: Path) -> None:
    data = tf.data.Dataset.range(10)
    iterator = iter(data)
    next(iterator), next(iterator)
    faultlens.save(tf.train.Checkpoint(iterator=iterator), tmp_path / "position")
    other = iter(data)
    faultlens.load(tmp_path / "position", into=tf.train.Checkpoint(iterator=other))
    assert int(next(other)) == 2


def test_large_variables(tmp_path: Path) -> None:
    layers = [keras.layers.Dense(3000), keras.layers.Dense(2, dtype="float16")]
    model = keras.Sequential([keras.Input((1100,)), *layers])
    for name in ("model.keras", "model.weights.h5"):
        faultlens.save(model, tmp_path / name)
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True))


def test_a_vocabulary_is_an_asset(tmp_path: Path) -> None:
    vectorize = keras.layers.TextVectorization()
    vectorize.adapt(["one two", "two three"])
    model = keras.Sequential([keras.Input((1,), dtype="string"), vectorize])
    faultlens.save(model, tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].get_vocabulary() == vectorize.get_vocabulary()


# ------------------------------------------------------------------------------- generations and restoring


def test_restore_latest_takes_the_newest_that_is_whole(tmp_path: Path) -> None:
    model = make_model()
    faultlens.save(model, tmp_path / "model.weights.h5", training={"epoch": 1})
    first = state(model)
    train(model)
    faultlens.save(model, tmp_path / "model.weights.h5", training={"epoch": 2})
    with open(tmp_path / "model.weights.h5", "r+b") as file:
        file.seek(100_000)
        file.write(b"damaged")
    other = fresh()
    with pytest.warns(RuntimeWarning, match=r"model.weights.h5 .* taking generation 1"):
        restored = faultlens.restore_latest(tmp_path, into=other)
    assert restored is not None
    assert (restored.generation, restored.training) == (1, {"epoch": 1})
    assert equal(state(other), first)
    assert faultlens.restore_latest(tmp_path / "nowhere") is None


def test_plain_keras_may_write_over_it(model: Any, tmp_path: Path) -> None:
    faultlens.save(model, tmp_path / "model.keras")
    faultlens.save(model, tmp_path / "model.keras")
    model.save(tmp_path / "model.keras")
    assert [each.number for each in generations(tmp_path / "model.keras")] == [None, 1]
    faultlens.load(tmp_path / "model.keras")
    (tmp_path / "model.keras").write_bytes(b"")  # as a killed save leaves it
    with pytest.warns(RuntimeWarning, match="is empty"):
        faultlens.load(tmp_path / "model.keras")
    faultlens.save(model, tmp_path / "model.keras", keep=9)
    assert generations(tmp_path / "model.keras")[0].damages() == []


def test_the_manifest_tells(model: Any, tmp_path: Path) -> None:
    faultlens.save(model, tmp_path / "model.keras", training={"epoch": 3})
    manifest = json.loads((folder_of(tmp_path / "model.keras") / "00000001.json").read_text())
    assert manifest["training"] == {"epoch": 3}
    assert manifest["versions"]["keras"] == keras.__version__
    assert manifest["files"][0]["size"] == (tmp_path / "model.keras").stat().st_size
    assert {"/layers/dense/vars/0", "/optimizer/vars/2"} <= {each["name"] for each in manifest["variables"]}


ALL_FORMATS = ("model.keras", "model.weights.h5", "model.h5", "saved", "ckpt")


def save_plainly(model: Any, folder: Path) -> None:
    model.save(folder / "model.keras")
    model.save_weights(folder / "model.weights.h5")
    model.save(folder / "model.h5")
    model.export(folder / "saved", verbose=False)
    tf.train.Checkpoint(model).write(str(folder / "ckpt-1"))


def save_safely(model: Any, folder: Path, background: bool = False) -> None:
    for name in ALL_FORMATS:
        form = "checkpoint" if name == "ckpt" else None
        saved = faultlens.save(model, folder / name, format=form, background=background, keep=3)
        if background:
            saved.wait()


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): oct(path.stat().st_mode)
        for path in folder.rglob("*")
        if ".faultlens" not in path.parts and path.name != "checkpoint"
    }


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_new_files_have_the_modes_that_keras_gives_them(model: Any, tmp_path: Path, umask: int) -> None:
    plain, safe = tmp_path / "plain", tmp_path / "safe"
    before = os.umask(umask)
    try:
        for folder in (plain, safe):
            folder.mkdir(0o755)
        save_plainly(model, plain)
        save_safely(model, safe)
    finally:
        os.umask(before)
    assert modes(safe) == modes(plain)


@pytest.mark.parametrize("background", [False, True])
def test_a_model_for_one_user_stays_one(model: Any, tmp_path: Path, background: bool) -> None:
    save_plainly(model, tmp_path)
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = modes(tmp_path)
    save_safely(model, tmp_path, background)
    save_safely(model, tmp_path, background)
    after = modes(tmp_path)
    assert before.items() <= after.items()
    for path, mode in after.items():
        assert mode.endswith("00"), path
    for kept in tmp_path.glob(".faultlens/*/*"):
        assert kept.name == "lock" or not kept.stat().st_mode & 0o077, kept
    for folder in tmp_path.glob(".faultlens/*"):
        assert not folder.stat().st_mode & 0o077, folder


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two users")
def test_a_model_that_may_not_be_written_to_is_not_replaced(model: Any, tmp_path: Path) -> None:
    """Keras says so too, although a rename asks the folder alone."""
    path = tmp_path / "model.keras"
    path.write_bytes(b"protected")
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        os.chown(folder, 65534, 65534) if folder == tmp_path else folder.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        try:
            faultlens.save(model, path)
        except faultlens.SaveError as error:
            os._exit(7 if "it may not be written to" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_bytes() == b"protected"


@pytest.mark.parametrize("name", [b"caf\xe9", b"line\nbreak \x1b[31m", b"-rf", b"\\xff"])
def test_any_name_that_a_file_can_have(model: Any, tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    for suffix in (".keras", ".weights.h5"):
        path = folder / os.fsdecode(name + suffix.encode())
        faultlens.save(model, path)
        faultlens.save(model, path, background=True).wait()
        assert [each.number for each in generations(path)] == [2, 1]
        assert [each.damages() for each in generations(path)] == [[], []]
        assert equal(state(faultlens.load(path, into=fresh())), state(model))


def test_a_link_keeps_pointing_where_it_pointed(model: Any, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "model.keras").symlink_to(tmp_path / "real" / "model.keras")
    faultlens.save(model, tmp_path / "model.keras")
    assert (tmp_path / "model.keras").is_symlink()
    assert (tmp_path / "real" / "model.keras").is_file()


# --------------------------------------------------------------------------------------- what is refused


class Lying(keras.layers.Layer):
    def compute_output_shape(self, shape: Any) -> Any:
        return (shape[0], 7)

    def call(self, values: Any) -> Any:
        return values * 2


class Forgetful(keras.layers.Layer):
    def __init__(self, units: int, **more: Any) -> None:
        super().__init__(**more)
        self.units = units

    def get_config(self) -> Any:
        return {"name": self.name}

    def call(self, values: Any) -> Any:
        return values


class Failing(keras.layers.Layer):
    def get_config(self) -> Any:
        raise RuntimeError("no configuration today")

    def call(self, values: Any) -> Any:
        return values


class Honest(keras.layers.Layer):
    def __init__(self, units: int = 3, **more: Any) -> None:
        super().__init__(**more)
        self.units = units

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], self.units))

    def compute_output_shape(self, shape: Any) -> Any:
        return (*shape[:-1], self.units)

    def get_config(self) -> Any:
        return {**super().get_config(), "units": self.units}

    def call(self, values: Any) -> Any:
        return values @ self.kernel


def with_layer(layer: Any) -> Any:
    inputs = keras.Input((4,))
    return keras.Model(inputs, layer(inputs))


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (Lying, r"'lying.*' \(Lying\): its compute_output_shape says \(None, 7\), call gives \(None, 4\)"),
        (lambda: Forgetful(3), r"'forgetful.*' \(Forgetful\) cannot be made again from its get_config"),
        (Failing, r"'failing.*' \(Failing\): its get_config fails with RuntimeError: no configuration today"),
    ],
)
def test_layers_that_could_not_be_made_again(layer: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(faultlens.SaveError, match=problem):
        faultlens.save(with_layer(layer()), tmp_path / "model.keras")
    assert not (tmp_path / "model.keras").exists()


def test_what_is_not_strict_is_saved_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="compute_output_shape says"):
        faultlens.save(with_layer(Lying()), tmp_path / "model.keras", strict=False)
    assert (tmp_path / "model.keras").exists()


def test_honest_layers_are_saved(tmp_path: Path) -> None:
    model = with_layer(Honest(5))
    faultlens.save(model, tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", custom_objects={"Honest": Honest})
    assert np.array_equal(loaded.layers[-1].kernel, model.layers[-1].kernel)


def test_values_that_are_no_numbers_if_asked(tmp_path: Path) -> None:
    model = with_layer(keras.layers.Dense(2))
    model.layers[-1].kernel.assign(np.full((4, 2), np.nan, "float32"))
    with pytest.raises(faultlens.SaveError, match=r"dense.*/kernel holds 8 values that are NaN or infinite"):
        faultlens.save(model, tmp_path / "model.keras", check_values=True)
    faultlens.save(model, tmp_path / "model.keras")


def test_an_optimizer_of_other_weights(tmp_path: Path) -> None:
    one, other = with_layer(keras.layers.Dense(2)), with_layer(keras.layers.Dense(2))
    one.compile("adam", "mse")
    one.optimizer.build(one.trainable_variables)
    other.compile(one.optimizer, "mse")
    with pytest.raises(faultlens.SaveError, match=r"the optimizer \(Adam\) was built for other variables"):
        faultlens.save(other, tmp_path / "model.keras")


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("folder", {}, "this folder holds other things"),
        ("folder/thing.keras/", {}, "there is a folder of this name"),
        ("model.keras", {"keep": 0}, "0 generations cannot be kept"),
        ("model.keras", {"format": "pickle"}, "'pickle' is not a format"),
        ("gs://bucket/model.keras", {}, "is not on a file system of this machine"),
        ("missing/model.keras", {}, "there is no folder .*/missing"),
        ("missing/model.weights.h5", {"background": True}, "there is no folder .*/missing"),
        ("model.pb", {}, r"Keras has no format for the ending \.pb"),
        ("model.ckpt", {}, r"Keras has no format for the ending \.ckpt"),
        ("model.keras.bak", {}, r"Keras has no format for the ending \.bak"),
        ("model.h5", {"format": "keras"}, "is not a name for the format 'keras'"),
        ("model", {"format": "weights"}, "is not a name for the format 'weights'"),
        ("x" * 250 + ".keras", {}, "its name of 256 characters is too long"),
        ("x" * 300, {"background": True}, "its name of 300 characters is too long"),
    ],
)
def test_what_cannot_be_saved_to(model: Any, tmp_path: Path, name: str, options: Any, problem: str) -> None:
    (tmp_path / "folder" / "thing.keras").mkdir(parents=True)
    path = name if "://" in name else tmp_path / name
    with pytest.raises(faultlens.SaveError, match=problem):
        faultlens.save(model, path, **options)
    assert (tmp_path / "folder" / "thing.keras").is_dir()
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["model.keras/x.keras", "model.keras/deep/saved", "model.keras/x.weights.h5"])
def test_a_file_is_no_folder(model: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "model.keras").write_bytes(b"a file")
    with pytest.raises(faultlens.SaveError, match=r"model\.keras is a file, not a folder"):
        faultlens.save(model, tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["model.keras"]


def test_folders_are_made_where_keras_and_tensorflow_make_them(tmp_path: Path) -> None:
    model = with_layer(keras.layers.Dense(3))
    for name, form, theirs in (
        ("model.keras", None, model.save),
        ("model.weights.h5", None, model.save_weights),
        ("model.h5", None, model.save),
        ("model", None, lambda path: model.export(path, verbose=False)),
        ("model.v1", "saved_model", lambda path: model.export(path, verbose=False)),
    ):
        plain, ours = tmp_path / "plain" / name, tmp_path / "ours" / name
        with contextlib.suppress(FileNotFoundError):
            theirs(str(plain))
        with contextlib.suppress(faultlens.SaveError):
            faultlens.save(model, ours, format=form)
        assert plain.exists() == ours.exists(), name
        for folder in (plain.parent, ours.parent):
            shutil.rmtree(folder, ignore_errors=True)


def test_a_saved_model_keeps_the_name_that_it_has(tmp_path: Path) -> None:
    model = with_layer(keras.layers.Dense(3))
    faultlens.save(model, tmp_path / "model.v1", format="saved_model")
    assert faultlens.save(model, tmp_path / "model.v1").number == 2


@pytest.mark.parametrize("subject", [None, 5, "model.keras", {"step": 5}])
def test_what_nobody_can_save(tmp_path: Path, subject: Any) -> None:
    with pytest.raises(faultlens.SaveError, match="TensorFlow cannot save this"):
        faultlens.save(subject, tmp_path / "ckpt")


def test_what_is_no_model_becomes_no_archive(tmp_path: Path) -> None:
    with pytest.raises(faultlens.SaveError, match="dict is no Keras model"):
        faultlens.save({"a": tf.Variable(1.0)}, tmp_path / "model.keras")


def test_nothing_was_saved(tmp_path: Path) -> None:
    with pytest.raises(faultlens.SaveError, match="Nothing was saved as"):
        faultlens.load(tmp_path / "model.keras")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk(model: Any, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    try:
        faultlens.save(model, disk / "model.keras", keep=1)
        shutil.copy(disk / "model.keras", tmp_path / "before.keras")
        with pytest.raises(OSError, match="No space"):
            (disk / "ballast").write_bytes(bytes(4 << 20))
        with pytest.raises(faultlens.SaveError, match=r"it needs about .*, and .* are free"):
            faultlens.save(model, disk / "model.keras")
        assert (disk / "model.keras").read_bytes() == (tmp_path / "before.keras").read_bytes()
    finally:
        subprocess.run(["umount", disk], check=True)


# ------------------------------------------------------------------------------------------- background


def test_the_background_saves_the_instant_of_the_call(tmp_path: Path) -> None:
    model = make_model()
    for name, form in (("model.keras", None), ("model.weights.h5", None), ("ckpt", "checkpoint")):
        then = state(model)
        pending = faultlens.save(model, tmp_path / name, format=form, background=True)
        train(model)  # while it is written
        generation = pending.wait()
        assert generation is not None and generation.number == 1
        assert not equal(state(model), then)
        other = fresh()
        faultlens.load(tmp_path / name, into=other)
        assert equal(state(other), then)


def test_a_saved_model_in_the_background(model: Any, tmp_path: Path) -> None:
    pending = faultlens.save(model, tmp_path / "saved", format="saved_model", background=True)
    train(make_model())
    assert pending.wait() is not None
    assert faultlens.load(tmp_path / "saved") is not None


def test_two_saves_to_one_name_are_done_one_after_the_other(model: Any, tmp_path: Path) -> None:
    for _ in range(3):
        pending = faultlens.save(model, tmp_path / "model.keras", background=True, keep=9)
    pending.wait()
    assert [each.number for each in generations(tmp_path / "model.keras")] == [3, 2, 1]


class Deadly(keras.layers.Layer):
    deed = "nothing"

    def get_config(self) -> Any:
        if Deadly.deed == "crash":
            import ctypes

            ctypes.string_at(0)
        if Deadly.deed == "hang":
            import time

            time.sleep(600)
        return super().get_config()

    def call(self, values: Any) -> Any:
        return values


@pytest.mark.parametrize(
    ("deed", "problem"),
    [("crash", "the writing process died by SIGSEGV"), ("hang", "the writing process took more than 2 s")],
)
def test_saving_code_cannot_take_the_training_down(deed: str, problem: str, tmp_path: Path) -> None:
    model = with_layer(Deadly())
    Deadly.deed = "nothing"
    faultlens.save(model, tmp_path / "model.keras")
    before = (tmp_path / "model.keras").read_bytes()
    Deadly.deed = deed
    try:
        pending = faultlens.save(model, tmp_path / "model.keras", background=True, time_limit=2)
        with pytest.raises(faultlens.SaveError, match=problem):
            pending.wait()
    finally:
        Deadly.deed = "nothing"
    assert (tmp_path / "model.keras").read_bytes() == before
    faultlens.save(model, tmp_path / "model.keras")  # the lock is free again


def test_a_failure_that_nobody_asked_for_is_told_once(tmp_path: Path) -> None:
    model = with_layer(Failing())
    pending = faultlens.save(model, tmp_path / "model.keras", background=True)
    pending._thread.join()
    with pytest.warns(RuntimeWarning, match=r"no configuration today.*The previous save stays"):
        faultlens.save(with_layer(keras.layers.Dense(1)), tmp_path / "model.keras", background=True)


def test_the_program_ends_when_the_save_is_done(tmp_path: Path) -> None:
    script = (
        "import faultlens, keras\n"
        "model = keras.Sequential([keras.Input((1000,)), keras.layers.Dense(3000)])\n"
        "faultlens.save(model, 'model.keras', background=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert generations(tmp_path / "model.keras")[0].damages() == []
