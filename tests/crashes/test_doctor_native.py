"""Native libraries: what the doctor foresees is what the loader really does, and the advice really helps."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from faultlens.system.loader import Process, this_system
from faultlens.system.machine import machine_state

needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
needs_tensorflow = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]
CHECKS = ("libraries", "shadowing", "preload", "duplicates")
SITE = Path(sysconfig.get_path("platlib"))
SHOW_MAPS = "\nprint('LOADED')\nprint(open('/proc/self/maps').read())"


def variables(**more: str) -> dict[str, str]:
    left_out = ("LD_LIBRARY_PATH", "LD_PRELOAD", "KMP_DUPLICATE_LIB_OK")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", **more}


def doctor(python: str | Path = sys.executable, *options: str, **more: str) -> dict[str, Any]:
    """What the four checks say: by name."""
    command = [sys.executable, "-m", "faultlens", "doctor", "--python", str(python), *options, "--json", "-", *CHECKS]
    done = subprocess.run(command, env=variables(**more), capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return {each["check"]: each for each in json.loads(done.stdout)["examinations"]}


def python(code: str, program: str | Path = sys.executable, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), "-c", code], env=variables(**more), capture_output=True, text=True, errors="replace", timeout=120
    )


def marks(said: Mapping[str, Any]) -> dict[str, str]:
    return {name: each["mark"] for name, each in said.items()}


def build(target: Path, source: str, *options: str | Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-x", "c", "-", "-x", "none", "-shared", "-fPIC", "-o", str(target), *map(str, options)]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def mapped(text: str) -> set[str]:
    """The libraries in a text of /proc/PID/maps."""
    return {match[1] for match in re.finditer(r" (/\S*\.so[.\d]*)$", text, re.MULTILINE)}


# -------------------------------------------------------------------------------------------- the loader's rules

MAIN = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++)
        if (!dlopen(words[i], RTLD_NOW)) { puts(dlerror()); return 1; }
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) fputs(line, stdout);
    return 0;
}
"""
PATHS = {
    "none": (),
    "rpath": ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/{}",),
    "runpath": ("-Wl,--enable-new-dtags,-rpath,${{ORIGIN}}/{}",),
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs and libraries of all kinds of search paths; libleaf.so in many places."""
    folder = tmp_path_factory.mktemp("workshop")
    leaf = build(folder / "leaf" / "libleaf.so", "int leaf(void) { return 1; }", "-Wl,-soname,libleaf.so")
    for place in ("program", "library", "variable", "hwcaps/glibc-hwcaps/x86-64-v2", "preload", "work"):
        (folder / place).mkdir(parents=True)
        shutil.copy(leaf, folder / place / "libleaf.so")
    (folder / "other").mkdir()
    other = bytearray(leaf.read_bytes())
    other[4] = 1  # ELFCLASS32
    (folder / "other" / "libleaf.so").write_bytes(other)
    source = "int leaf(void); int middle(void) { return leaf(); }"
    for kind, options in PATHS.items():
        build(folder / f"middle-{kind}.so", source, leaf, *(each.format("library") for each in options))
        command = ["gcc", "-x", "c", "-", "-ldl", "-o", str(folder / f"program-{kind}")]
        subprocess.run([*command, *(each.format("program") for each in options)], input=MAIN, text=True, check=True)
    return folder


@needs_compiler
@pytest.mark.parametrize(
    "search",
    [
        {},
        {"LD_LIBRARY_PATH": "{}/variable"},
        {"LD_LIBRARY_PATH": "{}/nowhere:{}/hwcaps;{}/variable"},
        {"LD_LIBRARY_PATH": "{}/other:{}/variable"},
        {"LD_LIBRARY_PATH": ":{}/variable"},
        {"LD_LIBRARY_PATH": "$ORIGIN/variable"},
        {"LD_PRELOAD": "{}/preload/libleaf.so:/nowhere/libleaf.so", "LD_LIBRARY_PATH": "{}/variable"},
        {"LD_PRELOAD": "libleaf.so", "LD_LIBRARY_PATH": "{}/variable"},
    ],
    ids=lambda search: " ".join(f"{name}={value}" for name, value in search.items()) or "plain",
)
def test_the_loader_takes_the_foreseen_files(workshop: Path, search: dict[str, str]) -> None:
    extra = {name: value.replace("{}", str(workshop)) for name, value in search.items()}
    system = this_system(machine_state().cpu_flags)
    for program, library in itertools.product(PATHS, PATHS):
        words = [str(workshop / f"program-{program}"), str(workshop / f"middle-{library}.so")]
        done = subprocess.run(words, env=variables(**extra), cwd=workshop / "work", capture_output=True, text=True)
        process = Process(words[0], variables(**extra), workshop / "work", system)
        faults = process.open(words[1]).faults
        assert bool(faults) == bool(done.returncode), (words, faults, done.stdout)
        if not faults:
            assert {os.path.realpath(each.path) for each in process.libraries[1:]} == mapped(done.stdout), words


@pytest.mark.parametrize(
    "search",
    [
        {},
        {
            "LD_LIBRARY_PATH": f":{SITE}/numpy.libs:{SITE}/tensorflow;/nowhere",
            "LD_PRELOAD": "libjemalloc.so.2 libm.so.6",
        },
    ],
    ids=["plain", "misled"],
)
@pytest.mark.parametrize("modules", [pytest.param("tensorflow", marks=needs_tensorflow), "ssl, ctypes, sqlite3, lzma"])
def test_an_import_loads_the_foreseen_files(modules: str, search: dict[str, str], tmp_path: Path) -> None:
    watched = {**search, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loader")}
    done = python(f"import os, {modules}\nprint(os.getpid()){SHOW_MAPS}", **watched)
    number, _, maps = done.stdout.partition("\nLOADED\n")
    said = (tmp_path / f"loader.{number}").read_text()
    process = Process(sys.executable, variables(**search), Path.cwd(), this_system(machine_state().cpu_flags))
    opened = re.findall(r"file=(\S+) \[0\];  dynamically loaded by (\S+) \[0\]", said)
    assert opened
    for name, caller in opened:
        assert not process.open(name, process.find(caller)).faults
    assert {os.path.realpath(library.path) for library in process.libraries[1:]} == mapped(maps)


# ------------------------------------------------------------------------------------------- what variables break


@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
class TestWithTensorFlow:
    def test_a_healthy_environment_is_fine(self) -> None:
        said = doctor()
        assert set(marks(said).values()) == {"ok"}, said

    def test_allocators_do_no_harm(self) -> None:
        said = doctor(LD_PRELOAD="libjemalloc.so.2 libtcmalloc_minimal.so.4:libm.so.6", LD_LIBRARY_PATH=":/nowhere")
        assert set(marks(said).values()) == {"ok"}, said

    def test_a_preloaded_tensorflow_kills_hashlib(self) -> None:
        library = SITE / "tensorflow" / "libtensorflow_framework.so.2"
        said = doctor(LD_PRELOAD=f"libm.so.6:{library}")
        assert marks(said) == {"libraries": "ok", "shadowing": "ok", "preload": "error", "duplicates": "ok"}
        (found,) = said["preload"]["findings"]
        assert "libtensorflow_framework.so.2 is preloaded and shadows libcrypto.so" in found["title"]
        assert python("import hashlib", LD_PRELOAD=f"libm.so.6:{library}").returncode == -signal.SIGSEGV

        assert found["fixes"][0]["command"] == "export LD_PRELOAD=libm.so.6"
        assert doctor(LD_PRELOAD="libm.so.6")["preload"]["mark"] == "ok"
        assert python("import hashlib", LD_PRELOAD="libm.so.6").returncode == 0

    @needs_compiler
    def test_an_older_libstdcxx_in_the_search_path(self, tmp_path: Path) -> None:
        script = tmp_path / "versions"
        script.write_text("GLIBCXX_3.4 { global: *; };\nCXXABI_1.3 { } GLIBCXX_3.4;\n")
        old = build(
            tmp_path / "old" / "libstdc++.so.6",
            "int cout;",
            "-Wl,-soname,libstdc++.so.6",
            f"-Wl,--version-script={script}",
        )
        said = doctor(LD_LIBRARY_PATH=f"{old.parent}:/nowhere")
        assert marks(said) == {"libraries": "ok", "shadowing": "error", "preload": "ok", "duplicates": "ok"}
        (found,) = said["shadowing"]["findings"]
        assert "libstdc++.so.6 is without" in found["title"] and str(old) in str(found["evidence"])
        failed = python("import tensorflow", LD_LIBRARY_PATH=f"{old.parent}:/nowhere")
        version = re.search(r"version `(\S+)' not found \(required by", failed.stderr)
        assert failed.returncode == 1 and version and version[1] in str(found["evidence"])

        assert found["fixes"][0]["command"] == "export LD_LIBRARY_PATH=/nowhere"
        assert python("import tensorflow", LD_LIBRARY_PATH="/nowhere").returncode == 0

    @needs_compiler
    def test_another_tensorflows_library_in_the_search_path(self, tmp_path: Path) -> None:
        name = "libtensorflow_framework.so.2"
        other = build(tmp_path / name, "int TF_other(void) { return 1; }", f"-Wl,-soname,{name}")
        said = doctor(LD_LIBRARY_PATH=str(other.parent))
        (found,) = said["shadowing"]["findings"]
        assert found["severity"] == "error" and f"another TensorFlow's {name}" in found["title"]
        failed = python("import tensorflow", LD_LIBRARY_PATH=str(other.parent))
        assert failed.returncode == 1 and "undefined symbol" in failed.stderr
        assert found["fixes"][0]["command"] == "unset LD_LIBRARY_PATH"  # other tests import without it

    def test_the_same_library_from_elsewhere_is_no_finding(self, tmp_path: Path) -> None:
        real = Path("/proc/self/maps").read_text()
        (libc,) = {path for path in mapped(real) if Path(path).name.startswith("libc.so")}
        shutil.copy(libc, tmp_path / "libc.so.6")
        said = doctor(LD_LIBRARY_PATH=str(tmp_path))
        assert set(marks(said).values()) == {"ok"}, said
        assert "libc.so.6" in said["shadowing"]["summary"]


THROWS = 'extern "C" int throws() { try { throw 1; } catch (int) { return 0; } return 1; }'


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_sanitizer_without_libstdcxx(tmp_path: Path) -> None:
    asan = this_system(()).cache.lookup("libasan.so.8", ())
    if asan is None:
        pytest.skip("needs libasan.so.8 (libasan8)")
    library = tmp_path / "throws.so"
    command = ["g++", "-x", "c++", "-", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(command, input=THROWS, text=True, check=True)
    code = f"import ctypes; raise SystemExit(ctypes.CDLL({str(library)!r}).throws())"
    (found,) = doctor(LD_PRELOAD=asan)["preload"]["findings"]
    assert found["severity"] == "warning" and "the first C++ exception dies in it" in found["title"]
    assert python(code, LD_PRELOAD=asan, ASAN_OPTIONS="detect_leaks=0").returncode != 0

    value = found["fixes"][0]["command"].removeprefix("export LD_PRELOAD=")
    assert doctor(LD_PRELOAD=value)["preload"]["mark"] == "ok"
    assert python(code, LD_PRELOAD=value, ASAN_OPTIONS="detect_leaks=0").returncode == 0


def test_an_allocator_by_halves(tmp_path: Path) -> None:
    uses = "import ctypes; c = ctypes.CDLL(None); c.aligned_alloc.restype = ctypes.c_void_p; "
    uses += "c.free(ctypes.c_void_p(c.aligned_alloc(64, 128)))"
    own = "static char heap[4096] __attribute__((aligned(64)));\n"
    half = build(
        tmp_path / "libhalf.so", own + "void *aligned_alloc(unsigned long a, unsigned long size) { return heap; }"
    )
    (found,) = doctor(LD_PRELOAD=str(half))["preload"]["findings"]
    assert (found["severity"], found["causes"]) == ("warning", ["allocator-mismatch"])
    assert python(uses, LD_PRELOAD=str(half)).returncode < 0
    passes_on = """
    #include <dlfcn.h>
    #include <stdlib.h>
    typedef void *gives(size_t, size_t);
    void *aligned_alloc(size_t a, size_t size) { return ((gives *) dlsym(RTLD_NEXT, "aligned_alloc"))(a, size); }
    """
    wrapper = build(tmp_path / "libwrapper.so", passes_on, "-D_GNU_SOURCE")
    assert doctor(LD_PRELOAD=str(wrapper))["preload"]["mark"] == "ok"
    assert python(uses, LD_PRELOAD=str(wrapper)).returncode == 0


# ------------------------------------------------------------------------------------------- missing, and twice


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """One that has no packages, or those of the tests' behind its own."""
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def site_of(environment: Path) -> Path:
    (site,) = environment.glob("lib/python3.*/site-packages")
    return site


@pytest.mark.skipif(not (SITE / "numpy.libs").is_dir(), reason="needs NumPy from a wheel")
def test_a_library_that_a_wheel_lost(environment: Path) -> None:
    site, program = site_of(environment), environment / "bin" / "python"
    for each in SITE.glob("numpy*"):
        shutil.copytree(each, site / each.name)
    assert doctor(program)["libraries"]["mark"] == "ok"
    lost = next((site / "numpy.libs").glob("*openblas*"))
    aside = lost.rename(environment / lost.name)
    said = doctor(program)["libraries"]
    (found,) = said["findings"]
    assert said["mark"] == "error" and found["title"].startswith(f"{lost.name} is missing")
    failed = python("import numpy", program)
    assert failed.returncode == 1 and f"{lost.name}: cannot open shared object file" in failed.stderr
    assert re.search(r"-m pip install --force-reinstall --no-deps numpy==\d", found["fixes"][0]["command"])

    lost.write_bytes(aside.read_bytes()[: aside.stat().st_size // 2])  # a disk that was full
    (found,) = doctor(program)["libraries"]["findings"]
    assert found["title"].startswith(f"{lost.name} is damaged or cut short")
    assert python("import numpy", program).returncode != 0
    assert re.search(r"-m pip install --force-reinstall --no-deps numpy==\d", found["fixes"][0]["command"])

    aside.rename(lost)  # as the installation would
    assert doctor(program)["libraries"]["mark"] == "ok"
    assert python("import numpy", program).returncode == 0


OPENMP = """
void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags);
static void work(void *data) { (void)data; }
void run(void) { GOMP_parallel(work, 0, 2, 0); }
"""
PACKAGE = "import ctypes, pathlib\nrun = ctypes.CDLL(str(pathlib.Path(__file__).with_name('{}'))).run\n"


@needs_compiler
def test_two_packages_with_an_openmp_runtime_each(environment: Path) -> None:
    system = this_system(()).cache.lookup("libomp.so.5", ())
    if system is None:
        pytest.skip("needs libomp.so.5 (libomp5)")
    site, program = site_of(environment), environment / "bin" / "python"
    for package in ("alpha", "beta"):
        runtime = site / package / f"libomp-{package[0]}.so"
        runtime.parent.mkdir()
        # As wheels do: a copy under a name of its own.
        runtime.write_bytes(Path(system).read_bytes().replace(b"\0libomp.so.5\0", f"\0{runtime.name}\0".encode()))
        build(runtime.with_name(f"lib{package}.so"), OPENMP, runtime, "-Wl,-rpath,$ORIGIN")
        (site / package / "__init__.py").write_text(PACKAGE.format(f"lib{package}.so"))
    use_both = "import alpha, beta; alpha.run(); beta.run()"
    said = doctor(program)["duplicates"]
    (found,) = said["findings"]
    assert said["mark"] == "warning" and found["title"].startswith("alpha and beta bring two OpenMP runtimes")
    aborted = python(use_both, program)
    assert aborted.returncode == -signal.SIGABRT and "OMP: Error #15" in aborted.stderr

    build(site / "beta" / "libbeta.so", OPENMP, site / "alpha" / "libomp-a.so", "-Wl,-rpath,$ORIGIN/../alpha")
    assert doctor(program)["duplicates"]["mark"] == "ok"
    assert python(use_both, program).returncode == 0


@needs_compiler
def test_openmp_runtimes_of_the_same_name_are_one(environment: Path) -> None:
    system = this_system(()).cache.lookup("libomp.so.5", ())
    if system is None:
        pytest.skip("needs libomp.so.5 (libomp5)")
    site, program = site_of(environment), environment / "bin" / "python"
    for package in ("alpha", "beta"):
        (site / package).mkdir()
        shutil.copy(system, site / package / "libomp.so.5")
        build(site / package / f"lib{package}.so", OPENMP, site / package / "libomp.so.5", "-Wl,-rpath,$ORIGIN")
        (site / package / "__init__.py").write_text(PACKAGE.format(f"lib{package}.so"))
    assert doctor(program)["duplicates"]["mark"] == "ok"
    assert python("import alpha, beta; alpha.run(); beta.run()", program).returncode == 0
