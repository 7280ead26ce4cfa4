"""What the doctor says of GPUs and of XLA's flags is what really happens."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from faultlens.doctor.checks.gpu.cuda import Cuda, surroundings
from faultlens.system.gpus import DeviceFile, Gpus
from faultlens.target_env.cuda_libraries import driver_library
from faultlens.target_env.target import Options, TargetEnvironment, meet
from faultlens.target_env.tensorflow_build import read_build
from faultlens.target_env.xla_flags import known_names

needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
needs_gpu = pytest.mark.skipif(
    not (Path("/proc/driver/nvidia/version").exists() and Path("/dev/nvidia0").exists()), reason="needs an NVIDIA GPU"
)


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "TF_XLA_FLAGS")}
    return {**inherited, **variables}


def doctor(check: str, variables: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "faultlens", "doctor", "--python", sys.executable, "--json", "-", check]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=variables)
    assert done.stdout, done.stderr
    (examination,) = json.loads(done.stdout)["examinations"]
    return dict(examination)


def applied(command: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment after typing the fix into a shell."""
    done = subprocess.run(
        ["sh", "-c", f"{command}; exec env -0"], capture_output=True, check=True, env=variables, timeout=20
    )
    return dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)


@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
class TestFlagsOfXla:
    ONE_OP = "import tensorflow as tf; tf.constant(1) + 1; print('done')"
    COMPILED = (
        "import tensorflow as tf; tf.function(lambda a: a * 2, jit_compile=True)(tf.constant(1.0)); print('done')"
    )

    @staticmethod
    def ended(program: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables)

    def test_flag_that_xla_does_not_know(self) -> None:
        broken = environment(XLA_FLAGS="--xla_cpu_enable_fast_math=false --xla_cpu_enable_fast_mathematics=true")
        died = self.ended(self.COMPILED, broken)
        assert died.returncode != 0 and "done" not in died.stdout
        assert "in XLA_FLAGS: --xla_cpu_enable_fast_mathematics" in died.stderr
        found = doctor("gpu-variables", broken)
        assert found["mark"] == "warning"
        assert "--xla_cpu_enable_fast_mathematics=true is not a flag of this TensorFlow" in found["summary"]
        (finding,) = found["findings"]
        mended = applied(finding["fixes"][0]["command"], broken)
        assert mended["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
        assert "done" in self.ended(self.COMPILED, mended).stdout
        assert doctor("gpu-variables", mended)["mark"] == "ok"

    def test_flag_of_the_other_variable(self) -> None:
        broken = environment(TF_XLA_FLAGS="--xla_cpu_enable_fast_math=false")
        died = self.ended(self.ONE_OP, broken)
        assert died.returncode != 0 and "done" not in died.stdout
        found = doctor("gpu-variables", broken)
        assert found["mark"] == "error"
        assert "is a flag of XLA_FLAGS; the first op ends the program" in found["summary"]
        mended = applied(found["findings"][0]["fixes"][0]["command"], broken)
        assert "done" in self.ended(self.ONE_OP, mended).stdout

    @pytest.mark.parametrize(
        ("flag", "program"),
        [
            ("TF_XLA_FLAGS=--tf_xla_auto_jit=no-number", ONE_OP),
            ("XLA_FLAGS=--xla_cpu_enable_fast_math=maybe", COMPILED),
        ],
    )
    def test_all_flags_that_xla_lists_are_known(self, flag: str, program: str) -> None:
        """It lists them when a value cannot be read; the log cuts the list somewhere in a name."""
        variable, _, value = flag.partition("=")
        said = self.ended(program, environment(**{variable: value})).stderr
        listed = re.findall(r"^\s+--(\w+)=.*\t\w+\t", said, re.MULTILINE)
        if len(listed) < 20:
            pytest.skip("this TensorFlow does not list its flags")
        target = meet(Options(python=sys.executable))
        knows = known_names(target.tensorflow.folder) if target.tensorflow else None
        assert knows is not None
        assert [name for name in listed if not knows(name)] == []
        assert not knows("xla_no_such_flag")


# -------------------------------------------------------------------------------- which libraries would be found

BUILD_INFO = (
    "build_info = collections.OrderedDict([('cuda_compute_capabilities', ['compute_90']), ('cuda_version', '12.5.1'),"
    " ('cudnn_version', '9'), ('is_cuda_build', True)])\n"
)
METADATA = 'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"\n'
OPENER = 'const char *complaint(void) { return "Could not load dynamic library \'"; }'
WHEELS = {
    "cuda_runtime": ["libcudart.so.12"],
    "cublas": ["libcublas.so.12", "libcublasLt.so.12"],
    "cufft": ["libcufft.so.11"],
    "cusolver": ["libcusolver.so.11"],
    "cusparse": ["libcusparse.so.12"],
    "cudnn": ["libcudnn.so.9"],
}
DRIVEN = Gpus(devices=(DeviceFile("/dev/nvidia0", True),), kernel_module="580.159.04")


def compiled(path: Path, source: str = "", *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{path.name}", *options, "-o", str(path)]
    subprocess.run(command, input=source.encode(), check=True)
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """An environment with a GPU build of TensorFlow as far as the loader is concerned, and the nvidia-* wheels.

    As in TensorFlow 2.21.0 the RUNPATH of the library that opens them leaves out one of their folders."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    searched = ":".join(f"$ORIGIN/../nvidia/{name}/lib" for name in WHEELS if name != "cusolver")
    opener = site / "tensorflow" / "libtensorflow_framework.so.2"
    compiled(opener, OPENER, "-Wl,--enable-new-dtags", f"-Wl,-rpath,{searched}")
    for name, libraries in WHEELS.items():
        for library in libraries:
            compiled(site / "nvidia" / name / "lib" / library)
    (site / "tensorflow/python/platform").mkdir(parents=True)
    (site / "tensorflow/python/platform/build_info.py").write_text(BUILD_INFO)
    for name, version in (("tensorflow", "2.21.0"), ("nvidia_cudnn_cu12", "9.3.0.75")):
        (site / f"{name}-{version}.dist-info").mkdir()
        (site / f"{name}-{version}.dist-info/METADATA").write_text(METADATA)
    return tmp_path / "env"


def target_with_gpu(wheel: Path, variables: Mapping[str, str]) -> TargetEnvironment:
    own = {name: value for name, value in variables.items() if name != "PYTHONPATH"}
    target = meet(Options(python=str(wheel)), own)
    vars(target)["gpus"] = DRIVEN  # the one part of the machine that may not be here
    return target


@needs_compiler
class TestCudaLibraries:
    def test_library_in_a_folder_that_is_not_searched(self, wheel: Path) -> None:
        variables = environment()
        variables.pop("LD_LIBRARY_PATH", None)
        seen = Cuda().examine(target_with_gpu(wheel, variables))
        assert seen.summary == "the GPU will not be used: TensorFlow finds no libcusolver.so.11"
        mended = applied(seen.findings[0].fixes[0].command, variables)
        assert "nvidia/cusolver/lib" in mended["LD_LIBRARY_PATH"]
        seen = Cuda().examine(target_with_gpu(wheel, mended))
        assert seen.mark == "ok", seen
        assert any(detail.endswith("/nvidia/cudnn/lib/libcudnn.so.9") for detail in seen.details)

    def test_the_loader_agrees(self, wheel: Path) -> None:
        """What was followed is what dlopen does, when the same library asks for it."""
        (opener,) = wheel.glob("lib/python3*/site-packages/tensorflow/libtensorflow_framework.so.2")
        opens = "#include <dlfcn.h>\nint opens(const char *name) { return dlopen(name, RTLD_LAZY) != 0; }\n"
        compiled(opener, opens + OPENER, "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/../nvidia/cudnn/lib", "-ldl")
        names = [library for libraries in WHEELS.values() for library in libraries]
        program = (
            f"import ctypes; library = ctypes.CDLL({str(opener)!r})\n"
            f"print([name for name in {names!r} if library.opens(name.encode())])"
        )
        variables = environment(LD_LIBRARY_PATH=str(opener.parents[1] / "nvidia/cufft/lib"))
        said = subprocess.run([wheel / "bin/python", "-c", program], capture_output=True, text=True, env=variables)
        target = target_with_gpu(wheel, variables)
        build = read_build(target.tensorflow) if target.tensorflow else None
        assert build is not None
        libraries = surroundings(target, build).libraries
        assert libraries is not None
        assert {"libcudnn.so.9", "libcufft.so.11"} <= set(libraries.found)  # the system may have more
        assert said.stdout.strip() == str([name for name in names if name in libraries.found]), said.stderr

    def test_older_cudnn_of_the_system_comes_first(self, wheel: Path, tmp_path: Path) -> None:
        system = tmp_path / "cuda" / "lib64"
        compiled(system / "libcudnn.so.9.1.0")
        (system / "libcudnn.so.9").symlink_to("libcudnn.so.9.1.0")
        (cusolver,) = wheel.glob("lib/python3*/site-packages/nvidia/cusolver/lib")
        seen = Cuda().examine(target_with_gpu(wheel, environment(LD_LIBRARY_PATH=f"{cusolver}")))
        assert seen.mark == "ok"
        seen = Cuda().examine(target_with_gpu(wheel, environment(LD_LIBRARY_PATH=f"{system}:{cusolver}")))
        assert seen.mark == "warning"
        assert "cuDNN 9.1.0 is older than TensorFlow 2.21.0 asks for (9.3.0)" in seen.summary

    def test_library_of_the_driver(self, tmp_path: Path) -> None:
        compiled(tmp_path / "compat" / "libcuda.so.580.95.05")
        (tmp_path / "compat" / "libcuda.so.1").symlink_to("libcuda.so.580.95.05")
        (tmp_path / "stubs").mkdir()
        (tmp_path / "stubs" / "libcuda.so").symlink_to("../compat/libcuda.so.580.95.05")
        found = driver_library(meet(Options(python=sys.executable), environment(LD_LIBRARY_PATH=f"{tmp_path}/compat")))
        assert found == str(tmp_path / "compat" / "libcuda.so.580.95.05")
        # A folder that has the name for linking only is passed over, as was recorded.
        found = driver_library(meet(Options(python=sys.executable), environment(LD_LIBRARY_PATH=f"{tmp_path}/stubs")))
        assert found is None or str(tmp_path) not in found


# --------------------------------------------------------------------------------------------- on a real GPU

COUNT = """
import ctypes
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
print(error, count.value)
"""


def cuda_says(variables: Mapping[str, str]) -> tuple[int, int]:
    """The error of CUDA, and how many GPUs it gives to a program."""
    said = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, env=variables, check=True)
    error, count = map(int, said.stdout.split())
    return error, count


@needs_gpu
class TestRealGpu:
    def test_driver_and_library_fit(self) -> None:
        variables = environment()
        variables.pop("CUDA_VISIBLE_DEVICES", None)
        error, count = cuda_says(variables)
        found = doctor("gpus", variables)
        assert (found["mark"] in ("ok", "warning")) == (error == 0 and count > 0), found

    @pytest.mark.parametrize(
        "value", ["0", "7000", "0,7000", "7000,0", "0,0", "GPU-deadbeef", '"0"', "abc", "0abc", "all"]
    )
    def test_lists_of_gpus(self, value: str) -> None:
        variables = environment(CUDA_VISIBLE_DEVICES=value)
        error, count = cuda_says(variables)
        found = doctor("gpu-variables", variables)
        complete = error == 0 and count == len(value.split(","))
        assert (found["mark"] == "ok") == complete, (found, error, count)
        for finding in found.get("findings", ()):
            assert cuda_says(applied(finding["fixes"][0]["command"], variables))[0] == 0

    def test_library_for_another_kernel_module(self) -> None:
        folders = [path.parent for path in Path("/usr/local").glob("cuda*/compat/libcuda.so.1")]
        if not folders:
            pytest.skip("needs the compat folder of a CUDA toolkit")
        variables = environment(LD_LIBRARY_PATH=str(folders[0]))
        error, _ = cuda_says(variables)
        found = doctor("gpus", variables)
        assert (found["mark"] == "error") == (error != 0), (found, error)
        if error:
            assert cuda_says(applied(found["findings"][0]["fixes"][0]["command"], variables))[0] == 0
