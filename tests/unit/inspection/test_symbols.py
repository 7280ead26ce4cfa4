"""Names of functions from the symbol tables of this very process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from faultlens.inspection import symbols
from faultlens.inspection.maps import locate, parse_maps
from faultlens.inspection.symbols import demangle, is_stripped, lookup, native_frames, value_of

LIBC = ctypes.CDLL("libc.so.6")
MAPPINGS = parse_maps(Path("/proc/self/maps").read_text())


def address_of(name: str) -> int:
    address = ctypes.cast(getattr(LIBC, name), ctypes.c_void_p).value
    assert address
    return address


def test_an_address_inside_a_function_gets_its_name() -> None:
    address = address_of("qsort") + 4
    (frame,) = native_frames([address], MAPPINGS, interrupted=True)
    assert frame.function == "qsort"
    assert not frame.approximate
    assert frame.library is not None
    assert frame.library.endswith("libc.so.6")


def test_a_return_address_belongs_to_the_call_before_it() -> None:
    place = locate(MAPPINGS, address_of("qsort"))
    assert place is not None
    start, returned = lookup(place.path, [place.offset]), native_frames([address_of("qsort")], MAPPINGS)
    assert start[place.offset].name == "qsort"
    assert returned[0].function != "qsort"


def test_repeated_addresses_stay_repeated() -> None:
    address = address_of("qsort") + 4
    assert len(native_frames([address, address, 5], MAPPINGS)) == 3


def test_an_exported_variable_is_found_by_name() -> None:
    place = locate(MAPPINGS, address_of("qsort"))
    assert place is not None
    assert value_of(place.path, "qsort") == place.offset
    assert value_of(place.path, "no_such_symbol") is None


def test_what_is_no_library_has_no_symbols(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not an ELF file")
    for path in (str(text), str(tmp_path), "/no/such/file"):
        assert lookup(path, [16]) == {}
        assert value_of(path, "main") is None
        assert not is_stripped(path)


def test_names_of_cpp_are_made_readable() -> None:
    assert demangle("_ZN10tensorflow6Tensor5SliceEll") in (
        "tensorflow::Tensor::Slice(long, long)",
        "_ZN10tensorflow6Tensor5SliceEll",  # without libstdc++
    )
    assert demangle("_Zgarbage") == "_Zgarbage"
    assert demangle("malloc") == "malloc"


def test_symbols_that_are_installed_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (shutil.which("gcc") and shutil.which("objcopy") and shutil.which("strip")):
        pytest.skip("needs gcc and binutils")
    source, library, debug = tmp_path / "hidden.c", tmp_path / "hidden.so", tmp_path / "hidden.debug"
    source.write_text(
        "__attribute__((noinline)) static int inner(int n) { volatile int twice = 2 * n; return twice; }\n"
        "int outer(int n) { return inner(n) + 1; }\n"
    )
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-Wl,--build-id=0xabcdef", "-o", library, source], check=True)
    offset = _offset_of("inner", library)
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["strip", library], check=True)
    assert offset not in lookup(str(library), [offset])
    monkeypatch.setattr(symbols, "DEBUG_FILES", tmp_path)
    (tmp_path / "ab").mkdir()
    debug.rename(tmp_path / "ab" / "cdef.debug")
    assert lookup(str(library), [offset])[offset] == ("inner", True)


def _offset_of(name: str, library: Path) -> int:
    listed = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(f" t {name}"))
