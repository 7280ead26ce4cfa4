"""Models that bring code along, as Keras and TensorFlow really write them: `faultlens verify` says so, whole or not."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    layers = [keras.layers.Dense(2), keras.layers.Lambda(lambda x: x * 2, output_shape=(2,), name="twice")]
    for name, some in (("plain", layers[:1]), ("lambda", layers)):
        model = keras.Sequential([keras.Input((3,)), *some])
        for suffix in ("keras", "h5"):
            model.save(folder / f"{name}.{suffix}")

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((), tf.string)])
        def writes(self, name):
            tf.io.write_file(name, "theirs")
            return tf.py_function(lambda each: each, [name], tf.string)

    tf.saved_model.save(Module(), str(folder / "exported"))
    (folder / "model.pkl").write_bytes(pickle.dumps(Harmful()))
    with zipfile.ZipFile(folder / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", pickle.dumps(Harmful(), protocol=2))
        archive.writestr("model/version", "3\n")
    with zipfile.ZipFile(folder / "plain.keras") as plain, zipfile.ZipFile(folder / "names_os.keras", "w") as hostile:
        for member in plain.namelist():
            data = plain.read(member)
            if member == "config.json":
                config = json.loads(data)
                config["config"]["layers"].append({"module": "os", "class_name": "system", "config": "touch theirs"})
                data = json.dumps(config).encode()
            hostile.writestr(member, data)
    return folder


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


def verify(*words: str | Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, what the JSON has of the only save, and what was said on the screen."""
    with tempfile.NamedTemporaryFile(suffix=".json") as found:
        command = [sys.executable, "-m", "faultlens", "verify", "--json", found.name, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (save,) = json.loads(Path(found.name).read_text())["saves"]
    return done.returncode, save["generations"][0], " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "lambda.keras": "its layer twice carries marshalled Python code",
        "lambda.h5": "its layer twice carries marshalled Python code",
        "names_os.keras": "it names system of the module os",
        "exported": "its graph reads or writes files when it is called (WriteFile)",
        "model.pkl": f"it is a pickle: loading it calls {os.system.__module__}.system",
        "model.pt": f"it is a pickle: loading it calls {os.system.__module__}.system",
    }.items(),
)
def test_code_is_a_finding_and_no_damage(models: Path, name: str, words: str) -> None:
    status, found, said = verify(models / name)
    assert status == 0 and found["whole"], said
    assert any(each.startswith(words) for each in found["code"]), found
    assert "It carries code that runs when it is loaded or called: load it only if you trust who wrote it." in said


def test_python_functions_of_a_graph(models: Path) -> None:
    _, found, _ = verify(models / "exported")
    assert any("calls Python functions of the program (EagerPyFunc)" in each for each in found["code"])


@pytest.mark.parametrize("name", ["plain.keras", "plain.h5"])
def test_a_model_without_code_is_not_accused(models: Path, name: str) -> None:
    status, found, said = verify(models / name)
    assert status == 0 and found["code"] == [] and "carries code" not in said


def test_loading_one_does_not_make_it_harmless(models: Path) -> None:
    status, found, said = verify("--load", models / "exported")
    assert status == 0 and found["loaded"] and "It carries code" in said
    status, _, said = verify("--load", models / "lambda.keras")
    assert status == 2 and "It carries code" in said  # Keras refuses to load it
    status, _, said = verify("--load", models / "model.pkl")
    assert status == 2 and "loads models of Keras and TensorFlow only" in said


def test_a_pickle_that_is_cut_off(models: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pkl"
    cut.write_bytes((models / "model.pkl").read_bytes()[:-2])
    status, found, _ = verify(cut)
    assert status == 1 and not found["whole"]
