"""XLA_FLAGS and TF_XLA_FLAGS, read as XLA reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultlens.target_env.xla_flags import faults, known_names, split

KNOWN = {"xla_cpu_enable_fast_math", "xla_dump_to", "tf_xla_auto_jit"}


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", ()),
        ("--a=1  --b\t--c=x,y\n", ("--a=1", "--b", "--c=x,y")),
        ('--a="one two" --b', ('--a="one two"', "--b")),
        ("--a='one \" two' --b", ("--a='one \" two'", "--b")),
        (r'--a="one \" two" --b', (r'--a="one \" two"', "--b")),
        ('--a="never ended --b', ('--a="never ended --b',)),
        ("--a word --b", ("--a",)),  # what follows a word is ignored
        ("-a", ("-a",)),
    ],
)
def test_flags_are_split_as_xla_does(text: str, flags: tuple[str, ...]) -> None:
    assert split(text) == flags


@given(st.text())
def test_any_text_can_be_split(text: str) -> None:
    assert all(flag.startswith("-") and flag in text for flag in split(text))


@pytest.mark.parametrize(
    ("variable", "value", "wrong"),
    [
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true --xla_dump_to=/tmp/x", {}),
        ("XLA_FLAGS", "--xla_dump_too=/tmp/x", {"--xla_dump_too=/tmp/x": "is not a flag of this TensorFlow"}),
        ("XLA_FLAGS", "-xla_dump_to=x", {"-xla_dump_to=x": "begins with one dash, where two are needed"}),
        ("XLA_FLAGS", "--tf_xla_auto_jit=2", {"--tf_xla_auto_jit=2": "is a flag of TF_XLA_FLAGS"}),
        ("TF_XLA_FLAGS", "--tf_xla_auto_jit=2", {}),
        ("TF_XLA_FLAGS", "--xla_dump_to=x", {"--xla_dump_to=x": "is a flag of XLA_FLAGS"}),
        ("XLA_FLAGS", "--", {"--": "is not a flag of this TensorFlow"}),
        ("XLA_FLAGS", "  ", {}),
        ("XLA_FLAGS", "xla_dump_to=x", {"xla_dump_to=x": "is taken for the name of a file, which cannot be opened"}),
        ("XLA_FLAGS", "\0", {"\0": "is taken for the name of a file, which cannot be opened"}),
    ],
)
def test_what_xla_ends_programs_for(tmp_path: Path, variable: str, value: str, wrong: dict[str, str]) -> None:
    found = faults(variable, value, tmp_path, KNOWN.__contains__)
    assert {fault.value: fault.why for fault in found} == wrong


def test_flags_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "flags").write_text("--xla_dump_to=x\n--nonsense\n")
    (fault,) = faults("XLA_FLAGS", "flags", tmp_path, KNOWN.__contains__)
    assert fault.value == "--nonsense"


def test_libraries_that_cannot_be_read(tmp_path: Path) -> None:
    assert known_names(tmp_path) is None
    (tmp_path / "libtensorflow_cc.so.2").write_bytes(b"no library")
    knows = known_names(tmp_path)
    assert knows is not None and knows("xla_anything")  # not seen is not unknown
