"""Binaries that do not fit: instructions, NumPy, protobuf, C++ interfaces, copies, allocators, search paths."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import Address, Crash, Library, Output
from recorded_crashes import causes, first, load


def saying(crash: Crash, stderr: str) -> Crash:
    return replace(crash, output=replace(crash.output, stderr=stderr))


def in_environment(crash: Crash, **variables: str) -> Crash:
    return replace(crash, program=replace(crash.program, environment=variables))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("sigill_ext_avx512", "illegal-instruction"),  # under an emulator
        ("amx_instruction", "illegal-instruction"),  # on the CPU itself
        ("lib_mode", "deliberate-trap"),
        ("breakpoint_instruction", "deliberate-trap"),
        ("np2_tf215", "numpy-abi-mismatch"),
        ("numpy_table_null", "numpy-abi-mismatch"),  # the import error was swallowed
        ("pb_tf215_pb319", "protobuf-mismatch"),
        ("op_abi_tf220", "custom-op-abi-mismatch"),
        ("env_ld_preload_boringssl", "duplicate-native-library"),
        ("two_openmp", "duplicate-openmp"),
        ("allocator_mixed_free", "allocator-mismatch"),
        ("symbol_version_missing", "wrong-library-loaded"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


# -------------------------------------------------------------------------------------------- instructions


def test_the_missing_feature_is_named() -> None:
    assert "AMX_TILE" in first(load("amx_instruction")).title


def test_the_emulated_cpu_counts_not_the_hosts() -> None:
    diagnosis = first(load("sigill_ext_avx512"))
    assert "qemu" in diagnosis.title
    assert not any(item.source == "/proc/cpuinfo" for item in diagnosis.evidence)


def test_a_trap_is_no_missing_feature_and_the_other_way_round() -> None:
    assert "illegal-instruction" not in causes(load("lib_mode"))
    assert "deliberate-trap" not in causes(load("amx_instruction"))


def test_a_feature_the_cpu_has_is_not_proven_missing() -> None:
    crash = load("amx_instruction")
    assert crash.machine is not None
    able = replace(crash, machine=replace(crash.machine, cpu_flags=(*crash.machine.cpu_flags, "amx_tile")))
    assert first(able).confidence < 0.8


def test_an_old_cpu_is_ruled_out_for_segmentation_faults() -> None:
    assert "illegal-instruction" in {item.cause for item in diagnose(load("op_null_deref")).ruled_out}


# ------------------------------------------------------------------------------------------------- imports

TRACEBACK = """Traceback (most recent call last):
  File "/home/ada/project/main.py", line 3, in <module>
    import thing
  File "/home/ada/venv/lib/python3.11/site-packages/thing/__init__.py", line 1, in <module>
    from thing import _core
"""


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("ValueError: numpy.dtype size changed, may indicate binary incompatibility.", "numpy-abi-mismatch"),
        ("AttributeError: _ARRAY_API not found", "numpy-abi-mismatch"),
        ("RuntimeError: module compiled against ABI version 0x1000009 but this version", "numpy-abi-mismatch"),
        ("TypeError: Descriptors cannot be created directly.", "protobuf-mismatch"),
        ("VersionError: Detected incompatible Protobuf Gencode/Runtime versions", "protobuf-mismatch"),
        ("ImportError: /x/libz.so.1: version `ZLIB_1.3' not found (required by /x/_core.so)", "wrong-library-loaded"),
        ("ImportError: /x/_core.so: undefined symbol: _ZN10tensorflow8OpKernelD1Ev", "custom-op-abi-mismatch"),
        ("ModuleNotFoundError: No module named 'numpy'", "python-exception"),
        ("ModuleNotFoundError: No module named 'google.protobuf'", "python-exception"),
        ("ImportError: cannot import name 'layers' from 'thing'", "python-exception"),
        ("ValueError: numpy array is empty", "python-exception"),
    ],
)  # fmt: skip
def test_what_import_errors_mean(message: str, cause: str) -> None:
    """Texts as the packages print them, in the place of the recorded one."""
    crash = load("np2_tf215")
    assert first(saying(crash, f"{TRACEBACK}{message}\n")).cause == cause


def test_a_complaint_of_numpy_that_was_survived_is_not_the_cause() -> None:
    text = "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0\n"
    crash = load("py_exception")
    assert "numpy-abi-mismatch" not in causes(saying(crash, text + (crash.output.stderr or "")))


# ------------------------------------------------------------------------------------------------- copies


def test_without_the_preloaded_library_no_shadowing_is_claimed() -> None:
    assert "duplicate-native-library" not in causes(in_environment(load("env_ld_preload_boringssl")))


def test_preloaded_allocators_and_runtimes_are_no_shadows() -> None:
    crash = load("env_ld_preload_boringssl")
    for library in ("/usr/lib/libjemalloc.so.2", "/usr/lib/libstdc++.so.6", "/usr/lib/libasan.so.8"):
        assert "duplicate-native-library" not in causes(in_environment(crash, LD_PRELOAD=library))


def test_two_openmp_runtimes_alone_are_no_reason() -> None:
    """Many working programs have two: the crash must be in one of them, or it must say so."""
    crash = load("op_null_deref")
    paths = ("/home/ada/venv/lib/libgomp.so.1", "/home/ada/venv/lib/libomp.so")
    more = tuple(Library(path=path, start=crash.libraries[0].start) for path in paths)
    assert "duplicate-openmp" not in causes(replace(crash, libraries=crash.libraries + more))


def test_an_openmp_runtime_that_aborts_beside_another_needs_no_words() -> None:
    """A core file holds none."""
    diagnosis = first(replace(load("two_openmp"), output=Output()))
    assert diagnosis.cause == "duplicate-openmp"
    assert diagnosis.confidence < first(load("two_openmp")).confidence
    other = Output(stderr="OMP: Error #178: Function pthread_create failed:\n")
    assert first(replace(load("two_openmp"), output=other)).cause != "duplicate-openmp"


def test_no_openmp_runtime_is_ruled_out() -> None:
    assert "duplicate-openmp" in {item.cause for item in diagnose(load("op_null_deref")).ruled_out}


def test_freeing_twice_is_no_mismatch_of_allocators() -> None:
    assert first(load("op_double_free")).cause != "allocator-mismatch"


def test_an_exception_about_something_else_does_not_blame_the_search_path() -> None:
    assert "wrong-library-loaded" not in causes(in_environment(load("py_exception"), LD_LIBRARY_PATH="/opt/old"))


PLACE = "/home/ada/venv/lib/python3.11/site-packages/tensorflow/python/framework/load_library.py"
LOADS_OP = f'{TRACEBACK}  File "{PLACE}", line 54, in load_op_library\n    py_tf.TF_LoadLibrary(library_filename)\n'


def test_a_library_that_a_search_path_replaced_is_not_the_op_s_abi() -> None:
    crash = load("np2_tf215")
    other = saying(crash, f"{LOADS_OP}tensorflow.NotFoundError: /home/ada/op.so: undefined symbol: codec_open_v2\n")
    assert first(other).cause == "custom-op-abi-mismatch"
    misled = first(in_environment(other, LD_LIBRARY_PATH="/opt/old/lib"))
    assert misled.cause == "wrong-library-loaded"
    assert "/opt/old/lib" in misled.fixes[0].title


def test_tensorflow_s_own_symbols_are_the_op_s_abi() -> None:
    crash = in_environment(load("np2_tf215"), LD_LIBRARY_PATH="/opt/old/lib")
    text = f"{LOADS_OP}tensorflow.NotFoundError: /home/ada/op.so: undefined symbol: _ZN10tensorflow8OpKernelD1Ev\n"
    assert first(saying(crash, text)).cause == "custom-op-abi-mismatch"
    taken = Library(path="/opt/old/lib/libtensorflow_framework.so.2", start=Address(0x7F0000000000))
    replaced = replace(saying(crash, text), libraries=(*crash.libraries, taken))
    assert first(replaced).cause == "wrong-library-loaded"
