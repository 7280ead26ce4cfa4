"""Native libraries: what is a finding and what is not, over environments that were written for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from faultlens.doctor.checks.native.duplicates import Duplicates
from faultlens.doctor.checks.native.libraries import Libraries
from faultlens.doctor.checks.native.preload import COPY, Overlap, Preload, gives_only
from faultlens.doctor.checks.native.shadowing import Shadowing
from faultlens.system.binary import Dynamic
from faultlens.system.loader import Library
from faultlens.target_env.swaps import without
from faultlens.target_env.target import TargetEnvironment
from made_environment import install, site_packages, target
from made_libraries import write_library

TAG = "cpython-311-x86_64-linux-gnu.so"
NUMPY = f"numpy/_core/_multiarray_umath.{TAG}"
H5PY = f"h5py/h5.{TAG}"
FRAMEWORK = "libtensorflow_framework.so.2"
NEVER = "GLIBC_9.99"
FOLDERS, FORCED = "LD_LIBRARY_PATH", "LD_PRELOAD"


def met(tmp_path: Path, variables: Mapping[str, str] | None = None) -> TargetEnvironment:
    write_library(tmp_path / "env" / "bin" / "python", interpreter="/lib64/ld-linux-x86-64.so.2", needed=["libc.so.6"])
    return target(tmp_path, variables=variables)


def numpy(tmp_path: Path, **library: object) -> Path:
    site = site_packages(tmp_path)
    install(site, "numpy", "2.4.0", files={NUMPY: b"", "numpy.libs/libblas-1.so": b""})
    write_library(site / "numpy.libs" / "libblas-1.so", soname="libblas-1.so")
    return write_library(
        site / NUMPY,
        **{"needed": ["libblas-1.so"], "rpath": "$ORIGIN/../../numpy.libs", **library},  # type: ignore[arg-type]
    )


# ---------------------------------------------------------------------------------------------------- libraries


def test_libraries_that_are_there(tmp_path: Path) -> None:
    numpy(tmp_path)
    said = Libraries().examine(met(tmp_path))
    assert said.mark == "ok" and said.summary.startswith("1 modules find their libraries: glibc 2.")


def test_nothing_to_look_at(tmp_path: Path) -> None:
    assert Libraries().examine(met(tmp_path)).mark == "skipped"


def test_a_library_that_the_wheel_should_have_brought(tmp_path: Path) -> None:
    numpy(tmp_path)
    (site_packages(tmp_path) / "numpy.libs" / "libblas-1.so").unlink()
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert found.severity == "error"
    assert found.title == f"libblas-1.so is missing, which {Path(NUMPY).name} needs"
    assert found.fixes[0].command.endswith("-m pip install --force-reinstall --no-deps numpy==2.4.0")


def test_a_library_of_the_system_that_is_missing(tmp_path: Path) -> None:
    numpy(tmp_path, needed=["libnowhere.so.7"])
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert "libnowhere.so.7" in found.title and "libnowhere.so.7" in found.fixes[0].command


def test_a_library_that_only_a_variable_shows(tmp_path: Path) -> None:
    numpy(tmp_path, needed=["libmine.so"])
    write_library(tmp_path / "mine" / "libmine.so", soname="libmine.so")
    assert Libraries().examine(met(tmp_path)).mark == "error"
    helped = met(tmp_path, {"LD_LIBRARY_PATH": f"{tmp_path}/mine"})
    assert Libraries().examine(helped).mark == "ok"
    said = Shadowing().examine(helped)
    assert (said.mark, said.summary) == ("ok", "LD_LIBRARY_PATH brings libmine.so: no conflict found")


def test_a_module_that_needs_a_newer_glibc(tmp_path: Path) -> None:
    numpy(tmp_path, needed=["libc.so.6"], needs={"libc.so.6": ["GLIBC_2.2.5", NEVER]})
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert found.severity == "error" and f"libc.so.6 is without {NEVER}" in found.title
    assert found.fixes[0].title == "use a system with glibc 9.99 or newer" and "python:3.11" in found.fixes[0].command


def test_what_an_import_of_tensorflow_can_do_without_is_a_warning(tmp_path: Path) -> None:
    write_library(site_packages(tmp_path) / H5PY, needed=["libhdf5.so.999"])
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert found.severity == "warning" and found.title.startswith("import h5py fails: libhdf5.so.999 is missing")


@pytest.mark.parametrize("module", ["wrapt/_wrappers.abi3.so", "google/_upb/_message.abi3.so"])
def test_a_compiled_module_that_has_a_replacement_is_a_detail(tmp_path: Path, module: str) -> None:
    numpy(tmp_path)
    write_library(site_packages(tmp_path) / module).write_bytes(b"")
    said = Libraries().examine(met(tmp_path))
    assert said.mark == "ok" and said.summary.startswith("1 modules")
    assert any(
        line.endswith(f"goes on in Python: {Path(module).name} is damaged or cut short") for line in said.details
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_library_that_may_not_be_read(tmp_path: Path) -> None:
    numpy(tmp_path)
    library = site_packages(tmp_path) / "numpy.libs" / "libblas-1.so"
    library.chmod(0)
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert (found.title, found.fixes[0].command) == ("libblas-1.so may not be read", f"chmod a+r {library}")


@pytest.mark.parametrize(
    "path",
    [
        "numpy/_core/_old.cpython-310-x86_64-linux-gnu.so",  # another Python's
        "numpy/_core/libhelper.so",
        "other_package/module.abi3.so",
        "tensorflow/libplugin.so",
        "tensorflow/include/thing.so",
    ],
)
def test_what_the_import_does_not_load_is_not_judged(tmp_path: Path, path: str) -> None:
    numpy(tmp_path)
    write_library(site_packages(tmp_path) / path, needed=["libnowhere.so.7"])
    assert Libraries().examine(met(tmp_path)).mark == "ok"


@pytest.mark.parametrize("name", ["numpy.libs/libblas-1.so", NUMPY], ids=["library", "module"])
@pytest.mark.parametrize("keep", [0, 4, 64, 200, -1])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, keep: int) -> None:
    numpy(tmp_path)
    damaged = site_packages(tmp_path) / name
    damaged.write_bytes(damaged.read_bytes()[:keep])
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert f"{damaged.name} is damaged" in found.title and "numpy==2.4.0" in found.fixes[0].command


def test_a_module_for_another_machine_is_named(tmp_path: Path) -> None:
    module = numpy(tmp_path)
    content = bytearray(module.read_bytes())
    content[18] = 183  # AArch64
    module.write_bytes(content)
    (found,) = Libraries().examine(met(tmp_path)).findings
    assert found.title == f"{module.name} is for another machine" and "numpy==2.4.0" in found.fixes[0].command


@pytest.mark.parametrize("content", [b"#!/bin/sh\nexec python3\n", b""])
def test_a_python_that_is_no_program_is_said(tmp_path: Path, content: bytes) -> None:
    here = met(tmp_path, {"LD_LIBRARY_PATH": "/x", "LD_PRELOAD": "/y"})
    Path(here.interpreter.executable).write_bytes(content)
    for check in (Libraries(), Shadowing(), Preload()):
        assert check.examine(here).mark == "skipped"


# ---------------------------------------------------------------------------------------------------- shadowing


def test_an_older_library_in_the_search_path(tmp_path: Path) -> None:
    offers = ["libcxx.so.6", "CXX_1", "CXX_2"]
    numpy(tmp_path, needed=["libcxx.so.6"], runpath="$ORIGIN", needs={"libcxx.so.6": ["CXX_2"]})
    write_library(site_packages(tmp_path) / Path(NUMPY).parent / "libcxx.so.6", soname="libcxx.so.6", offers=offers)
    write_library(tmp_path / "old" / "libcxx.so.6", soname="libcxx.so.6", offers=offers[:2])
    write_library(tmp_path / "newer" / "libcxx.so.6", soname="libcxx.so.6", offers=[*offers, "CXX_3"])
    misled = met(tmp_path, {"LD_LIBRARY_PATH": f"/x:{tmp_path}/old"})
    assert Libraries().examine(misled).mark == "ok"
    (found,) = Shadowing().examine(misled).findings
    assert found.severity == "error"
    assert found.title == f"with LD_LIBRARY_PATH, libcxx.so.6 is without CXX_2, which {Path(NUMPY).name} needs"
    assert found.fixes[0].command == "export LD_LIBRARY_PATH=/x"
    assert Shadowing().examine(met(tmp_path, {"LD_LIBRARY_PATH": f"{tmp_path}/newer"})).mark == "ok"


def tensorflow(tmp_path: Path) -> None:
    folder = site_packages(tmp_path) / "tensorflow"
    write_library(folder / FRAMEWORK, soname=FRAMEWORK, exports=["TF_one", "TF_two"])
    write_library(
        folder / "python" / "_pywrap_tensorflow_internal.so",
        needed=[FRAMEWORK],
        runpath="$ORIGIN/..",
        imports=["TF_two"],
    )


@pytest.mark.parametrize(
    ("exports", "severity"), [(["TF_one"], "error"), (["TF_two", "TF_three"], "warning")], ids=["lacks", "has"]
)
def test_another_tensorflows_library(tmp_path: Path, exports: list[str], severity: str) -> None:
    tensorflow(tmp_path)
    other = write_library(tmp_path / "other" / FRAMEWORK, soname=FRAMEWORK, exports=exports)
    (found,) = Shadowing().examine(met(tmp_path, {"LD_LIBRARY_PATH": str(other.parent)})).findings
    assert found.severity == severity
    assert found.title.startswith(f"LD_LIBRARY_PATH brings another TensorFlow's {FRAMEWORK}")
    assert found.fixes[0].command == "unset LD_LIBRARY_PATH"


def test_the_same_library_from_elsewhere(tmp_path: Path) -> None:
    tensorflow(tmp_path)
    same = write_library(tmp_path / "other" / FRAMEWORK, soname=FRAMEWORK, exports=["TF_one", "TF_two"])
    assert Shadowing().examine(met(tmp_path, {"LD_LIBRARY_PATH": str(same.parent)})).mark == "ok"


@pytest.mark.parametrize("value", ["", ":", "/nowhere", ":/nowhere;/etc"])
def test_a_search_path_that_leads_nowhere(tmp_path: Path, value: str) -> None:
    tensorflow(tmp_path)
    assert Shadowing().examine(met(tmp_path, {"LD_LIBRARY_PATH": value})).mark == "ok"


@pytest.mark.parametrize(
    ("variable", "value", "path", "command"),
    [
        (FOLDERS, "/a:/b", "/a/libx.so", f"export {FOLDERS}=/b"),
        (FOLDERS, "/a;/b", "/a/libx.so", f"export {FOLDERS}=/b"),
        (FOLDERS, "/a/:/b", "/a/glibc-hwcaps/x86-64-v3/libx.so", f"export {FOLDERS}=/b"),
        (FOLDERS, "/a", "/a/libx.so", f"unset {FOLDERS}"),
        (FOLDERS, "/ä b/c:/a", "/a/libx.so", f"export {FOLDERS}='/ä b/c'"),
        (FOLDERS, "/a b:/c", "/a b/libx.so", f"export {FOLDERS}=/c"),
        (FOLDERS, "relative", "/here/relative/libx.so", f"unset {FOLDERS}"),
        (FOLDERS, "/a:", "/here/libx.so", f"export {FOLDERS}=/a"),
        (FOLDERS, "/a:", "/a/libx.so", f"unset {FOLDERS}"),
        (FOLDERS, "/a:/b", "/c/libx.so", f"unset {FOLDERS}"),
        (FORCED, "/a/libx.so /b/liby.so", "/a/libx.so", f"export {FORCED}=/b/liby.so"),
        (FORCED, "libx.so:/b/$LIB/liby.so", "/usr/lib/libx.so", f"export {FORCED}='/b/$LIB/liby.so'"),
    ],
)
def test_the_command_takes_out_what_does_harm(variable: str, value: str, path: str, command: str) -> None:
    assert without(variable, value, path, Path("/here")) == command


def test_another_python_in_the_search_path(tmp_path: Path) -> None:
    name = "libpython3.11.so.1.0"
    numpy(tmp_path, imports=["PyNew_Function"])
    write_library(tmp_path / "env" / "lib" / name, soname=name, exports=["PyNew_Function", "PyOld_Function"])
    other = write_library(tmp_path / "other" / name, soname=name, exports=["PyOld_Function"])
    here = target(tmp_path, variables={"LD_LIBRARY_PATH": str(other.parent)})
    write_library(
        Path(here.interpreter.executable),
        interpreter="/lib64/ld-linux-x86-64.so.2",
        needed=[name],
        runpath="$ORIGIN/../lib",
    )
    (found,) = Shadowing().examine(here).findings
    assert found.severity == "error"
    assert found.title == f"LD_LIBRARY_PATH brings another {name}: import tensorflow fails"


# ------------------------------------------------------------------------------------------------------ preload


def test_a_copy_of_openssl_that_is_preloaded(tmp_path: Path) -> None:
    names = [f"CRYPTO_{number}" for number in range(3 * COPY)]
    tensorflow(tmp_path)
    folder = site_packages(tmp_path) / "tensorflow" / "python"
    write_library(folder / "libcrypto.so.3", soname="libcrypto.so.3", exports=names)
    write_library(folder / "_ssl_user.so", needed=["libcrypto.so.3"], runpath="$ORIGIN")
    copy = write_library(tmp_path / "libcopy.so", soname="libcopy.so", exports=names[: 2 * COPY])
    brings = write_library(tmp_path / "libbrings.so", soname="libbrings.so", needed=["libcopy.so"], runpath="$ORIGIN")
    wrapper = write_library(tmp_path / "libwrapper.so", soname="libwrapper.so", exports=names[: COPY - 1])
    for forced in (copy, brings):
        (found,) = Preload().examine(met(tmp_path, {"LD_PRELOAD": f"{forced}:{wrapper}"})).findings
        assert found.severity == "error" and found.causes == ("duplicate-native-library",)
        assert found.title.startswith("libcopy.so is preloaded and shadows libcrypto.so.3")
        assert found.fixes[0].command == f"export LD_PRELOAD={wrapper}"
    assert Preload().examine(met(tmp_path, {"LD_PRELOAD": str(wrapper)})).mark == "ok"


def test_a_complete_replacement_is_no_mixture() -> None:
    library = Library("/x", Dynamic(None, (), (), (), {}, ()), None, "")
    names = tuple(map(str, range(COPY)))
    assert not Overlap(library, library, names, COPY).is_mixture
    assert Overlap(library, library, names, COPY + 1).is_mixture


def test_what_is_made_to_be_preloaded(tmp_path: Path) -> None:
    allocator = write_library(tmp_path / "liballoc.so", soname="liballoc.so", exports=["malloc", "free"])
    said = Preload().examine(met(tmp_path, {"LD_PRELOAD": f"{allocator} /nowhere/liby.so"}))
    assert said.mark == "ok"
    assert said.summary == "liballoc.so (an allocator), /nowhere/liby.so (cannot be loaded, ignored): no conflict found"


def test_a_preloaded_library_that_keeps_python_from_starting(tmp_path: Path) -> None:
    forced = write_library(tmp_path / "libforced.so", soname="libforced.so", needed=["libnowhere.so.7"])
    here = met(tmp_path, {"LD_PRELOAD": str(forced)})
    (found,) = Preload().examine(here).findings
    assert found.severity == "error" and "libnowhere.so.7 is missing, which libforced.so needs" in found.title
    assert found.fixes[0].command == "unset LD_PRELOAD"


def test_a_sanitizer_wants_libstdcxx_beside_it(tmp_path: Path) -> None:
    asan = write_library(tmp_path / "libasan.so.8", soname="libasan.so.8", exports=["__asan_init", "malloc", "free"])
    cxx = write_library(tmp_path / "libstdc++.so.6", soname="libstdc++.so.6")
    (found,) = Preload().examine(met(tmp_path, {"LD_PRELOAD": str(asan)})).findings
    assert found.severity == "warning" and found.fixes[0].command.startswith(f"export LD_PRELOAD={asan}:")
    assert Preload().examine(met(tmp_path, {"LD_PRELOAD": f"{asan}:{cxx}"})).mark == "ok"


def test_electric_fence(tmp_path: Path) -> None:
    exports = ["EF_ALIGNMENT", "EF_PROTECT_FREE", "malloc", "free"]
    fence = write_library(tmp_path / "libfence.so.0", soname="libfence.so.0", exports=exports)
    (found,) = Preload().examine(met(tmp_path, {FORCED: str(fence)})).findings
    assert found.severity == "error" and "Electric Fence" in found.title
    assert found.fixes[0].command == "unset LD_PRELOAD"


@pytest.mark.parametrize(
    ("exports", "imports", "given"),
    [
        (["aligned_alloc", "posix_memalign"], ["abort"], ("aligned_alloc", "posix_memalign")),
        (["malloc"], ["mmap"], ("malloc",)),
        (["malloc", "free"], [], ()),
        (["free"], [], ()),  # what is never given back is only lost
        (["malloc"], ["dlsym"], ()),
        (["posix_memalign"], ["memalign"], ()),
        (["malloc"], ["__libc_malloc"], ()),
        (["sync"], [], ()),
    ],
)
def test_an_allocator_by_halves(tmp_path: Path, exports: list[str], imports: list[str], given: tuple[str, ...]) -> None:
    assert gives_only(exports, imports) == given
    half = write_library(tmp_path / "libhalf.so", soname="libhalf.so", exports=exports, imports=imports)
    findings = Preload().examine(met(tmp_path, {FORCED: f"{half}:/nowhere/x.so"})).findings
    assert [found.severity for found in findings] == ["warning"] * bool(given)
    assert all(", ".join(given) in found.title and found.causes == ("allocator-mismatch",) for found in findings)


# --------------------------------------------------------------------------------------------------- duplicates


def openmp(tmp_path: Path, package: str, runtime: str, *, llvm: bool = True, module: str = "lib.so") -> None:
    folder = site_packages(tmp_path) / package
    write_library(folder / runtime, soname=runtime, content=b"__KMP_REGISTERED_LIB_%d" * llvm)
    write_library(folder / module, needed=[runtime], runpath="$ORIGIN")


def test_two_runtimes_that_abort(tmp_path: Path) -> None:
    openmp(tmp_path, "alpha", "libomp-1.so")
    openmp(tmp_path, "beta", "libiomp5.so")
    (found,) = Duplicates().examine(met(tmp_path)).findings
    assert found.severity == "warning" and found.title.startswith("alpha and beta bring two OpenMP runtimes")
    assert found.fixes[-1].command.endswith("-m pip uninstall beta")


def test_runtimes_that_get_along(tmp_path: Path) -> None:
    openmp(tmp_path, "alpha", "libomp.so.5")
    openmp(tmp_path, "beta", "libomp.so.5")  # the loader takes the first for both
    openmp(tmp_path, "gamma", "libgomp-1.so.1", llvm=False)
    openmp(tmp_path, "delta", "libgomp-2.so.1", llvm=False)
    openmp(tmp_path, "epsilon", "libiomp5.so", module="fast.cpython-310-x86_64-linux-gnu.so")
    assert Duplicates().examine(met(tmp_path)).mark == "ok"


def test_copies_are_details(tmp_path: Path) -> None:
    site, names = site_packages(tmp_path), [f"SSL_{number}" for number in range(60)]
    for library in ("alpha.libs/libopenblas-1.so.0", "beta.libs/libopenblas-2.so.0", "alpha.libs/libhdf5_hl-1.so"):
        write_library(site / library)
    write_library(site / "tensorflow" / "_one.so", exports=names)
    write_library(site / "numpy" / f"two.{TAG}", exports=names)
    met(tmp_path)
    quick, deep = (Duplicates().examine(target(tmp_path, deep=deep)) for deep in (False, True))
    assert quick.mark == deep.mark == "ok"
    (copies,) = quick.details
    assert copies.startswith("libopenblas 2 times: ")
    assert deep.details == (copies, f"{site}/tensorflow/_one.so and {site}/numpy/two.{TAG} both define 60 symbols")
