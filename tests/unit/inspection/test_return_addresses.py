"""Whose call a return address belongs to."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from faultlens.inspection.return_addresses import name_callers, within
from faultlens.inspection.symbols import value_of
from faultlens.records.crash import Address, Frame

# Back to back: where the call in `caller` would return to, `next_one` begins.
SOURCE = """
__asm__(".globl caller, next_one\\n"
        ".type caller, @function\\ncaller: nop\\ncall *%rax\\n.size caller, .-caller\\n"
        ".type next_one, @function\\nnext_one: nop\\nret\\n.size next_one, .-next_one\\n");
"""


def frame(function: str, address: int, library: str | None = "/lib/x.so") -> Frame:
    return Frame(
        kind="native", function=function, library=library, address=Address(0x1000 + address), offset=Address(address)
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    source = tmp_path_factory.mktemp("calls") / "calls.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-o", source.with_suffix(".so"), source], check=True, timeout=60)
    return str(source.with_suffix(".so"))


def offset_of(library: str, name: str) -> int:
    offset = value_of(library, name)
    assert offset is not None
    return offset


def test_a_caller_that_ends_in_its_call_is_not_named_after_the_next_function(library: str) -> None:
    behind = offset_of(library, "next_one")
    stack = [frame("raise", 8), frame("next_one", behind, library)]
    name_callers([stack])
    assert [each.function for each in stack] == ["raise", "caller"]
    assert stack[1].offset == behind  # the address stays what it is


def test_an_interrupted_instruction_is_where_it_stands(library: str) -> None:
    first = offset_of(library, "next_one")
    stack = [frame("next_one", first, library)]
    handled = [frame("handler", 8), frame("__restore_rt", 16), frame("next_one", first, library)]
    name_callers([stack, handled])
    assert stack[0].function == handled[2].function == "next_one"


def test_what_was_inlined_keeps_its_name(library: str) -> None:
    behind = offset_of(library, "next_one")
    stack = [frame("raise", 8), frame("helper", behind, library), frame("next_one", behind, library)]
    name_callers([stack])
    assert [each.function for each in stack[1:]] == ["helper", "caller"]


def test_of_other_names_for_the_same_function_the_one_that_was_told_stays(library: str) -> None:
    stack = [frame("raise", 8), frame("alias", offset_of(library, "caller") + 1, library)]
    name_callers([stack])
    assert stack[1].function == "alias"


def test_within_is_one_before_for_all_but_what_was_interrupted() -> None:
    stack = [
        frame("f", 8),
        frame("__restore_rt", 16),
        frame("g", 24),
        frame("h", 32),
        Frame(kind="native", function="?"),
    ]
    assert within(stack) == [8, 15, 24, 31, None]
    assert within([]) == []
