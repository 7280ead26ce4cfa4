from __future__ import annotations

from pathlib import Path

import pytest

from faultlens.custom_op.new.write import FILES, names_of, write
from faultlens.errors import FaultlensError


@pytest.mark.parametrize("spelled", ["fast_norm", "FastNorm", "fast-norm", "fastNorm"])
def test_names_in_any_spelling(spelled: str) -> None:
    assert names_of(spelled) == ("fast_norm", "FastNorm", "FAST_NORM")


@pytest.mark.parametrize("bad", ["", "2fast", "fast norm", "../up", "fast__norm", "a;b", "naïve", "x" * 61])
def test_what_is_no_name(bad: str) -> None:
    with pytest.raises(FaultlensError, match="is not a name for an op"):
        names_of(bad)


@pytest.mark.parametrize("taken", ["class", "lambda", "std", "Test"])
def test_words_that_mean_something_else(taken: str) -> None:
    with pytest.raises(FaultlensError, match="means something else"):
        names_of(taken)


def test_the_name_is_everywhere(tmp_path: Path) -> None:
    paths = write("fast_norm", tmp_path / "new")
    assert len(paths) == len([file for file in FILES.iterdir() if file.is_file()]) == 8
    assert 'REGISTER_OP("FastNorm")' in (tmp_path / "new" / "fast_norm_op.cc").read_text()
    assert not any("scaled" in (path.name + path.read_text()).lower() for path in paths)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "README.md"
    own.write_text("mine")
    with pytest.raises(FaultlensError, match="is there already"):
        write("fast_norm", tmp_path)
    assert own.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [own]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FaultlensError, match="Cannot write to"):
        write("fast_norm", tmp_path / "file" / "below")
