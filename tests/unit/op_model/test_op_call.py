"""A kernel that was in flight becomes a script that calls it again, and nothing else whatever a report says."""

from __future__ import annotations

import ast
import struct
from typing import Any

import pytest

import hostile
from faultlens.op_model.arrays import DTYPES, Array, expression, from_tensor
from faultlens.op_model.op_call import Call, CannotCallError, call_of, forms_for, script_of
from faultlens.op_model.op_definition import AttributeDefinition, Definition, Input
from faultlens.records.crash import Attribute, Crash, Fault, Frame, Kernel, Outcome, Tensor, Thread
from faultlens.sandbox.trial.trial import SCRIPT

CONV = Definition(
    op="FusedPadConv2D",
    function="FusedPadConv2D",
    inputs=(Input("input", type_attribute="T"), Input("paddings", dtype="int32"), Input("filter", type_attribute="T")),
    attributes=(
        AttributeDefinition("T", "type"),
        AttributeDefinition("mode", "string"),
        AttributeDefinition("strides", "list(int)"),
        AttributeDefinition("alpha", "float", has_default=True, default=0.10000000149011612),
    ),
    parameters=("input", "paddings", "filter", "mode", "strides", "alpha", "name"),
)
CONCAT = Definition(
    op="ParallelConcat",
    function="ParallelConcat",
    inputs=(Input("values", type_attribute="T", number_attribute="N"),),
    attributes=(
        AttributeDefinition("N", "int"),
        AttributeDefinition("T", "type"),
        AttributeDefinition("shape", "shape"),
    ),
    parameters=("values", "shape", "name"),
)


def tensor(dtype: str, shape: tuple[int, ...], code: str, *values: Any) -> Tensor:
    return Tensor(dtype=dtype, shape=shape, contents=struct.pack(f"<{len(values)}{code}", *values))


def attribute(kind: str, value: Any) -> Attribute:
    return Attribute(kind=kind, value=value)


def conv(**changed: Attribute) -> Kernel:
    attributes = {
        "T": attribute("type", "float32"),
        "mode": attribute("string", "REFLECT"),
        "strides": attribute("list(int)", [1, 2, 2, 1]),
        "alpha": attribute("float", 0.10000000149011612),
    }
    inputs = (
        tensor("float32", (), "f", 0.1),
        tensor("int32", (4, 2), "i", 0, 0, 1, 1, 1, 1, 0, 0),
        tensor("float32", (1, 1, 1, 1), "f", 1.0),
    )
    return Kernel(op="FusedPadConv2D", node="conv", thread=1, inputs=inputs, attributes={**attributes, **changed})


def text(call: Call) -> str:
    return script_of(call)[SCRIPT].decode()


def test_a_call_as_people_would_write_it() -> None:
    assert text(call_of(conv(), CONV)) == (
        "import tensorflow as tf\n"
        "\n"
        "tf.raw_ops.FusedPadConv2D(\n"
        "    input=tf.constant(0.1), paddings=tf.constant([[0, 0], [1, 1], [1, 1], [0, 0]]),\n"
        "    filter=tf.ones([1, 1, 1, 1]), mode='REFLECT', strides=[1, 2, 2, 1],\n"
        ")\n"
    )


def test_only_what_differs_from_the_default_is_given() -> None:
    assert "alpha" not in text(call_of(conv(), CONV))
    assert "alpha=0.5" in text(call_of(conv(alpha=attribute("float", 0.5)), CONV))
    assert "alpha=float('inf')" in text(call_of(conv(alpha=attribute("float", "inf")), CONV))


def test_lists_of_inputs() -> None:
    three = tuple(tensor("int64", (), "q", number) for number in range(3))
    kernel = Kernel(
        op="ParallelConcat", node="c", thread=1, inputs=three, attributes={"shape": attribute("shape", [-1, 2])}
    )
    assert "values=[tf.constant(0, tf.int64), tf.constant(1, tf.int64)" in text(call_of(kernel, CONCAT))
    assert "shape=[None, 2]" in text(call_of(kernel, CONCAT))


def test_a_kernel_that_was_being_made_has_no_inputs_yet() -> None:
    attributes = {"N": attribute("int", 2), "T": attribute("type", "int64"), "shape": attribute("shape", [2])}
    kernel = Kernel(op="ParallelConcat", node="c", thread=1, stage="construct", attributes=attributes)
    made = text(call_of(kernel, CONCAT))
    assert "values=[tf.constant(0, tf.int64), tf.constant(0, tf.int64)]" in made
    assert "# The contents of values were not recorded: these are made up." in made


def test_why_an_op_cannot_be_called() -> None:
    with pytest.raises(CannotCallError, match="its attribute mode is not known"):
        call_of(conv(mode=Attribute(kind="other")), CONV)
    unread = Kernel(op="c", node="c", thread=1, inputs=(None, None, None), attributes=conv().attributes)
    with pytest.raises(CannotCallError, match="its input input could not be read"):
        call_of(unread, CONV)
    table = Kernel(op="c", node="c", thread=1, inputs=(Tensor(dtype="resource", shape=()),) * 3)
    with pytest.raises(CannotCallError, match="not known"):
        call_of(table, CONV)


def test_a_variable_is_made_anew_for_an_op_that_changes_one() -> None:
    definition = Definition(
        op="AssignAddVariableOp",
        function="AssignAddVariableOp",
        inputs=(Input("resource", dtype="resource"), Input("value", type_attribute="dtype")),
        attributes=(AttributeDefinition("dtype", "type"),),
        parameters=("resource", "value", "name"),
    )
    inputs = (Tensor(dtype="resource", shape=()), tensor("float32", (2,), "f", 1, 2))
    kernel = Kernel(op="A", node="a", thread=1, inputs=inputs, attributes={"dtype": attribute("type", "float32")})
    assert "resource=tf.Variable(tf.zeros([2])).handle, value=tf.constant([1.0, 2.0])" in text(
        call_of(kernel, definition)
    )


@pytest.mark.parametrize(
    ("code", "dtype", "values", "written"),
    [
        ("f", "float32", (0.1, 2.0), "tf.constant([0.1, 2.0])"),
        ("d", "float64", (0.1, 2.0), "tf.constant([0.1, 2.0], tf.float64)"),
        ("e", "float16", (0.5, 2.0), "tf.constant([0.5, 2.0], tf.float16)"),
        ("f", "float32", (float("nan"), float("-inf")), "tf.constant([float('nan'), float('-inf')])"),
        ("f", "float32", (-0.0, -0.0), "tf.constant(-0.0, tf.float32, [2])"),
        ("i", "int32", (1, 2), "tf.constant([1, 2])"),
        ("q", "int64", (7, 7), "tf.constant(7, tf.int64, [2])"),
        ("Q", "uint64", (1 << 63, 2), "tf.constant([9223372036854775808, 2], tf.uint64)"),
        ("?", "bool", (True, False), "tf.constant([True, False])"),
        ("B", "quint8", (3, 4), "tf.bitcast(tf.constant([3, 4], tf.uint8), tf.quint8)"),
        ("i", "qint32", (0, 0), "tf.bitcast(tf.zeros([2], tf.int32), tf.qint32)"),
        ("B", "float8_e5m2", (60, 61), "tf.bitcast(tf.constant([60, 61], tf.uint8), tf.float8_e5m2)"),
        ("b", "int4", (-8, 7), "tf.cast(tf.constant([-8, 7], tf.int8), tf.int4)"),
        ("H", "bfloat16", (0x3FC0, 0x4000), "tf.cast(tf.constant([1.5, 2.0]), tf.bfloat16)"),
    ],
)
def test_every_kind_of_type(code: str, dtype: str, values: tuple[Any, ...], written: str) -> None:
    array = from_tensor(tensor(dtype, (2,), code, *values))
    assert array is not None
    assert expression(array, "x.npy") == (written, None)


def test_complex_numbers_and_strings() -> None:
    array = from_tensor(tensor("complex64", (1,), "f", 1.5, -2.0))
    assert array is not None
    assert expression(array, "")[0] == "tf.constant((1.5-2j), tf.complex64, [1])"
    strings = from_tensor(Tensor(dtype="string", shape=(2,), strings=(b"a'", b"\xff")))
    assert strings is not None
    assert expression(strings, "")[0] == "tf.constant([b\"a'\", b'\\xff'])"
    empty = from_tensor(Tensor(dtype="string", shape=(3,), strings=(b"",) * 3))
    assert empty is not None
    assert expression(empty, "")[0] == "tf.constant(b'', shape=[3])"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_can_be_made_up(dtype: str) -> None:
    for fill in (0, 1, "random"):
        made = expression(Array(dtype, (2, 3), fill=fill), "x.npy")
        ast.parse(made.text)
        assert f"tf.{dtype}" in made.text or dtype in ("float32", "string")


def test_large_arrays_lie_beside_the_script() -> None:
    array = from_tensor(tensor("int64", (5, 10), "q", *range(50)))
    assert array is not None
    made = expression(array, "x.npy")
    assert made.text == "np.load('x.npy')"
    assert made.array is not None
    assert made.array.startswith(b"\x93NUMPY\x01\x00")
    header_size = struct.unpack("<H", made.array[8:10])[0]
    assert (10 + header_size) % 64 == 0
    header = ast.literal_eval(made.array[10 : 10 + header_size].decode())
    assert header == {"descr": "<i8", "fortran_order": False, "shape": (5, 10)}
    assert made.array[10 + header_size :] == struct.pack("<50q", *range(50))
    call = Call("Foo", "Foo", (conv_argument := call_of(conv(), CONV).arguments[0]._replace(arrays=(array,)),))
    assert sorted(script_of(call)) == [f"{conv_argument.name}.npy", SCRIPT]
    assert "import numpy as np" in text(call)


def test_many_dimensions_are_told_briefly() -> None:
    assert expression(Array("float32", (1,) * 253 + (2,)), "")[0] == "tf.zeros([1] * 253 + [2])"


def test_contents_that_were_not_recorded() -> None:
    array = from_tensor(Tensor(dtype="float32", shape=(3,)))
    assert array == Array("float32", (3,), fill=0.0, recorded=False)
    cut = from_tensor(Tensor(dtype="float32", shape=(3,), contents=b"1234"))  # not all of it
    assert cut is not None
    assert not cut.recorded


@pytest.mark.parametrize("form", ["eager", "graph", "compiled", "compiled with parameters", "dataset", "loop"])
def test_every_form_is_python(form: Any) -> None:
    call = call_of(conv(), CONV)._replace(form=form, limits=(("RLIMIT_DATA", 1 << 30),), library="/op's.so")
    tree = ast.parse(text(call))
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert calls.count("library.FusedPadConv2D") == 1
    assert 'tf.load_op_library("/op\'s.so")' in text(call)
    assert "resource.setrlimit(resource.RLIMIT_DATA, (1073741824, 1073741824))" in text(call)


def test_which_form_is_tried_first() -> None:
    def crashed_in(function: str) -> Crash:
        thread = Thread(id=1, crashed=True, frames=(Frame(kind="native", function=function),))
        fault = Fault(signal="SIGFPE", code="FPE_INTDIV", thread=1)
        return Crash(outcome=Outcome(kind="signal"), method="agent", fault=fault, threads=(thread,))

    assert forms_for(crashed_in("tensorflow::LRNGradOp::Compute"), conv()) == ["eager", "graph"]
    assert forms_for(crashed_in("xla::cpu::Thunk::Execute"), conv())[0] == "compiled"
    assert forms_for(crashed_in("tensorflow::data::MapDatasetOp::Dataset"), conv())[-1] == "dataset"


# ------------------------------------------------------------------------------------ reports of strangers


def names_called(script: str) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)}


EVIL = "x)\nimport os\nos.system('rm -rf /')\n#"


def test_no_text_of_a_report_becomes_code() -> None:
    kernel = conv(mode=attribute("string", EVIL), **{EVIL: attribute("string", EVIL)})
    made = script_of(call_of(kernel, CONV), [f"Dies by {EVIL}", "\u2028import os", "\x85import os"])[SCRIPT].decode()
    assert names_called(made) == {"tf.raw_ops.FusedPadConv2D", "tf.constant", "tf.ones"}
    assert not any(isinstance(node, ast.Import) and node.names[0].name == "os" for node in ast.walk(ast.parse(made)))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", EVIL), ("int", True), ("int", 1 << 64), ("float", EVIL), ("float", [1.0]), ("bool", 1), ("type", EVIL),
        ("type", ["float32"]), ("shape", [EVIL]), ("shape", [10**4400]), ("list(int)", "12"), ("list(type)", [EVIL]),
        ("list(shape)", [[1], 2]), ("func", "f"), ("tensor", "t"), ("string", {"a": 1}), (EVIL, EVIL),
    ],
)  # fmt: skip
def test_attributes_of_another_kind_than_the_op_has_are_not_known(kind: str, value: Any) -> None:
    definition = Definition(
        op="Foo", function="Foo", inputs=(), attributes=(AttributeDefinition("a", kind),), parameters=("a",)
    )
    kernel = Kernel(op="Foo", node="f", thread=1, attributes={"a": attribute(kind, value)})
    with pytest.raises(CannotCallError, match="its attribute a is not known"):
        call_of(kernel, definition)


def test_tensors_that_cannot_be() -> None:
    for dtype in (EVIL, "resource", "variant", "float32_ref", ""):
        assert from_tensor(Tensor(dtype=dtype, shape=(2,))) is None
    for shape in ((-1,), (1 << 63,), (10**4400,), (1,) * 255):
        assert from_tensor(Tensor(dtype="float32", shape=shape)) is None


def test_hostile_kernels_are_refused_or_harmless() -> None:
    definition = Definition(
        op="Foo",
        function="Foo",
        inputs=tuple(Input(f"i{number}", type_attribute="T") for number in range(6)),
        attributes=(AttributeDefinition("T", "type"),),
        parameters=tuple(f"i{number}" for number in range(6)),
    )
    for kernel in hostile.kernels()[:50]:
        try:
            made = text(call_of(kernel, definition))
        except CannotCallError:
            continue
        assert all(name.startswith("tf.") for name in names_called(made))
