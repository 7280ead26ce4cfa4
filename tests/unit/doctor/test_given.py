"""What is said of custom ops and saved models, over facts that were made up or recorded."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from faultlens.doctor.checks.given.custom_op import CustomOp, _installed
from faultlens.doctor.checks.given.model import BEFORE, Model
from faultlens.errors import FaultlensError
from faultlens.records.crash import CgroupState, MachineState
from faultlens.records.finding import Finding
from faultlens.system.binary import Binary
from faultlens.system.loader import Fault
from faultlens.target_env.interpreter import Interpreter
from faultlens.target_env.op_library import Interface, Loading, OpLibrary, read_op
from faultlens.target_env.target import Options, TargetEnvironment
from faultlens.text.sizes import GIB
from made_environment import install, site_packages, tensorflow
from made_environment import target as target_in
from made_libraries import write_library
from saved_files import hdf5, keras_archive, write_checkpoint, write_saved_model

PYTHON = Interpreter(executable="/venv/bin/python", version=(3, 11, 7), prefix="/venv", base_prefix="/usr", path=())
INSTALLED = Interface("2.21.0", Path("/venv/tensorflow"), "lts_20250814", 1)
# Recorded: names that real ops lacked.
OLD_STRINGS = ("_ZN10tensorflow12OpDefBuilder5InputESs", "_ZN10tensorflow12OpDefBuilder6OutputESs")
OTHER_ABSL = (
    "_ZN10tensorflow12OpDefBuilder10SetShapeFnESt8functionIFN4absl12lts_202308026StatusE"
    "PNS_15shape_inference16InferenceContextEEE",
)
GONE = ("_ZN3tsl8internal15LogMessageFatalC1EPKci", "_ZN3tsl8internal15LogMessageFatalD1Ev")


def op(path: str = "libmy_op.so", absl: tuple[str, ...] = ("lts_20250814",), needed: tuple[str, ...] = ()) -> OpLibrary:
    return OpLibrary(Path(path), needed, (), absl, True)


def judged(loading: Loading, installed: Interface = INSTALLED, **variables: str) -> list[Finding]:
    return list(CustomOp()._judge(loading, installed, TargetEnvironment(PYTHON, variables=variables)))


# -------------------------------------------------------------------------------------------------- custom ops


def test_an_op_that_lacks_nothing_is_fine() -> None:
    assert judged(Loading(op())) == []


def test_the_other_cxx11_abi_is_named_both_ways() -> None:
    (finding,) = judged(Loading(op(), missing=OLD_STRINGS))
    assert finding.title == "libmy_op.so was built with _GLIBCXX_USE_CXX11_ABI=0, TensorFlow 2.21.0 with 1"
    new = ("_ZN10tensorflow12OpDefBuilder5InputENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",)
    (finding,) = judged(Loading(op(), missing=new), INSTALLED._replace(version="2.8.0", cxx11=0))
    assert finding.title == "libmy_op.so was built with _GLIBCXX_USE_CXX11_ABI=1, TensorFlow 2.8.0 with 0"
    assert "-D_GLIBCXX_USE_CXX11_ABI=0" in finding.fixes[0].command


def test_the_release_is_told_by_abseil() -> None:
    (finding,) = judged(Loading(op(absl=("lts_20230802",)), missing=OTHER_ABSL))
    assert finding.severity == "error"
    assert finding.title == (
        "libmy_op.so was built for TensorFlow 2.16 to 2.19 (absl lts_20230802); the installed 2.21.0 has lts_20250814"
    )
    assert finding.causes == ("custom-op-abi-mismatch",)
    assert ("TensorFlow 2.21.0 has absl lts_20250814", "libtensorflow_framework.so.2") in [
        (each.fact, each.source) for each in finding.evidence
    ]


def test_functions_that_are_gone_are_named() -> None:
    (finding,) = judged(Loading(op(), missing=GONE))
    assert finding.title == (
        "libmy_op.so was built for another TensorFlow: 2.21.0 has no "
        "tsl::internal::LogMessageFatal::LogMessageFatal(char const*, int) (and 1 more)"
    )


def test_an_op_that_forgot_to_link() -> None:
    (finding,) = judged(Loading(op(), missing=("TF_NewOperation",), elsewhere=("TF_NewOperation",)))
    assert finding.title == "libmy_op.so uses TF_NewOperation, and is not linked with libtensorflow_cc.so.2"
    assert finding.fixes[0].command.endswith("-l:libtensorflow_cc.so.2")


def test_an_op_for_cuda_on_a_tensorflow_without() -> None:
    (finding,) = judged(Loading(op(), missing=("__cudaRegisterFatBinary",)))
    assert finding.title == "libmy_op.so needs the CUDA runtime, which TensorFlow 2.21.0 does not bring"


def test_libraries_that_are_not_found() -> None:
    fault = Fault("missing", "/x/libmy_op.so", "libcudart.so.12")
    (finding,) = judged(Loading(op(), faults=(fault,)))
    assert finding.title == "libmy_op.so cannot be loaded: libmy_op.so needs libcudart.so.12, which is not found"
    fault = Fault("version", "/x/libmy_op.so", "libstdc++.so.6", ("GLIBCXX_3.4.32",), "/usr/lib/libstdc++.so.6")
    (finding,) = judged(Loading(op(), faults=(fault,)))
    assert "needs GLIBCXX_3.4.32 of libstdc++.so.6, which /usr/lib/libstdc++.so.6 lacks" in finding.title


def test_a_sanitizer_must_be_preloaded() -> None:
    asked = Loading(op(needed=("libasan.so.8",)))
    (finding,) = judged(asked)
    assert finding.title == "libmy_op.so was built with AddressSanitizer, whose runtime is not preloaded"
    assert judged(asked, LD_PRELOAD="/usr/lib/libasan.so.8 /usr/lib/libstdc++.so.6") == []


def test_the_command_finds_the_source_beside_the_library(tmp_path: Path) -> None:
    (tmp_path / "my_op.cc").touch()
    (finding,) = judged(Loading(op(str(tmp_path / "libmy_op.so")), missing=GONE))
    words = shlex.split(finding.fixes[0].command)
    assert words[:5] == ["g++", "-shared", "-fPIC", "-O2", str(tmp_path / "my_op.cc")]
    assert "-I/venv/tensorflow/include" in words and "-l:libtensorflow_framework.so.2" in words


def test_of_a_package_only_the_names_of_tensorflow_count() -> None:
    check, unknown = CustomOp(), TargetEnvironment(PYTHON)
    harmless = [Loading(op(), missing=("__cudaRegisterFatBinary", "ffmpeg_open"))]
    assert list(check._judge_package("tensorflow_addons", harmless, INSTALLED, unknown)) == []
    broken = [Loading(op(absl=("lts_20230802",)), missing=OTHER_ABSL), *harmless]
    (finding,) = check._judge_package("tensorflow_text", broken, INSTALLED, unknown)
    assert finding.title.startswith("tensorflow_text was built for TensorFlow 2.16 to 2.19")
    assert finding.evidence[0].fact == "1 of its 2 libraries would not be loaded"
    assert finding.fixes[0].command.endswith("install --no-deps 'tensorflow-text==2.21.*'")
    assert finding.repair is not None
    assert finding.repair.undo[0][-3:] == ("uninstall", "--yes", "tensorflow-text")
    (finding,) = check._judge_package("tensorflow_io", broken, INSTALLED, unknown)
    assert finding.severity == "warning"


def test_the_repair_brings_the_earlier_release_back(tmp_path: Path) -> None:
    install(site_packages(tmp_path), "tensorflow-text", "2.17.0")
    broken = [Loading(op(), missing=GONE)]
    (finding,) = CustomOp()._judge_package("tensorflow_text", broken, INSTALLED, target_in(tmp_path))
    assert finding.repair is not None
    assert finding.repair.commands[0][-1] == "tensorflow-text==2.21.*"
    assert finding.repair.undo[0][-1] == "tensorflow-text==2.17.0"


def test_a_tensorflow_behind_another_is_no_custom_op(tmp_path: Path) -> None:
    own, front = site_packages(tmp_path), tmp_path / "front" / "site-packages"
    linked = ["libtensorflow_framework.so.2"]
    for folder in (own, front):
        tensorflow(folder)
        install(folder, "my-ops", "1.0", files={"my_ops/__init__.py": b""})
        for library in ("tensorflow/python/_pywrap.so", "my_ops/_ops.so"):
            write_library(folder / library, needed=linked)
    write_library(own / "alone/_ops.so", needed=linked)
    assert _installed(target_in(tmp_path, before=[front])) == {
        "my_ops": [front / "my_ops/_ops.so"],
        "alone": [own / "alone/_ops.so"],
    }


def test_ops_that_are_not_there_or_no_libraries(tmp_path: Path) -> None:
    check = CustomOp()
    os.mkfifo(tmp_path / "pipe.so")
    for path, said in (
        (tmp_path / "gone.so", "There is no file"),
        (tmp_path, "is not a file"),
        (tmp_path / "pipe.so", "is not a file"),
        (Path(""), "is not a file"),
    ):
        with pytest.raises(FaultlensError, match=said):
            check.examine(TargetEnvironment(PYTHON, Options(ops=(path,))))
    text = tmp_path / "text.so"
    text.write_text("not ELF")
    _, (finding, other) = check._read([text, tmp_path])
    assert finding.title == "text.so cannot be loaded: it does not begin with the ELF magic"
    assert other.title.endswith("Is a directory") or "cannot be loaded" in other.title
    assert check.examine(TargetEnvironment(PYTHON)).summary == "none given (--op)"


def test_what_a_library_imports_is_read_without_the_rest() -> None:
    with open("/proc/self/maps") as maps:
        libraries = {words[5] for line in maps if len(words := line.split()) > 5 and ".so" in words[5]}
    assert libraries
    for path in libraries:
        with Binary(path) as binary:
            symbols = list(binary.symbols())
            assert {each.name for each in binary.imports()} == {each.name for each in symbols if not each.defined}
            wants = read_op(Path(path)).wants
            assert set(wants) <= {each.name for each in symbols if not each.defined}


# ------------------------------------------------------------------------------------------------- saved models


def target(*models: Path, memory: int = 64 * GIB, limit: int | None = None, deep: bool = False) -> TargetEnvironment:
    return TargetEnvironment(
        PYTHON,
        Options(models=models, deep=deep),
        machine=MachineState(memory_available=memory),
        cgroup=CgroupState(version=2, path="/sys/fs/cgroup/job", memory_limit=limit),
    )


def test_without_a_model_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert Model().examine(target()).summary == "none given (--model)"
    with pytest.raises(FaultlensError, match="no saved model"):
        Model().examine(target(tmp_path / "nothing"))
    for name in ("frozen.pb", "model.weights.json"):
        (tmp_path / name).write_bytes(b"{}")
        with pytest.raises(FaultlensError, match="is not in a format that faultlens knows"):
            Model().examine(target(tmp_path / name))


def test_whole_models_are_fine(tmp_path: Path) -> None:
    archive = tmp_path / "model.keras"
    archive.write_bytes(keras_archive())
    seen = Model().examine(target(archive))
    assert (seen.mark, seen.summary) == (
        "ok",
        "model.keras: Keras archive, whole, 4.5 KiB, written by Keras 3.15.1, checksums right",
    )
    write_saved_model(tmp_path / "saved")
    both = Model().examine(target(archive, tmp_path / "saved"))
    assert both.mark == "ok"
    assert both.summary.startswith("2 saved models are whole")
    assert "saved: written by TensorFlow 2.21.0" in both.details


def test_whole_is_said_only_of_what_was_compared(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck", bytes(4 << 20))
    (tmp_path / "model.h5").write_bytes(hdf5())
    (tmp_path / "model.keras").write_bytes(keras_archive())

    def summary(*names: str, deep: bool = False) -> str:
        return Model().examine(target(*(tmp_path / name for name in names), deep=deep)).summary

    assert summary("ck") == "ck: checkpoint, complete, 4 MiB (checksums: --deep)"
    assert summary("ck", deep=True) == "ck: checkpoint, whole, 4 MiB, checksums right"
    assert summary("model.h5", deep=True) == summary("model.h5") == "model.h5: HDF5 file, complete, 4.1 KiB"
    assert summary("ck", "model.keras").startswith("2 saved models are complete, ")
    assert summary("ck", "model.keras", deep=True).startswith("2 saved models are whole, ")


def with_keras(tmp_path: Path, model: Path, **versions: str) -> list[Finding]:
    for name, version in versions.items():
        install(site_packages(tmp_path), name.replace("_", "-"), version)
    seen = replace(target_in(tmp_path), options=Options(models=(model,)), machine=MachineState(), cgroup=None)
    return list(Model().examine(seen).findings)


@pytest.mark.parametrize(
    ("kerases", "refuses"),
    [({"keras": "2.15.0"}, False), ({"keras": "3.15.1"}, True), ({"keras": "3.15.1", "tf_keras": "2.16.0"}, False)],
)
def test_an_hdf5_file_that_is_named_as_an_archive(tmp_path: Path, kerases: dict[str, str], refuses: bool) -> None:
    model = tmp_path / "my model.keras"
    model.write_bytes(hdf5(keras_version="2.12.0"))
    found = with_keras(tmp_path, model, **kerases)
    assert [each.title for each in found] == refuses * [
        "my model.keras is an HDF5 file, which Keras 3.15.1 does not read under this name"
    ]
    for each in found:
        assert shlex.split(each.fixes[0].command) == ["mv", "-n", str(model), str(tmp_path / "my model.h5")]


@pytest.mark.parametrize("version", ["2.15.0", "3.15.1"])
def test_an_archive_that_is_named_as_an_hdf5_file(tmp_path: Path, version: str) -> None:
    model = tmp_path / "model.h5"
    model.write_bytes(keras_archive())
    (found,) = with_keras(tmp_path, model, keras=version)
    assert (found.severity, found.title) == ("error", "model.h5 is a Keras archive under the name of an HDF5 file")
    assert found.fixes[0].command.endswith("/model.keras")


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
@pytest.mark.parametrize("installed", ["2.15.0", "3.0.5"])
@pytest.mark.parametrize("word", ["batch_shape", "batch_input_shape"])
def test_a_model_of_keras_3_under_keras_2(tmp_path: Path, name: str, installed: str, word: str) -> None:
    model = tmp_path / name
    archive = keras_archive(layers=[{word: [None, 8]}])
    model.write_bytes(
        archive if name == "model.keras" else hdf5(keras_version="3.15.1", model_config=f'{{"{word}": []}}')
    )
    found = with_keras(tmp_path, model, keras=installed)
    assert [(each.severity, each.title) for each in found] == (word == "batch_shape" and installed == "2.15.0") * [
        ("error", f"{name} was saved by Keras 3.15.1; the installed Keras 2.15.0 cannot load it")
    ]


def test_an_asset_that_only_some_function_reads(tmp_path: Path) -> None:
    write_saved_model(tmp_path / "m", asset="words.txt")
    (finding,) = Model().examine(target(tmp_path / "m")).findings
    assert finding.severity == "warning"
    assert finding.title == "m lacks its asset words.txt: what reads it will fail"
    write_saved_model(tmp_path / "m", table="words.txt")
    (finding,) = Model().examine(target(tmp_path / "m")).findings
    assert (finding.severity, finding.title) == ("error", "m cannot be loaded: words.txt is missing")


def test_a_damaged_model_cannot_be_loaded(tmp_path: Path) -> None:
    archive = tmp_path / "model.keras"
    archive.write_bytes(keras_archive()[:3000])
    seen = Model().examine(target(archive))
    assert seen.mark == "error"
    assert seen.summary == (
        "model.keras cannot be loaded: it is cut off: the directory at the end of the archive is missing"
    )
    (finding,) = seen.findings
    assert finding.causes == ("corrupt-saved-model",)
    assert finding.fixes[0].command == f"ls -lt {tmp_path}"


def test_a_model_that_may_not_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.keras")
    (finding,) = Model().examine(target(tmp_path / "model.keras")).findings
    assert "is not a regular file" in finding.title


def test_a_model_that_is_too_large_for_the_memory(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck", bytes(1 << 20))
    (tmp_path / "large.h5").write_bytes(hdf5())
    os.truncate(tmp_path / "large.h5", 3 * GIB)
    enough, tight = target(tmp_path / "large.h5", limit=8 * GIB), target(tmp_path / "large.h5", limit=4 * GIB)
    assert Model().examine(enough).mark == "ok"
    (finding,) = Model().examine(tight).findings
    assert finding.severity == "warning"
    assert finding.title == "loading large.h5 needs about 6.8 GiB, the control group allows 4 GiB"
    assert finding.causes == ("out-of-memory-kill",)
    (finding,) = Model().examine(target(tmp_path / "large.h5", memory=5 * GIB)).findings
    assert finding.title == "loading large.h5 needs about 6.8 GiB, 5 GiB are available"
    # Too little for TensorFlow itself is another check's business.
    assert Model().examine(target(tmp_path / "ck", limit=BEFORE // 2)).mark == "ok"


def test_a_graph_for_a_newer_tensorflow(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    header = site / "tensorflow/include/tensorflow/core/public/version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define TF_GRAPH_DEF_VERSION_MIN_PRODUCER 0\n#define TF_GRAPH_DEF_VERSION 2474  // Updated\n")
    (site / "tensorflow_cpu-2.21.0.dist-info").mkdir()
    (site / "tensorflow/__init__.py").touch()
    seen = replace(
        target(tmp_path / "m"),
        interpreter=PYTHON.__class__(
            executable="/venv/bin/python", version=(3, 11, 7), prefix="/venv", base_prefix="/usr", path=(str(site),)
        ),
    )
    write_saved_model(tmp_path / "m", "2.40.0", min_consumer=2475)
    (finding,) = Model().examine(seen).findings
    assert finding.title == "m was written for a newer TensorFlow than the installed 2.21.0"
    write_saved_model(tmp_path / "m", "2.40.0", min_consumer=2474)
    assert Model().examine(seen).findings == ()
