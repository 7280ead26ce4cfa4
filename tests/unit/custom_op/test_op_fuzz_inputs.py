"""What ops are fuzzed with, and how it travels: outlines, contents, calls as bytes, scripts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from faultlens.custom_op.fuzz import plans, wire
from faultlens.custom_op.fuzz.changes import variants
from faultlens.custom_op.fuzz.contents import array_of, index_like, settings_of
from faultlens.custom_op.fuzz.plans import Plan, Slot
from faultlens.custom_op.fuzz.script import script_of
from faultlens.custom_op.fuzz.session import Death, Outcome
from faultlens.custom_op.fuzz.suspects import Suspect, is_modest, suspects_of
from faultlens.custom_op.fuzz.tested import Bounds, Kernel, OpUnderTest
from faultlens.custom_op.fuzz.vast import NEGATIVE, NOTHING, is_vast, modest, overflowing, vast
from faultlens.custom_op.fuzz.verdicts import severity_of
from faultlens.op_model.arrays import Array
from faultlens.op_model.op_call import Argument, Call
from faultlens.op_model.op_definition import AttributeDefinition, Definition, Input
from faultlens.sandbox.trial.trial import SCRIPT

LIBRARY = "/nowhere/ops.so"
GATHER = OpUnderTest(
    definition=Definition(
        op="MyGather",
        inputs=(Input("values", type_attribute="T"), Input("places", dtype="int32")),
        attributes=(AttributeDefinition("T", "type"), AttributeDefinition("width", "int")),
        function="my_gather",
        library=LIBRARY,
        parameters=("values", "places", "width", "name"),
    ),
    bounds={"T": Bounds(("float32", "float64")), "width": Bounds(None, 1)},
    kernels=(Kernel("CPU", {"T": ("float64", "int8")}),),
)


def test_types_are_those_that_the_op_allows_and_a_kernel_is_for() -> None:
    assert GATHER.dtypes("T") == ("float64",)
    assert plans.why_not(GATHER) is None
    assert plans.why_not(OpUnderTest(GATHER.definition, kernels=(Kernel("GPU"),))) is not None


def test_first_inputs_have_all_ranks_and_empty_and_huge_ones() -> None:
    shapes = {
        slot.shape for plan in (*plans.first(GATHER), *plans.special(GATHER)) for slots in plan.slots for slot in slots
    }
    assert {len(shape) for shape in shapes} == set(range(9))
    assert any(0 in shape and max(shape) >= 1 << 40 for shape in shapes)


def test_variants_change_sizes_contents_settings_and_types() -> None:
    plan = Plan((("T", "float64"),), ((Slot((4, 4)),), (Slot((4,)),)), (("width", 1),))
    found = list(variants(GATHER, plan))
    assert plan not in found
    assert plan._replace(slots=((Slot((17, 17)),), (Slot((17,)),))) in found  # equal sizes together
    assert plan._replace(slots=((Slot((4, 4)),), (Slot((5,)),))) in found  # one alone
    contents = {each.slots[1][0].content for each in found}
    assert {("last", value) for value in (-1, 4, 5, 1 << 31, 1 << 62)} <= contents
    assert {each.settings for each in found} >= {(("width", 1 << 62),), (("width", 2),)}
    assert not any(setting == ("width", 0) for each in found for setting in each.settings)  # below its minimum
    assert max(sum(math.prod(s.shape) for s in slots) for each in found for slots in each.slots) > 1 << 20


def test_values_fit_their_type() -> None:
    assert array_of("uint8", (2,), "negative").fill == 0
    assert array_of("int8", (3,), ("last", 1 << 40)).values == (1, 1, 127)
    assert array_of("string", (1,), ("last", -1)).fill == b"-1"
    assert any(math.isnan(each) for each in array_of("float32", (6,), "special").values or ())
    assert list(index_like([7]))[:6] == [-1, 0, 1, 6, 7, 8]
    assert settings_of("list(int)", None, 2)[0] == (4, 4)


@pytest.mark.parametrize("content", ["ramp", "special", ("last", 1 << 31)])
@pytest.mark.parametrize("dtype", ["float64", "complex64", "string", "bool", "int64"])
def test_calls_travel_unchanged(dtype: str, content: plans.Content) -> None:
    op = OpUnderTest(Definition("X", (Input("x", dtype=dtype),), (), "x", LIBRARY, ("x",)), kernels=(Kernel("CPU"),))
    call = plans.call_of(op, Plan((), ((Slot((2, 3), content),),)))
    assert repr(wire.understood(wire.asked(call, "eager"), "X", LIBRARY)) == repr(call)  # NaN is no NaN


def suspect(kind: str, plan: Plan, busy: bool = True) -> Suspect:
    outcome = Outcome({}, Death(kind, "it did not come back", busy=busy))
    return next(suspects_of(plans.call_of(GATHER, plan), "eager", {}, outcome, Path(LIBRARY)))


MODEST = Plan((("T", "float64"),), ((Slot((4, 4)),), (Slot((4,)),)), (("width", 1),))


def test_who_asks_for_much_may_get_it() -> None:
    large = MODEST._replace(settings=(("width", 1 << 40),))
    assert is_modest(plans.call_of(GATHER, MODEST)) and not is_modest(plans.call_of(GATHER, large))
    assert severity_of(suspect("greedy", MODEST)) == "error" and severity_of(suspect("greedy", large)) == "note"
    assert severity_of(suspect("endless", large)) == "note"
    assert severity_of(suspect("endless", large, busy=False)) == "error"  # it waits: for nothing


@pytest.mark.parametrize("kind", ["deadly", "greedy", "endless"])
def test_what_is_seen_once_is_a_note(kind: str) -> None:
    for each in (suspect(kind, MODEST), suspect(kind, MODEST, busy=False)):
        assert severity_of(each) == "error" and severity_of(each, again=False) == "note"


def test_products_of_sizes_overflow_and_take_no_memory() -> None:
    found = list(vast(MODEST))
    shapes = [slot.shape for each in found for slots in each.slots for slot in slots]
    assert (NOTHING, NOTHING) in shapes and (NEGATIVE, NEGATIVE) in shapes and any(max(s) > 1 << 31 for s in shapes)
    arrays = [array for each in found for array in plans.call_of(GATHER, each).arrays()]
    assert all(is_vast(array) for array in arrays if array.size * 8 >= 1 << 30)
    largest = max(found, key=lambda each: math.prod(each.slots[0][0].shape))
    death = suspect("deadly", largest)
    text = script_of(death)[SCRIPT].decode()
    compile(text, SCRIPT, "exec")
    assert "zeros([65536, 65536], 'float64')" in text
    three = Plan((("T", "float64"),), ((Slot((4, 4, 4)),), (Slot((4,)),)), (("width", 1),))
    assert next(iter(vast(three))).slots[0][0].shape.count(0) == 1  # what has no elements comes first


@pytest.mark.parametrize("probe", ["eager", "graph", "dataset", "threads", "vectorized", "gradient", "compiled"])
@pytest.mark.parametrize("rule", ["crash", "leak", "uninitialised-output", "shape-disagrees", "input-modified"])
def test_scripts_are_python(probe: str, rule: str) -> None:
    shown = suspect("deadly", MODEST)._replace(probe=probe, rule=rule)
    text = script_of(shown, [shown.call])[SCRIPT].decode()
    compile(text, SCRIPT, "exec")
    assert "tf.load_op_library('/nowhere/ops.so')" in text and "library.my_gather(" in text


@pytest.mark.parametrize(
    ("shapes", "sizes"),
    [
        ([(65536, 65536)], "65536 × 65536"),
        ([(65536,), (65536,)], "65536 × 65536"),
        ([(1, 46341, 46341)], "46341 × 46341"),
        ([(1000,), (1000,)], None),
        ([(0, 1 << 40)], None),
    ],
)
def test_products_that_no_int_holds(shapes: list[tuple[int, ...]], sizes: str | None) -> None:
    arguments = tuple(Argument(f"x{number}", (Array("float32", shape),)) for number, shape in enumerate(shapes))
    call = Call("Op", "op", arguments)
    assert overflowing(call) == sizes
    smaller = modest(call)
    assert smaller is not None and overflowing(smaller) is None
