"""What is known of memory: what lies where a pointer should be, which inputs lead out of their data, who lent it."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence import views
from faultlens.diagnosis.evidence.arguments import given
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.garbage import reads_as
from faultlens.diagnosis.evidence.misfits import Misfit, misfit
from faultlens.records.crash import Crash, Kernel, Tensor
from recorded_crashes import load


def word(layout: str, *values: float) -> int:
    return int.from_bytes(struct.pack(layout, *values), "little")


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (int.from_bytes(b"epthwise", "little"), "text", "the text 'epthwise'"),
        (int.from_bytes(b"alpha\0\0\0", "little"), "text", "the text 'alpha'"),
        (word("<d", 0.5), "floats", "the number 0.5"),
        (word("<2f", 0.125, 1.0), "floats", "the numbers 0.125 and 1 (float32)"),
        (word("<2f", 0.117, 0.0), "floats", "the numbers 0.117 and 0 (float32)"),
        (word("<2i", 3, 5), "integers", "the numbers 3 and 5 (int32)"),
        (0xDDDDDDDDDDDDDDDD, "freed", "freed memory"),
        (0xCDCDCDCDCDCDCDCD, "unset", "unwritten memory"),
        (0x4141414141414141, "fill", "0x41 in every byte"),
    ],
)
def test_what_lies_where_a_pointer_should_be(value: int, kind: str, words: str) -> None:
    found = reads_as(value)
    assert found is not None and found.kind == kind and words in found.words


@pytest.mark.parametrize("address", [0x7F4653A2E010, 0x55D5A7C3B2A0, 0xE7C19D77532D09E3, 0x5631DAA92, 2**64 - 4, 0])
def test_addresses_are_no_data(address: int) -> None:
    assert reads_as(address) is None


def test_the_byte_that_glibc_was_asked_to_write() -> None:
    assert (found := reads_as(0xA5A5A5A5A5A5A5A5, freed=0xA5)) and found.kind == "freed"
    assert (found := reads_as(0x5A5A5A5A5A5A5A5A, freed=0xA5)) and found.kind == "unset"


# --------------------------------------------------------------------------------------------- inputs of ops


def integers(*values: int) -> Tensor:
    return Tensor(dtype="int64", shape=(len(values),), contents=struct.pack(f"<{len(values)}q", *values))


def kernel(*inputs: Tensor) -> Kernel:
    return Kernel(op="Gather", node="Gather", thread=1, inputs=inputs, at_fault=True)


def misfit_of(op: Kernel) -> Misfit | None:
    return misfit(given(op, {}, None))


def test_inputs_that_lead_out_of_the_data() -> None:
    values, nothing = Tensor(dtype="float32", shape=(10,)), Tensor(dtype="float32", shape=(0,))
    assert (found := misfit_of(kernel(nothing, integers(0, 5, 9)))) and found.outside
    assert found.words == "indices (int64 [3]) goes up to 9, and params (float32 [0]) is empty"
    assert (found := misfit_of(kernel(values, integers(0, 900)))) and found.outside
    assert (found := misfit_of(kernel(values, integers(-1, 3)))) and not found.outside
    assert (found := misfit_of(kernel(values, integers(-7)))) and found.outside
    assert misfit_of(kernel(values, integers(0, 10))) is None  # splits end with the number of elements
    assert misfit_of(kernel(values)) is None and misfit(None) is None


# --------------------------------------------------------------------------------------------------- sources


def program(text: str) -> Crash:
    return replace(load("py_exception"), sources={"/home/ada/project/main.py": text})


LENDS = """\
import ctypes
import numpy as np
lib = ctypes.CDLL("libdecoder.so")

def frame(n):
    data = lib.decode(n)
    return np.ctypeslib.as_array(data, shape=(n,))

first = frame(1)
"""


def test_the_call_that_lent_the_memory() -> None:
    once, again = views.lent(program(LENDS)), views.lent(program(LENDS + "second = frame(2)\n"))
    assert once is not None and (once.owner.name, once.owner.line, once.view.line) == ("decode", 6, 7)
    assert not once.again
    assert again is not None and again.again
    copied = LENDS.replace("lib.decode(n)", "np.zeros(n)")
    assert views.lent(program(copied)) is None


def test_an_array_that_is_freed_by_hand() -> None:
    text = "import ctypes\nlibc = ctypes.CDLL(None)\ndef drop(rows):\n    p = rows.ctypes.data\n    libc.free(p)\n"
    assert (found := views.freed_array(program(text))) and (found[0].line, found[1]) == (5, "rows")
    own = text.replace("rows.ctypes.data", "libc.malloc(8)")
    assert views.freed_array(program(own)) is None


def test_text_that_ctypes_copied() -> None:
    text = "import ctypes\nlib = ctypes.CDLL('x')\nlib.name.restype = ctypes.c_char_p\ns = lib.name()\nlib.free(s)\n"
    assert (found := views.freed_copy(program(text))) and found[1].name == "name"
    assert views.freed_copy(program(text.replace("c_char_p", "c_void_p"))) is None


def test_what_the_user_calls_the_memory() -> None:
    crash = load("numpy_view_of_unmapped_buffer")
    line = Case(crash).running
    assert line is not None

    def named(statement: str) -> str | None:
        text = "import numpy as np\n" + "\n" * (line.line - 2) + statement + "\n"
        return views.variable(Case(replace(crash, sources={line.file: text})))

    assert named("print(first.mean())") == "first"
    assert named("store.table += 1") == "store.table"
    assert named("del batch") == "batch"
    assert named("total = np.add(left, right)") is None  # which of them is not known
    assert named("print(np.float32(3))") is None
