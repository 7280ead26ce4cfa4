"""What the doctor says of another CPU is what really happens on it: qemu-user is that CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs qemu-x86_64 (qemu-user)")
with_tensorflow = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

MODULE = """
#include <Python.h>
static volatile float scale = 0.5f;
extern "C" { float table[64]; }  // visible, or the compiler would drop it
CHOSEN static int fill() {
    float by = scale;
    for (int i = 0; i < 64; i++) table[i] = by * i;
    return 1;
}
static int filled = WHEN fill() : 0;
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast"};
PyMODINIT_FUNC PyInit_fast() { return filled >= 0 ? PyModule_Create(&module) : nullptr; }
"""
ALWAYS = MODULE.replace("CHOSEN", "").replace("WHEN", "true ?")
IF_THE_CPU_CAN = MODULE.replace("CHOSEN", '__attribute__((target("avx2"), noinline))').replace(
    "WHEN", '__builtin_cpu_supports("avx2") ?'
)


def doctor(python: str | Path, cpu: str) -> dict[str, Any]:
    """What the check of the CPU says."""
    command = [sys.executable, "-m", "faultlens", "doctor", "--python", str(python), "--cpu", cpu, "--json", "-", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    (examination,) = json.loads(done.stdout)["examinations"]
    assert done.returncode == (1 if examination["mark"] == "error" else 0), done.stderr
    return dict(examination)


def ending(python: str | Path, cpu: str, code: str) -> int:
    command = ["qemu-x86_64", "-cpu", cpu, str(python), "-c", code]
    chosen = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}  # for the CPU here
    return subprocess.run(command, env=chosen, capture_output=True, timeout=380).returncode


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def build(environment: Path, source: str, *options: str) -> None:
    include = sysconfig.get_path("include")
    if not shutil.which("g++") or not (Path(include) / "Python.h").exists():
        pytest.skip("needs g++ and Python's headers")
    (site,) = environment.glob("lib/python3.*/site-packages")
    library = site / f"fast{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = ["g++", "-O3", "-shared", "-fPIC", f"-I{include}", "-x", "c++", "-", "-o", str(library), *options]
    subprocess.run(command, input=source, text=True, check=True)


def test_an_extension_for_a_newer_cpu_dies_and_is_mended_by_building_it_again(environment: Path) -> None:
    python = environment / "bin" / "python"
    build(environment, ALWAYS, "-mavx512f")
    said = doctor(python, "haswell")
    assert said["mark"] == "error" and said["summary"].startswith("fast needs AVX512F when loaded")
    assert ending(python, "Haswell", "import fast") == -signal.SIGILL

    (march,) = {word for fix in said["findings"][0]["fixes"] for word in fix["command"].split() if "-march" in word}
    build(environment, ALWAYS, march)
    assert doctor(python, "haswell")["mark"] == "ok"
    assert ending(python, "Haswell", "import fast") == 0


def test_an_extension_that_asks_the_cpu_first_is_fine(environment: Path) -> None:
    python = environment / "bin" / "python"
    build(environment, IF_THE_CPU_CAN)
    assert doctor(python, "nehalem")["mark"] == "ok"
    assert ending(python, "Nehalem", "import fast") == 0


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="needs NumPy")
@pytest.mark.parametrize("cpu", ["Conroe", "Penryn", "Nehalem"])
def test_numpy_works_where_the_doctor_says_so(cpu: str) -> None:
    titles = " ".join(finding["title"] for finding in doctor(sys.executable, cpu).get("findings", ()))
    works = ending(sys.executable, cpu, "import numpy") == 0
    assert works == ("numpy" not in titles), titles


class TestTensorFlow:
    pytestmark = with_tensorflow

    def test_it_dies_on_a_cpu_without_avx(self) -> None:
        said = doctor(sys.executable, "nehalem")
        assert said["mark"] == "error"
        (finding,) = (each for each in said["findings"] if each["title"].startswith("TensorFlow"))
        assert "needs AVX when loaded" in finding["title"] and finding["causes"] == ["illegal-instruction"]
        assert ending(sys.executable, "Nehalem", "import tensorflow") == -signal.SIGILL

    @pytest.mark.timeout(400)  # half a minute on an idle machine
    def test_it_works_on_a_cpu_with_avx_and_without_avx2(self) -> None:
        assert doctor(sys.executable, "sandybridge")["mark"] == "ok"
        assert ending(sys.executable, "SandyBridge", "import tensorflow") == 0


def test_under_an_emulator_the_doctor_says_that_it_cannot_tell(environment: Path) -> None:
    code = (
        "from faultlens.doctor.checks.cpu.cpu import CpuFeatures\n"
        "from faultlens.target_env.target import Options, meet\n"
        f"seen = CpuFeatures().examine(meet(Options(python={str(environment)!r})))\n"
        "print(seen.mark, seen.summary)"
    )
    command = ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("skipped qemu-x86_64 stands in for the CPU"), done.stderr
