"""The loader's rules over libraries that were written for them; the real loader is asked in tests/crashes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultlens.system import loader
from faultlens.system.ldcache import Entry, LoaderCache, parse_cache, read_cache
from faultlens.system.linkage import same_content, undefined_symbols
from faultlens.system.loader import Fault, Process, System, levels_of, this_system
from faultlens.system.loader_variables import preload_entries, search_entries
from made_libraries import write_library

V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3".split()
V3 = "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave".split()


def process(
    tmp_path: Path, variables: dict[str, str] | None = None, system: System | None = None, **program: str
) -> Process:
    executable = write_library(tmp_path / "bin" / "python", **program)
    system = system or System(LoaderCache({}), (), (), "lib64")
    return Process(str(executable), variables or {}, tmp_path, system)


def taken(process: Process, name: str) -> str | None:
    library = process.find(name)
    return library and os.path.normpath(library.path)


# ----------------------------------------------------------------------------------------------------- the cache


def cache_bytes(*entries: tuple[str, str, int, int], levels: tuple[str, ...] = ()) -> bytes:
    """Entries: name, path, flags, hwcap."""
    start = 48 + 24 * len(entries)
    extension = start
    names = extension + 8 + 16 + 4 * len(levels) if levels else start
    strings, table, numbers = b"", b"", b""

    def add(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return names + len(strings) - len(text) - 1

    for name, path, flags, hwcap in entries:
        table += struct.pack("<iIIIQ", flags, add(name), add(path), 0, hwcap)
    for level in levels:
        numbers += struct.pack("<I", add(level))
    header = struct.pack(
        "<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(entries), len(strings), 0, start if levels else 0
    )
    section = struct.pack("<IIIIII", 0xEAA42174, 1, 1, 0, extension + 24, 4 * len(levels)) if levels else b""
    return header + table + section + numbers + strings


MADE = cache_bytes(
    ("libz.so.1", "/lib32/libz.so.1", 0x3, 0),
    ("libz.so.1", "/lib/libz.so.1", 0x303, 0),
    ("libz.so.1", "/lib/glibc-hwcaps/x86-64-v3/libz.so.1", 0x303, 1 << 62 | 1),
    ("libold.so", "/lib/haswell/libold.so", 0x303, 1 << 10),
    levels=("x86-64-v2", "x86-64-v3"),
)


@pytest.mark.parametrize("before", [b"", b"ld.so-1.7.0\0" + bytes(52)])
def test_the_cache_names_files_for_this_machine(before: bytes) -> None:
    cache = parse_cache(before + MADE)
    assert cache.lookup("libz.so.1", ()) == "/lib/libz.so.1"
    assert cache.lookup("libz.so.1", ("x86-64-v3", "x86-64-v2")) == "/lib/glibc-hwcaps/x86-64-v3/libz.so.1"
    assert cache.lookup("libold.so", ("x86-64-v3",)) is None
    assert cache.lookup("libnone.so", ()) is None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(MADE)), st.integers(0, len(MADE) - 1), st.binary(max_size=8))
def test_a_damaged_cache_is_survived(tmp_path_factory: pytest.TempPathFactory, end: int, at: int, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.cache"
    path.write_bytes((MADE[:at] + noise + MADE[at + len(noise) :])[:end])
    read_cache(path)


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_cache(tmp_path / "none").entries == {}


@pytest.mark.parametrize(
    ("flags", "levels"),
    [([], ()), (V2, ("x86-64-v2",)), (V2 + V3, ("x86-64-v3", "x86-64-v2")), (V3, ())],
)
def test_the_level_of_a_cpu_includes_those_below(flags: list[str], levels: tuple[str, ...]) -> None:
    assert levels_of(flags) == levels


# ----------------------------------------------------------------------------------------------------- searching


def test_the_order_of_the_search(tmp_path: Path) -> None:
    for folder in ("rpath", "variable", "runpath", "cached", "default"):
        write_library(tmp_path / folder / "liba.so", soname="liba.so")
    cache = LoaderCache({"liba.so": (Entry(f"{tmp_path}/cached/liba.so", None),)})
    system = System(cache, (f"{tmp_path}/default",), (), "lib64")
    variables = {"LD_LIBRARY_PATH": f"{tmp_path}/variable"}
    module = tmp_path / "module.so"

    def first(variables: dict[str, str], **paths: str) -> str:
        write_library(module, needed=["liba.so"], **paths)
        here = process(tmp_path, variables, system)
        assert here.open(str(module)).faults == ()
        return Path(taken(here, "liba.so") or "").parent.name

    assert first(variables, rpath="$ORIGIN/rpath", runpath="$ORIGIN/runpath") == "variable"
    assert first(variables, rpath="$ORIGIN/rpath") == "rpath"
    assert first({}, rpath="$ORIGIN/rpath", runpath="${ORIGIN}/runpath") == "runpath"
    assert first({}) == "cached"
    (tmp_path / "cached" / "liba.so").unlink()
    assert first({}) == "default"


def test_each_variable_is_split_in_its_own_way(tmp_path: Path) -> None:
    assert search_entries("/a b:/c;/d:") == ("/a b", "/c", "/d", "")
    assert preload_entries("/a.so /b.so::c.so ") == ("/a.so", "/b.so", "c.so")
    assert (search_entries(""), preload_entries("")) == ((), ())
    write_library(tmp_path / "a b" / "liba.so", soname="liba.so")
    forced = write_library(tmp_path / "forced.so", needed=["liba.so"])
    here = process(tmp_path, {"LD_LIBRARY_PATH": f"/x;{tmp_path}/a b", "LD_PRELOAD": f"nowhere.so {forced}"})
    assert (here.faults, here.not_preloaded) == ((), ["nowhere.so"])
    assert taken(here, "liba.so") == f"{tmp_path}/a b/liba.so"


def test_the_file_of_preloaded_libraries_has_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "ld.so.preload"
    listed.write_text("# for all\n/a.so:/b.so # and\n\t/c.so\n")
    monkeypatch.setattr(loader, "PRELOAD_FILE", listed)
    assert this_system(()).preloaded == ("/a.so", "/b.so", "/c.so")


def test_the_rpath_of_the_program_is_for_those_without_a_runpath(tmp_path: Path) -> None:
    write_library(tmp_path / "lib" / "liba.so", soname="liba.so")
    plain = write_library(tmp_path / "plain.so", needed=["liba.so"])
    own = write_library(tmp_path / "own.so", needed=["liba.so"], runpath="/nowhere")
    conda = process(tmp_path, rpath="$ORIGIN/../lib")
    assert conda.open(str(own)).faults == (Fault("missing", str(own), "liba.so"),)
    assert conda.open(str(plain)).faults == ()
    assert conda.open(str(own)).faults == ()  # now it is loaded
    assert process(tmp_path, runpath="$ORIGIN/../lib").open(str(plain)).faults


def test_what_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    write_library(tmp_path / "liba.so", soname="liba.so")
    broken = write_library(tmp_path / "broken.so", needed=["liba.so", "libgone.so"], runpath="$ORIGIN")
    here = process(tmp_path)
    library, faults = here.open(str(broken))
    assert [fault.name for fault in faults] == ["libgone.so"]
    assert library is not None and library.needs["libgone.so"] is None and library.needs["liba.so"] is not None
    assert here.find("liba.so") is None and len(here.libraries) == 1


def test_a_file_of_another_machine_is_passed_over_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    write_library(tmp_path / "right" / "liba.so", soname="liba.so")
    module = write_library(tmp_path / "module.so", needed=["liba.so"])
    search = {"LD_LIBRARY_PATH": f"{tmp_path}/wrong:{tmp_path}/right"}
    wrong = tmp_path / "wrong" / "liba.so"
    wrong.parent.mkdir()
    wrong.write_bytes(b"\x7fELF\x01" + bytes(60))
    assert process(tmp_path, search).open(str(module)).faults == ()
    wrong.write_bytes(b"not a library at all, but a text")
    (fault,) = process(tmp_path, search).open(str(module)).faults
    assert (fault.kind, fault.taken) == ("damaged", str(wrong))


def test_versions_are_compared_with_the_file_that_was_taken(tmp_path: Path) -> None:
    old = write_library(tmp_path / "libcxx.so", soname="libcxx.so", offers=["libcxx.so", "CXX_1", "CXX_2"])
    module = write_library(
        tmp_path / "module.so", needed=["libcxx.so"], runpath="$ORIGIN", needs={"libcxx.so": ["CXX_1", "CXX_3"]}
    )
    assert process(tmp_path).open(str(module)).faults == (
        Fault("version", str(module), "libcxx.so", ("CXX_3",), str(old)),
    )
    write_library(old, soname="libcxx.so")  # without versions it is believed
    assert process(tmp_path).open(str(module)).faults == ()


def test_libraries_that_need_each_other(tmp_path: Path) -> None:
    first = write_library(tmp_path / "libone.so", soname="libone.so", needed=["libtwo.so"], runpath="$ORIGIN")
    write_library(tmp_path / "libtwo.so", soname="libtwo.so", needed=["libone.so"], runpath="$ORIGIN")
    library, faults = process(tmp_path).open(str(first))
    assert not faults and library is not None and [each.name for each in library.closure] == ["libone.so", "libtwo.so"]


def test_what_cannot_be_preloaded_is_ignored(tmp_path: Path) -> None:
    write_library(tmp_path / "libgood.so", soname="libgood.so")
    here = process(tmp_path, {"LD_PRELOAD": f"{tmp_path}/libgood.so /nowhere/x.so:libgone.so"})
    assert [each.name for each in here.preloaded] == ["libgood.so"]
    assert here.not_preloaded == ["/nowhere/x.so", "libgone.so"]
    assert here.faults == ()


def test_symbols_are_looked_for_where_the_loader_would(tmp_path: Path) -> None:
    write_library(tmp_path / "liba.so", soname="liba.so", exports=["offered"])
    write_library(tmp_path / "apart.so", exports=["elsewhere"])
    module = write_library(
        tmp_path / "m.so", needed=["liba.so"], runpath="$ORIGIN", imports=["offered", "elsewhere", "of_the_program"]
    )
    here = process(tmp_path, exports=["of_the_program"])  # type: ignore[arg-type]
    here.open(str(tmp_path / "apart.so"))  # Python keeps the symbols of modules to themselves
    library = here.open(str(module)).library
    assert library is not None and undefined_symbols(here, library) == ("elsewhere",)


def test_the_same_content(tmp_path: Path) -> None:
    one = write_library(tmp_path / "one.so", soname="x.so", content=b"1")
    same = write_library(tmp_path / "same.so", soname="x.so", content=b"1")
    other = write_library(tmp_path / "other.so", soname="x.so", content=b"2")
    assert same_content(str(one), str(same)) and not same_content(str(one), str(other))
    assert not same_content(str(one), str(tmp_path / "none.so"))
