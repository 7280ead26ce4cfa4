"""Arguments of ops by name, checks that failed in words, and what is odd about values: over records made by hand."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from faultlens.diagnosis.evidence import check_words
from faultlens.diagnosis.evidence.arguments import Given, as_written, given, input_names
from faultlens.diagnosis.evidence.oddities import oddities
from faultlens.records.crash import Attribute, Kernel, Tensor
from faultlens.records.diagnosis import Location

HERE = Location(file="main.py", line=2, function="<module>")


def numbers(*values: int, shape: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(
        dtype="int64",
        shape=(len(values),) if shape is None else shape,
        contents=struct.pack(f"<{len(values)}q", *values),
    )


def floats(*shape: int) -> Tensor:
    return Tensor(dtype="float32", shape=shape)


def kernel(op: str, *inputs: Tensor, **settings: Any) -> Kernel:
    kinds = {int: "int", float: "float", str: "string", list: "list(int)"}
    attributes = {name: Attribute(kind=kinds[type(value)], value=value) for name, value in settings.items()}
    return Kernel(op=op, node=op, thread=1, inputs=inputs, attributes=attributes)


def of(op: str, *inputs: Tensor, source: str = "", **settings: Any) -> Given:
    return given(kernel(op, *inputs, **settings), {"main.py": source}, HERE)


def said(things: Given) -> list[str]:
    return [each.says for each in oddities(things)]


# ------------------------------------------------------------------------------------------- names


def test_inputs_have_the_names_of_the_definition() -> None:
    assert input_names(kernel("Conv2D", floats(1, 2, 2, 1), floats(1, 1, 1, 1))) == ["input", "filter"]
    assert input_names(kernel("ConcatV2", floats(1), floats(1), numbers(0, shape=()), N=2)) == [
        "values[0]",
        "values[1]",
        "axis",
    ]
    assert input_names(kernel("MyOwnOp", floats(1), floats(1))) == ["input 0", "input 1"]


def test_a_rewritten_op_has_more_inputs_than_it_was_given() -> None:
    assert input_names(kernel("_FusedMatMul", floats(1, 1), floats(1, 1), floats(1)))[:2] == ["a", "b"]


def test_arguments_as_the_line_writes_them() -> None:
    source = "x = 1\ny = tf.nn.conv2d(images, filters=kernel, strides=1, padding='VALID')\n"
    things = of("Conv2D", floats(1, 2, 2, 1), floats(1, 1, 1, 1), source=source)
    assert [each.expression for each in things.arguments] == ["images", "kernel"]


def test_a_call_of_another_function_says_nothing_of_the_op() -> None:
    things = of("Conv2D", floats(1), floats(1), source="\ny = layer(images, kernel)\n")
    assert [each.written for each in things.arguments] == ["", ""]


def test_numbers_that_stand_in_the_call_where_no_op_was_in_flight() -> None:
    source = "LIMIT = 2 ** 40\nfifo_queue(-1, shapes=[3, LIMIT], name='q', other=thing)\n"
    found = as_written("FIFOQueueV2", {"main.py": source}, HERE, ())
    assert found is not None
    assert found.settings == {"argument 1": -1, "shapes": [3, 2**40]}


@pytest.mark.parametrize("text", ["10 ** 10 ** 10", "1 << 10 ** 9", "x", "f(3)", "'a' * 3", "1 // 0", "[1, x]"])
def test_what_is_no_plain_number_is_left_alone(text: str) -> None:
    found = as_written("fill", {"main.py": f"\nfill({text})\n"}, HERE, ())
    assert found is not None
    assert found.settings == {}


# ----------------------------------------------------------------------------------------- oddities


def test_a_rank_that_tensorflow_refuses_in_graphs() -> None:
    source = "\ntf.nn.conv2d(x, w, 1, 'SAME')\n"
    (odd, _) = oddities(of("Conv2D", floats(4, 10), floats(10, 5), source=source))
    assert odd.says == "`input` has 2 dimensions, [4, 10], and Conv2D takes 4 dimensions"
    assert odd.code == "tf.debugging.assert_rank(x, 4)"
    assert odd.sure


def test_a_batch_is_missing() -> None:
    (odd,) = oddities(of("DrawBoundingBoxes", floats(8, 8, 3), floats(1, 1, 4)))
    assert "tf.expand_dims(images, 0)" in odd.instead


@pytest.mark.parametrize(
    ("splits", "wrong"),
    [((1, 2), "begins with 1"), ((0, 3, 2), "goes back"), ((0, 9), "ends at 9, and `rt_dense_values` has 4 values")],
)
def test_splits(splits: tuple[int, ...], wrong: str) -> None:
    (odd,) = said(of("RaggedGather", numbers(*splits), floats(4), PARAMS_RAGGED_RANK=1)) or [""]
    assert wrong.replace("rt_dense", "params_dense") in odd


def test_indices() -> None:
    assert "`indices` holds 7 ([0, 7]), and no dimension of `params` [3, 4] is that long" in said(
        of("Gather", floats(3, 4), numbers(0, 7))
    )
    assert "`indices` holds -1 ([-1, 1]): an index below 0" in said(of("Gather", floats(3, 4), numbers(-1, 1)))
    assert said(of("Gather", floats(3, 4), numbers(0, 2))) == []


def test_sizes() -> None:
    assert said(of("DepthToSpace", floats(1, 2, 2, 4), block_size=0)) == ["`block_size` is 0"]
    assert said(of("Fill", numbers(-5), floats())) == ["`dims` is [-5]"]
    assert said(of("ResizeBicubic", floats(1, 2, 2, 1), numbers(-2, 4))) == ["`size` is [-2, 4]"]
    (huge,) = said(of("ResizeBicubic", floats(1, 2, 2, 1), numbers(2**31, 2**20)))
    assert "which makes 2.25e+15 elements" in huge


def test_minus_one_where_it_means_something() -> None:
    assert said(of("Reshape", floats(4), numbers(-1, 2))) == []


def test_a_window_that_does_not_fit() -> None:
    (odd,) = said(of("Conv2D", floats(1, 10, 2, 1), floats(3, 3, 1, 3), strides=[1, 1, 1, 1], padding="VALID"))
    assert odd == "`filter` covers [3, 3], and `input` [1, 10, 2, 1] has only [10, 2]"


def test_a_window_in_another_layout() -> None:
    pool = of("MaxPool3D", floats(1, 4, 4, 1, 2), ksize=[1, 2, 2, 2, 1], padding="VALID", data_format="NDHWC")
    assert said(pool) == ["`ksize` covers [2, 2, 2], and `input` [1, 4, 4, 1, 2] has only [4, 4, 1]"]
    assert said(of("MaxPool", floats(1, 2, 4, 1), ksize=[1, 1, 2, 1], padding="VALID", data_format="NCHW")) == []


def test_strides_of_height_and_width_alone() -> None:
    (odd,) = oddities(of("Conv2D", strides=[2, 2], dilations=[1, 1, 1, 1]))
    assert "strides=[1, 2, 2, 1]" in odd.instead


def test_no_sizes_at_all() -> None:
    (odd,) = said(of("MaxPool", floats(1, 4, 4, 1), ksize=[], strides=[1, 1, 1, 1]))
    assert odd == "`ksize` is empty: MaxPool takes one number per dimension"


def test_the_feature_that_has_no_elements() -> None:
    keys = Tensor(dtype="string", shape=(2,), strings=(b"label", b"tags"))
    empty = Tensor(dtype="string", shape=(0,))
    parse = kernel("ParseExampleV2", empty, empty, empty, keys, empty)
    shapes = Attribute(kind="list(shape)", value=[[], [-1, 0]])
    things = given(Kernel(**{**_fields(parse), "attributes": {"dense_shapes": shapes}}), {}, None)
    assert any("the feature 'tags'" in each and "[-1, 0]" in each for each in said(things))


def _fields(record: Kernel) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@pytest.mark.parametrize("shape", [(-1,), (1 << 70,), (1,) * 300, (1 << 62, 1 << 62)])
def test_a_shape_that_no_tensor_has(shape: tuple[int, ...]) -> None:
    things = of("Gather", Tensor(dtype="float32", shape=shape), Tensor(dtype="int64", shape=shape, contents=b"abc"))
    assert [each.values for each in things.arguments] == [(), ()]
    assert all(isinstance(words, str) for words in said(things))


# ------------------------------------------------------------------------------------ checks in words


LSTM = ("BlockLSTM", numbers(9, shape=()), floats(3, 4, 4), floats(4, 5))


@pytest.mark.parametrize(
    ("text", "things", "says"),
    [
        ("limit <= dim0_size (9 vs. 3) ", of(*LSTM), "`seq_len_max` is 9, and may be at most 3, dimension 0 of `x`"),
        # The op counts up, and fails on the way to the number that is wrong.
        ("limit <= dim0_size (4 vs. 3) ", of(*LSTM), "`seq_len_max` is 9, and may be at most 3, dimension 0 of `x`"),
        (
            "d < dims() (1 vs. 0) ",
            of("FusedPadConv2D", floats(), numbers(0, 0, shape=(1, 2))),
            "`input` (a scalar, float32) needs at least 2 dimensions: it asks for dimension 1 of a scalar",
        ),
        ("d >= 0 (-1 vs. 0) ", of("MyOp", floats()), "`input 0` (a scalar, float32) needs at least 1 dimension"),
        (
            "dims() == NDIMS (1 vs. 2) Asking for tensor of 2 dimensions from a tensor of 1 dimensions",
            of("MyOp", floats(3), floats(2, 2)),
            "`input 0` (float32 [3]) needs 2 dimensions",
        ),
        ("1 == NumElements() (1 vs. 3) Must have a one element tensor", of("MyOp", floats(3)), "needs a single number"),
        (
            "dtype() == expected_dtype (3 vs. 1)  float expected, got int32",
            of("MyOp", Tensor(dtype="int32", shape=(2,))),
            "`input 0` (int32 [2]) needs the type float32",
        ),
        (
            "dtype() == expected_dtype (8 vs. 1)  float expected, got complex64",
            of("ResourceApplyGradientDescent", Tensor(dtype="resource", shape=()), floats(), floats()),
            "a variable (`var`) holds complex64, and is read as float32",
        ),
        ("size >= 0 (-8 vs. 0) ", of("MyOp", numbers(2, -8)), "`input 0[1]` is -8: a size below 0"),
        ("0 <= new_num_elements (0 vs. -46117) ", Given("Op", (), {"shape": [1 << 40, 4]}), "`shape` is too large"),
        ("is OK (INVALID_ARGUMENT: Too many dimensions in tensor) ", Given("Op", (), {}), "more than 254 dimensions"),
        (
            "Attr ksize has value 8640000000 out of range for an int32",
            Given("MaxPool", (), {}),
            "`ksize` is 8,640,000,000, which does not fit int32",
        ),
        (
            "range < std::numeric_limits<int32_t>::max() (281474976710656 vs. 2147483647) ",
            Given("Sampler", (), {"range_max": 281474976710656}),
            "`range_max` is 281,474,976,710,656, and must be less than 2,147,483,647, the most int32 holds",
        ),
        (
            "num_threads >= 1 (-1 vs. 1) ",
            Given("pool", (), {"argument 1": -1}),
            "`argument 1` is -1, and must be at least 1",
        ),
        (
            "out_cols > 0 (0 vs. 0) ",
            of("Op", floats(2)),
            "`out_cols`, which Op works out, is 0 and must be more than 0",
        ),
        ("num_threads >= 1 (-1 vs. 1) ", Given("Op", (), {}), "`num_threads` is -1 and must be at least 1"),
        ("dims() < MaxDimensions() (254 vs. 254) ", Given("Pack", (), {}), "more than 254 dimensions"),
        ("DataTypeCanUseMemcpy(dtype()) ", Given("to_dlpack", (), {}), "no plain memory"),
        ("index is OK (INVALID_ARGUMENT: it says why)", Given("Op", (), {}), "it says why"),
    ],
)
def test_shapes_of_checks(text: str, things: Given, says: str) -> None:
    reading = check_words.read(f"Check failed: {text}", things)
    assert reading is not None
    assert says in reading.says


@pytest.mark.parametrize("text", ["Check failed: ret", "Check failed: ", "Check failed: IsAligned() ptr = 0x5645", ""])
def test_a_text_without_a_shape_is_left_alone(text: str) -> None:
    assert check_words.read(text, None) is None


def test_two_arguments_that_could_be_meant_are_both_named() -> None:
    reading = check_words.read("Check failed: d < dims() (1 vs. 0)", of("MyOp", floats(), floats()))
    assert reading is not None
    assert reading.argument == ""
    assert "`input 0` (a scalar, float32) or `input 1` (a scalar, float32)" in reading.says
