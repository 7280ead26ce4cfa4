"""Custom ops and saved models, really built and saved, then damaged: the doctor is right about what will load."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from faultlens.records.finding import Finding

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

SAVE = """
import sys, numpy as np, tensorflow as tf
folder = sys.argv[1]
inputs = tf.keras.Input((50,))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(10)(tf.keras.layers.Dense(64, activation="relu")(inputs)))
model.compile("adam", "mse")
model.fit(np.zeros((8, 50), "f"), np.zeros((8, 10), "f"), verbose=0)
model.save(f"{folder}/model.keras")
model.save(f"{folder}/model.h5")
model.save_weights(f"{folder}/model.weights.h5")
tf.saved_model.save(model, f"{folder}/saved")
tf.train.Checkpoint(model=model, word=tf.Variable("text")).save(f"{folder}/steps/ck")
open(f"{folder}/words.txt", "w").write("one\\ntwo\\n")
words = tf.Module()
whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
lines = tf.lookup.TextFileInitializer(f"{folder}/words.txt", tf.string, whole, tf.int64, number)
words.table = tf.lookup.StaticHashTable(lines, -1)
tf.saved_model.save(words, f"{folder}/words")
open(f"{folder}/model.tflite", "wb").write(tf.lite.TFLiteConverter.from_keras_model(model).convert())
"""
# Each in a process of its own: a damaged tflite model may crash.
LOAD = """
import os, sys, tensorflow as tf
def model():
    inputs = tf.keras.Input((50,))
    return tf.keras.Model(inputs, tf.keras.layers.Dense(10)(tf.keras.layers.Dense(64, activation="relu")(inputs)))
def load(path):
    if path.endswith(".weights.h5"):
        fresh = model()
        fresh.compile("adam", "mse")
        fresh.load_weights(path)
    elif path.endswith((".keras", ".h5")):
        tf.keras.models.load_model(path, compile=False)
    elif path.endswith(".tflite"):
        tf.lite.Interpreter(model_path=path).allocate_tensors()
    elif os.path.exists(path + "/steps"):
        latest = tf.train.latest_checkpoint(path + "/steps")
        if latest is None:
            raise FileNotFoundError("no checkpoint")
        reader = tf.train.load_checkpoint(latest)
        for name in reader.get_variable_to_dtype_map():
            reader.get_tensor(name)
    else:
        tf.saved_model.load(path)
for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            load(path)
            os._exit(0)
        except BaseException as error:
            os._exit(1)
    print(path, "loads" if os.waitpid(child, 0)[1] == 0 else "fails")
"""
# Declared as in TensorFlow's headers, which take half a minute to compile.
OP = """
#include <string>
namespace tensorflow { class OpDefBuilder { public: OpDefBuilder& Input(std::string); }; }
tensorflow::OpDefBuilder& use(tensorflow::OpDefBuilder& op) { return op.Input("x: float"); }
"""
# What an op of TensorFlow 2.16 to 2.19 asks for, without its headers.
ANOTHER_TENSORFLOW = """
namespace absl { inline namespace lts_20230802 { class Status; } }
namespace tensorflow { class OpKernelContext { public: void CtxFailure(const absl::Status&); }; }
void use(tensorflow::OpKernelContext& context, const absl::Status& status) { context.CtxFailure(status); }
"""
LOAD_OP = """
import sys, tensorflow as tf
for library in sys.argv[1:]:
    try:
        tf.load_op_library(library)
        print("loaded", flush=True)
    except tf.errors.NotFoundError as error:
        print("NotFoundError:", str(error).replace("\\n", " "), flush=True)
"""


def python(code: str, *arguments: str | Path, timeout: float = 170) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def doctor(*arguments: str | Path) -> dict[str, Any]:
    """The one examination that was asked for."""
    command = [sys.executable, "-m", "faultlens", "doctor", "--python", sys.executable, "--json", "-"]
    run = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout, run.stderr
    (examination,) = json.loads(run.stdout)["examinations"]
    assert isinstance(examination, dict)
    return examination


# -------------------------------------------------------------------------------------------------- saved models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    saved = python(SAVE, folder)
    assert saved.returncode == 0, saved.stderr[-2000:]
    return folder


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])


def flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 16
    file.write_bytes(raw)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def unfinish(file: Path) -> None:
    """As a save leaves it that was killed: the data is there, what tells of it is not."""
    raw = bytearray(file.read_bytes())
    raw[40:48] = (2048).to_bytes(8, "little")
    raw[96:2048] = bytes(2048 - 96)
    file.write_bytes(raw)


DAMAGES = [
    ("model.keras", "", cut, "it is cut off"),
    ("model.keras", "", flip, "checksum"),
    ("model.keras", "", empty, "it is empty"),
    ("model.h5", "", cut, "its header says"),
    ("model.h5", "", empty, "it is empty"),
    ("model.h5", "", unfinish, "the save did not end"),
    ("model.weights.h5", "", cut, "its header says"),
    ("saved", "saved_model.pb", cut, "saved_model.pb is damaged"),
    ("saved", "saved_model.pb", Path.unlink, "saved_model.pb is missing"),
    ("saved", "variables/variables.index", flip, "checksum"),
    ("saved", "variables/variables.data-00000-of-00001", cut, "ends at byte"),
    ("saved", "variables/variables.data-00000-of-00001", flip, "checksum"),
    ("words", "assets/words.txt", Path.unlink, "words.txt is missing"),
    ("steps", "ck-1.data-00000-of-00001", cut, "ends at byte"),
    ("steps", "ck-1.data-00000-of-00001", flip, "checksum"),
    ("steps", "ck-1.data-00000-of-00001", Path.unlink, "is missing"),
    ("steps", "ck-1.index", cut, "ck-1.index is damaged"),
    ("steps", "ck-1.index", Path.unlink, "ck-1.index is missing"),
    ("model.tflite", "", cut, "it "),
]


def test_models_as_they_were_saved_are_whole(models: Path) -> None:
    names = ("model.keras", "model.h5", "model.weights.h5", "saved", "words", "steps", "steps/ck-1", "model.tflite")
    seen = doctor("--deep", "model", *(word for name in names for word in ("--model", models / name)))
    assert seen["mark"] == "ok" and "findings" not in seen, seen
    details = "\n".join(seen["details"])
    assert "saved: written by TensorFlow 2." in details and "model.keras: written by Keras 3." in details


def test_what_is_called_damaged_really_does_not_load(models: Path, tmp_path: Path) -> None:
    names = ("model.keras", "model.h5", "model.weights.h5", "saved", "words", "model.tflite")
    whole = [str(models / name) for name in names]
    broken, named = [], []
    for number, (name, inside, damage, _) in enumerate(DAMAGES):
        folder = tmp_path / str(number)
        folder.mkdir()
        copy = shutil.copytree if inside else shutil.copy
        copy(models / name, folder / name)
        damage(folder / name / inside)
        broken.append(str(folder if name == "steps" else folder / name))
        named += ["--model", folder / name]

    titles = [found["title"] for found in doctor("model", *named)["findings"]]

    assert len(titles) == len(DAMAGES), titles
    for title, (name, _, _, said) in zip(titles, DAMAGES, strict=True):
        assert title.startswith(f"{name} cannot be loaded: ") and said in title
    loaded = python(LOAD, *whole, str(models), *broken)
    verdicts = [line.rsplit(" ", 1)[1] for line in loaded.stdout.splitlines()]
    assert verdicts == ["loads"] * (len(whole) + 1) + ["fails"] * len(broken), loaded.stdout


def test_a_model_under_the_name_of_another_format_loads_once_it_is_renamed(models: Path, tmp_path: Path) -> None:
    archive, hdf5 = tmp_path / "archive.h5", tmp_path / "hdf5.keras"
    shutil.copy(models / "model.keras", archive)
    shutil.copy(models / "model.h5", hdf5)
    seen = doctor("model", "--model", archive, "--model", hdf5)
    found = [msgspec.convert(each, Finding) for each in seen["findings"]]
    assert found[0].title == "archive.h5 is a Keras archive under the name of an HDF5 file"
    assert found[1].title.startswith("hdf5.keras is an HDF5 file, which Keras 3.")
    before = python(LOAD, archive, hdf5).stdout.split()

    for each in found:
        subprocess.run(shlex.split(each.fixes[0].command), check=True)

    after = python(LOAD, archive.with_suffix(".keras"), hdf5.with_suffix(".h5")).stdout.split()
    assert before[1::2] == ["fails", "fails"] and after[1::2] == ["loads", "loads"]


# ---------------------------------------------------------------------------------------------------- custom ops


def built(source: str, library: Path, *flags: str) -> Path:
    file = library.parent / f"{library.name.partition('.so')[0].removeprefix('lib')}.cc"
    file.write_text(source)
    subprocess.run(["g++", "-w", "-shared", "-fPIC", "-O0", str(file), "-o", str(library), *flags], check=True)
    return library


def only_finding(seen: dict[str, Any]) -> Finding:
    assert len(seen["findings"]) == 1, seen
    return msgspec.convert(seen["findings"][0], Finding)


@needs_compiler
def test_an_op_with_the_other_abi_is_named_and_its_command_mends_it(tmp_path: Path) -> None:
    library = built(OP, tmp_path / "libtwice.so", "-D_GLIBCXX_USE_CXX11_ABI=0")
    broken = shutil.copy(library, tmp_path / "broken.so")
    found = only_finding(doctor("--op", library, "custom-op"))
    assert found.title.startswith("libtwice.so was built with _GLIBCXX_USE_CXX11_ABI=0, TensorFlow ")

    subprocess.run(shlex.split(found.fixes[0].command), check=True)

    seen = doctor("--op", library, "custom-op")
    assert seen["mark"] == "ok" and seen["summary"].endswith("it registers ops"), seen
    before, after = python(LOAD_OP, broken, library).stdout.splitlines()
    assert "undefined symbol" in before and after == "loaded"


@needs_compiler
def test_ops_that_do_not_load_are_named(tmp_path: Path) -> None:
    undefined = "int nowhere(int); int use() { return nowhere(1); }"
    expected = {
        built(ANOTHER_TENSORFLOW, tmp_path / "libother.so"): "built for TensorFlow 2.16 to 2.19 (absl lts_20230802)",
        built(undefined, tmp_path / "libundefined.so"): "needs nowhere(int)",
        built("int f() { return 1; }", tmp_path / "libneeds.so", *needing(tmp_path)): "libgone.so, which is not found",
    }
    for library, said in expected.items():
        found = only_finding(doctor("--op", library, "custom-op"))
        assert found.severity == "error" and said in found.title, found
    said = python(LOAD_OP, *expected).stdout.splitlines()
    assert len(said) == len(expected) and all(line.startswith("NotFoundError: ") for line in said), said


def needing(folder: Path) -> Sequence[str]:
    """Linked with a library that is gone later."""
    gone = built("int gone() { return 1; }", folder / "libgone.so", "-Wl,-soname,libgone.so")
    moved = gone.rename(folder / "moved.so")
    return ["-Wl,--no-as-needed", str(moved)]


@needs_compiler
def test_ops_that_load_are_fine(tmp_path: Path) -> None:
    """Weak names, names of Python and names that only `import tensorflow` brings may be undefined."""
    library = built(
        'extern "C" { int TF_NewOperation(); int PyErr_Occurred(); __attribute__((weak)) int nowhere(); }\n'
        "int use() { return nowhere ? nowhere() : TF_NewOperation() + PyErr_Occurred(); }",
        tmp_path / "libuses.so",
    )
    loads = "loaded" in python(LOAD_OP, library).stdout
    assert (doctor("--op", library, "custom-op")["mark"] == "ok") == loads


@needs_compiler
def test_an_op_with_a_sanitizer_needs_it_preloaded(tmp_path: Path) -> None:
    library = built("int f() { return 1; }", tmp_path / "libchecked.so", "-fsanitize=address")
    found = only_finding(doctor("--op", library, "custom-op"))
    assert "AddressSanitizer" in found.title
    died = python(LOAD_OP, library)
    assert died.returncode != 0 and "ASan runtime does not come first" in died.stderr


def test_an_installed_package_for_another_tensorflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
    installed = subprocess.run([*install, "tensorflow-text==2.18.1"], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"tensorflow-text cannot be installed: {installed.stderr[-200:]}")
    monkeypatch.setenv("PYTHONPATH", str(site))
    found = only_finding(doctor("custom-op"))
    assert found.title.startswith("tensorflow_text 2.18.1 was built for TensorFlow 2.16 to 2.19")
    assert found.severity == "error" and "install --no-deps 'tensorflow-text==2." in found.fixes[0].command
    assert "undefined symbol" in python("import tensorflow_text").stderr
