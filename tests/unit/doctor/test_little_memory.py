"""A file that cannot be mapped or read for want of memory is not a damaged file."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.doctor.check import Check
from faultlens.doctor.checks.cpu.cpu import CpuFeatures
from faultlens.doctor.examine import examine
from faultlens.records.finding import Examination
from faultlens.system.binary import Binary
from faultlens.system.pieces import PIECE, Pieces
from faultlens.target_env.installed_files import Listed, inspect
from faultlens.target_env.interpreter import Interpreter
from faultlens.target_env.target import TargetEnvironment

NOBODY = TargetEnvironment(Interpreter(executable="python", version=(3, 11, 7), prefix="/", base_prefix="/", path=()))


def test_pieces_are_what_a_mapping_is(tmp_path: Path) -> None:
    content = os.urandom(PIECE - 3) + b"needle" + os.urandom(PIECE)
    (tmp_path / "file").write_bytes(content)
    file = os.open(tmp_path / "file", os.O_RDONLY)
    pieces, mapped = Pieces(file), mmap.mmap(file, 0, prot=mmap.PROT_READ)
    os.close(file)
    assert len(pieces) == len(mapped)
    for place in (slice(0, 0), slice(5, 9), slice(PIECE - 5, PIECE + 5), slice(7, None), slice(9**9, 9**9 + 4)):
        assert pieces[place] == mapped[place]
    for found in ((b"needle",), (b"needle", PIECE), (b"needle", 0, PIECE), (b"no such thing",), (b"needle", 9**9)):
        assert pieces.find(*found) == mapped.find(*found)
    pieces.close()


def test_a_library_is_read_where_it_cannot_be_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    library = next(Path(entry) for entry in _mapped_files() if "libc.so" in entry)
    with Binary(library) as binary:
        expected = (binary.dynamic, binary.initialisers, binary.exports("malloc"), list(binary.symbols(50)))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with Binary(library) as binary:
        assert (binary.dynamic, binary.initialisers, binary.exports("malloc"), list(binary.symbols(50))) == expected
        assert binary.is_whole


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_a_check_that_has_no_memory_accuses_nobody(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(_: Check, __: TargetEnvironment) -> Examination:
        raise error

    monkeypatch.setattr(CpuFeatures, "examine", examined)
    (found,) = examine(NOBODY, [CpuFeatures()]).examinations
    assert found.mark == "skipped"
    assert "too little memory" in found.summary


def test_what_cannot_be_read_does_not_differ() -> None:
    """/proc/self/mem cannot be read at its beginning (EIO), whoever asks."""
    listed = Listed(Path("/proc/self/mem"), None, "sha256=abc")
    assert inspect(listed, deep=True).state == "whole"


def test_under_a_limit_the_limit_is_told_and_no_file_accused() -> None:
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 800000 && exec "$0" -m faultlens doctor libraries address-space', sys.executable],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "damaged" not in done.stdout


def _mapped_files() -> list[str]:
    return [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line]
