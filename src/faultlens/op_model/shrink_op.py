"""Makes a call of an op smaller while it still does what it did. Pure but for the question that is asked.

Greedy: every pass tries simpler calls and keeps those that pass, until no pass finds anything more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from faultlens.op_model.arrays import Array, Value, one, simplest, zero
from faultlens.op_model.op_call import Call

MAX_VALUES = 256  # arrays with more are not simplified value by value


class OutOfTimeError(Exception):
    """Raised by a test to end the search; what was found until then counts."""


def shrink(call: Call, test: Callable[[Call], bool]) -> Call:
    """The smallest call found that passes the test. `test` may raise OutOfTimeError."""
    search = _Search(call, test)
    try:
        before = None
        while before != search.call:
            before = search.call
            for simplify in _PASSES:
                simplify(search)
    except OutOfTimeError:
        pass
    return search.call


class _Search:
    def __init__(self, call: Call, test: Callable[[Call], bool]) -> None:
        self.call = call
        self._test = test
        self._tried = {call}

    def attempt(self, candidate: Call) -> bool:
        if candidate in self._tried or _weight(candidate) >= _weight(self.call):
            return False
        self._tried.add(candidate)
        if self._test(candidate):
            self.call = candidate
            return True
        return False

    def arrays(self) -> Iterator[tuple[int, int]]:
        """Where arrays stand, as far as they still do when it is their turn."""
        for i in range(len(self.call.arguments)):
            for j in range(len(self.call.arguments[i].arrays)):
                yield i, j

    def at(self, i: int, j: int) -> Array:
        return self.call.arguments[i].arrays[j]

    def attempt_array(self, i: int, j: int, array: Array) -> bool:
        return self.attempt(_with_array(self.call, i, j, array))


# --------------------------------------------------------------------------------------------- the passes


def _drop_settings(search: _Search) -> None:
    """What has a default may go."""
    call = search.call
    if search.attempt(call._replace(settings=tuple(each for each in call.settings if not each.optional))):
        return
    for name in [each.name for each in call.settings if each.optional]:
        kept = tuple(each for each in search.call.settings if each.name != name)
        search.attempt(search.call._replace(settings=kept))


def _fill(search: _Search) -> None:
    """All zeros or all ones: every array at once, then one by one."""
    for value in (zero, one):
        if search.attempt(_each_array(search.call, lambda array, value=value: _filled(array, value(array.dtype)))):  # type: ignore[misc]
            return
    for i, j in search.arrays():
        for value in (zero, one):
            array = search.at(i, j)
            if _is_filled(array, zero(array.dtype)) or search.attempt_array(i, j, _filled(array, value(array.dtype))):
                break


def _sizes_together(search: _Search) -> None:
    """Sizes that are equal are often equal for a reason: they shrink in all arrays at once."""
    for size in sorted({size for array in search.call.arrays() for size in array.shape if size > 1}, reverse=True):
        now = size
        while target := next((to for to in _smaller(now) if search.attempt(_resized(search.call, now, to))), None):
            now = target


def _sizes(search: _Search) -> None:
    for i, j in search.arrays():
        for axis in range(len(search.at(i, j).shape)):
            while any(
                search.attempt_array(i, j, _cut(search.at(i, j), axis, size, at_end))
                for size in _smaller(search.at(i, j).shape[axis])
                for at_end in ((False, True) if search.at(i, j).values else (False,))
            ):
                pass


def _ranks(search: _Search) -> None:
    """Dimensions of size 1 may go: all at once, or one after the other."""
    for i, j in search.arrays():
        array = search.at(i, j)
        if search.attempt_array(i, j, array._replace(shape=tuple(size for size in array.shape if size != 1))):
            continue
        axis = 0
        while axis < len(search.at(i, j).shape):
            array = search.at(i, j)
            without = array.shape[:axis] + array.shape[axis + 1 :]
            if array.shape[axis] != 1 or not search.attempt_array(i, j, array._replace(shape=without)):
                axis += 1


def _lists(search: _Search) -> None:
    for i, argument in enumerate(search.call.arguments):
        for j in reversed(range(len(argument.arrays) if argument.is_list else 0)):
            arrays = search.call.arguments[i].arrays
            if len(arrays) > 1:
                search.attempt(_with_arrays(search.call, i, arrays[:j] + arrays[j + 1 :]))


def _values(search: _Search) -> None:
    """Blocks of values become zero, then what is left becomes small."""
    for i, j in search.arrays():
        block = search.at(i, j).size // 2
        while block and len(search.at(i, j).values or ()) and block * MAX_VALUES >= search.at(i, j).size:
            for start in range(0, search.at(i, j).size, block):
                search.attempt_array(i, j, _zeroed(search.at(i, j), start, start + block))
            block //= 2
        for index in range(min(search.at(i, j).size, MAX_VALUES)):
            while any(
                search.attempt_array(i, j, _with_value(search.at(i, j), index, value))
                for value in _simpler(_value_at(search.at(i, j), index))
            ):
                pass


def _numbers_in_settings(search: _Search) -> None:
    for index in range(len(search.call.settings)):
        for place in _number_places(search.call.settings[index].value):
            while any(
                search.attempt(_with_setting(search.call, index, place, value))
                for value in _simpler(_number_at(search.call.settings[index].value, place))
            ):
                pass


_PASSES: tuple[Callable[[_Search], None], ...] = (
    _drop_settings,
    _fill,
    _sizes_together,
    _lists,
    _sizes,
    _ranks,
    _values,
    _numbers_in_settings,
)


# ------------------------------------------------------------------------------------------- simplicity


def _weight(call: Call) -> tuple[int, ...]:
    """What must become less: settings, inputs, their sizes, their dimensions, what there is to say of values."""
    arrays = list(call.arrays())
    return (
        len(call.settings),
        len(arrays),
        sum(sum(array.shape) for array in arrays),
        sum(len(array.shape) for array in arrays),
        sum(_weight_of_values(array) for array in arrays)
        + sum(
            _weight_of(_number_at(each.value, place)) for each in call.settings for place in _number_places(each.value)
        ),
    )


def _weight_of_values(array: Array) -> int:
    if array.values is not None:
        return sum(map(_weight_of, array.values)) + 1
    return 1 << 20 if array.fill == "random" else _weight_of(array.fill)


def _weight_of(value: Any) -> int:
    if isinstance(value, int):
        return 2 * value.bit_length() + (value < 0)
    return 3 * len(repr(value)) if value not in (0, 1) else int(value == 1)


# ------------------------------------------------------------------------------------- simpler numbers


def _smaller(size: int) -> Iterator[int]:
    """Sizes to try instead, the smallest first."""
    for target in dict.fromkeys((1, 2, size // 2, size - 1 if size <= 8 else 1)):
        if 0 < target < size:
            yield target


def _simpler(value: Value | None) -> Iterator[Value]:
    if isinstance(value, bool) or value is None:
        if value:
            yield False
    elif isinstance(value, int):
        half = value // 2 if value > 0 else -(-value // 2)
        for each in dict.fromkeys((0, 1, 2, -1 if value < 0 else 0, half)):
            if abs(each) < abs(value):
                yield each
    elif isinstance(value, (float, complex)):
        for number in (type(value)(0), type(value)(1)):
            if value not in (0, 1):
                yield number
        if isinstance(value, float) and math.isfinite(value) and value not in (0, 1) and value != int(value):
            yield float(int(value))
    elif isinstance(value, bytes) and value:
        for part in dict.fromkeys((b"", value[: len(value) // 2], value[len(value) // 2 :])):
            if part != value:
                yield part


# -------------------------------------------------------------------------------------- changed calls


def _with_array(call: Call, i: int, j: int, array: Array) -> Call:
    arrays = call.arguments[i].arrays
    return _with_arrays(call, i, arrays[:j] + (array,) + arrays[j + 1 :])


def _with_arrays(call: Call, i: int, arrays: tuple[Array, ...]) -> Call:
    argument = call.arguments[i]._replace(arrays=arrays)
    return call._replace(arguments=call.arguments[:i] + (argument,) + call.arguments[i + 1 :])


def _each_array(call: Call, change: Callable[[Array], Array]) -> Call:
    arguments = tuple(each._replace(arrays=tuple(map(change, each.arrays))) for each in call.arguments)
    return call._replace(arguments=arguments)


def _resized(call: Call, size: int, target: int) -> Call:
    def change(array: Array) -> Array:
        for axis, length in enumerate(array.shape):
            if length == size:
                array = _cut(array, axis, target)
        return array

    return _each_array(call, change)


def _with_setting(call: Call, index: int, place: tuple[int, ...], value: Value) -> Call:
    setting = call.settings[index]
    setting = setting._replace(value=_put(setting.value, place, value))
    return call._replace(settings=call.settings[:index] + (setting,) + call.settings[index + 1 :])


def _put(value: Any, place: tuple[int, ...], number: Value) -> Any:
    if not place:
        return number
    index = place[0]
    return value[:index] + (_put(value[index], place[1:], number),) + value[index + 1 :]


def _number_places(value: Any, place: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _number_places(item, (*place, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def _number_at(value: Any, place: tuple[int, ...]) -> Any:
    for index in place:
        value = value[index]
    return value


# ------------------------------------------------------------------------------------- changed arrays


def _filled(array: Array, value: Value) -> Array:
    return array._replace(values=None, fill=value)


def _is_filled(array: Array, value: Value) -> bool:
    return array.values is None and array.fill == value


def _cut(array: Array, axis: int, size: int, at_end: bool = False) -> Array:
    """The first or the last elements along one axis."""
    shape = array.shape[:axis] + (size,) + array.shape[axis + 1 :]
    if array.values is None:
        return array._replace(shape=shape)
    inner = math.prod(array.shape[axis + 1 :])
    block, kept = inner * array.shape[axis], inner * size
    offset = block - kept if at_end else 0
    values = [
        value
        for start in range(0, len(array.values), block)
        for value in array.values[start + offset : start + offset + kept]
    ]
    return simplest(array._replace(shape=shape, values=tuple(values)))


def _zeroed(array: Array, start: int, stop: int) -> Array:
    if array.values is None:
        return array
    zeros = (zero(array.dtype),) * (min(stop, len(array.values)) - start)
    return simplest(array._replace(values=array.values[:start] + zeros + array.values[stop:]))


def _value_at(array: Array, index: int) -> Value | None:
    if array.values is not None:
        return array.values[index] if index < len(array.values) else None
    return array.fill if index == 0 and array.fill != "random" else None


def _with_value(array: Array, index: int, value: Value) -> Array:
    if array.values is None:
        return array._replace(fill=value)
    return simplest(array._replace(values=array.values[:index] + (value,) + array.values[index + 1 :]))
