"""A call shrinks to the smallest one that still passes the test, on tests whose smallest call is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultlens.op_model.arrays import Array
from faultlens.op_model.op_call import Argument, Call, Setting
from faultlens.op_model.shrink_op import OutOfTimeError, shrink


def call(*arrays: Array, settings: tuple[Setting, ...] = ()) -> Call:
    arguments = tuple(Argument(f"x{number}", (array,)) for number, array in enumerate(arrays))
    return Call("Foo", "Foo", arguments, settings)


def counted(array: Array) -> Array:
    return array._replace(values=tuple(range(1, array.size + 1)))


def shrunk(start: Call, test: Callable[[Call], bool]) -> Call:
    assert test(start), "the start must pass"
    found = shrink(start, test)
    assert test(found), "what is found must pass"
    return found


def test_to_nothing_when_everything_passes() -> None:
    start = call(
        counted(Array("int32", (8, 16, 3))),
        Array("string", (4,), values=(b"some", b"text", b"", b"x")),
        settings=(Setting("size", "int", 1 << 40), Setting("mode", "string", "SAME", optional=True)),
    )
    found = shrunk(start, lambda _: True)
    assert [array.shape for array in found.arrays()] == [(), ()]
    assert [(array.values, array.fill) for array in found.arrays()] == [(None, 0), (None, b"")]
    assert found.settings == (Setting("size", "int", 0),)


def test_sizes_that_must_agree_shrink_together() -> None:
    def multiplies(each: Call) -> bool:
        left, right = each.arrays()
        return len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[0] > 2

    found = shrunk(call(Array("float32", (32, 100)), Array("float32", (100, 7))), multiplies)
    assert [array.shape for array in found.arrays()] == [(1, 3), (3, 1)]


def test_the_one_value_that_matters_is_found() -> None:
    ids = [number % 97 for number in range(500)]
    ids[321] = 2_000_000_000_000

    def out_of_range(each: Call) -> bool:
        (array,) = each.arrays()
        values = array.values if array.values is not None else (array.fill,)
        return array.size > 0 and any(isinstance(value, int) and value >= 1000 for value in values)

    (found,) = shrunk(call(Array("int64", (500,), values=tuple(ids))), out_of_range).arrays()
    assert found.shape in ((), (1,))
    assert found.values is None
    assert isinstance(found.fill, int)
    assert 1000 <= found.fill < 2000  # halved as long as it is still out of range


def test_all_zeros_rather_than_ones() -> None:
    (found,) = shrunk(call(counted(Array("float32", (3,)))), lambda each: next(each.arrays()).shape == (3,)).arrays()
    assert found == Array("float32", (3,), values=None, fill=0.0)

    def no_zero(each: Call) -> bool:
        (array,) = each.arrays()
        return 0 not in (array.values or (array.fill,))

    (ones,) = shrunk(call(counted(Array("int32", (3,)))), no_zero).arrays()
    assert ones == Array("int32", (), values=None, fill=1)


def test_settings_with_a_default_go_and_numbers_become_small() -> None:
    settings = (
        Setting("strides", "list(int)", (1, 8, 8, 1)),
        Setting("rate", "float", 0.25, optional=True),
        Setting("name", "string", "abc", optional=True),
    )
    found = shrunk(call(settings=settings), lambda each: each.settings[0].value[1] >= 3)
    assert found.settings == (Setting("strides", "list(int)", (0, 4, 0, 0)),)


def test_lists_of_inputs_become_shorter() -> None:
    start = Call("Foo", "Foo", (Argument("values", tuple(Array("int32", (n,)) for n in (3, 4, 5)), is_list=True),))
    found = shrunk(start, lambda each: any(array.shape == (4,) for array in each.arrays()))
    assert [array.shape for array in found.arrays()] == [(4,)]


def test_the_part_of_an_array_is_kept_that_is_needed() -> None:
    array = counted(Array("int32", (4, 4)))
    (found,) = shrunk(
        call(array), lambda each: 16 in (next(each.arrays()).values or (next(each.arrays()).fill,))
    ).arrays()
    assert found == Array("int32", (), values=None, fill=16)


def test_what_was_found_counts_when_time_is_up() -> None:
    left = [5]

    def slow(_: Call) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfTimeError
        return True

    start = call(counted(Array("int32", (64, 64))))
    assert shrink(start, slow) != start


@pytest.mark.parametrize("seed", range(5))
def test_an_unreliable_test_does_no_harm(seed: int) -> None:
    """Some crashes happen only sometimes: the search ends, and ends with something that passed."""
    import random

    chance = random.Random(seed)
    passed = []

    def sometimes(each: Call) -> bool:
        happens = chance.random() < 0.5
        if happens:
            passed.append(each)
        return happens

    start = call(counted(Array("int32", (16, 16))))
    found = shrink(start, sometimes)
    assert found in (start, *passed)
