"""A failed CHECK in the user's words. A few shapes of text cover nearly all of them; the recorded arguments of the op
say which argument the numbers in it belong to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from faultlens.diagnosis.evidence.arguments import Argument, Given
from faultlens.knowledge.op_names import plain
from faultlens.text.quantities import count
from faultlens.text.safe import one_line

_NUMBER = r"-?\d+"
_COMPARED = re.compile(
    rf"(?P<left>[^\s<>=!]+(?: ?[-+*/] ?[^\s<>=!]+)*) ?(?P<how><=|>=|==|!=|<|>) ?(?P<right>[^\s(]+(?:\([^)]*\))?)"
    rf"\s*\((?P<a>{_NUMBER}) vs\. (?P<b>{_NUMBER})\)"
)
_BOUNDS = {
    "<=": "may be at most",
    "<": "must be less than",
    ">=": "must be at least",
    ">": "must be more than",
    "==": "must be",
    "!=": "must not be",
}
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "==", "!=": "!="}
_FEW = 2  # arguments that may be meant
_LARGE = 1 << 31


class Reading(NamedTuple):
    """Completes "Conv2D died because …"."""

    says: str
    instead: str = ""
    argument: str = ""  # the one at fault, where it could be told
    code: str = ""


def read(text: str, given: Given | None) -> Reading | None:
    """None: the text has no shape that is known."""
    known = given or Given("the op", (), {})
    for pattern, reader in _SHAPES:
        if (match := pattern.search(text)) and (reading := reader(match, known)):
            return reading
    return None


# ---------------------------------------------------------------------------------------- the shapes


def _dimension(match: re.Match[str], given: Given) -> Reading | None:
    """d < dims() (2 vs. 0)"""
    return _lacks(int(match["dimension"]), int(match["rank"]), given)


def _last_dimension(match: re.Match[str], given: Given) -> Reading | None:
    """d >= 0 (-1 vs. 0): the dimension before the first, as "the last one" of a scalar is."""
    return _lacks(-1, 0, given) if match["dimension"] == "-1" else None


def _lacks(dimension: int, rank: int, given: Given) -> Reading:
    which = "the last dimension" if dimension < 0 else f"dimension {dimension}"
    whose = _among(given, lambda argument: argument.rank == rank)
    tensor = "a scalar" if rank == 0 else f"a tensor of {_dimensions_in_words(rank)}"
    says = f"it asks for {which} of {tensor}"
    return _of(whose, says, f"at least {_dimensions_in_words(max(dimension, 0) + 1)}")


def _channels(match: re.Match[str], given: Given) -> Reading | None:
    """Invalid index from the dimension: 3, 0, C: the index, the layout, and the letter in it."""
    index, layout, letter = int(match["index"]), match["layout"], match["letter"]
    short = [each for each in given.arguments if each.name.endswith(("sizes", "shape")) and len(each.integers) <= index]
    if len(short) == 1 and short[0].integers:
        name, sizes = short[0].name, list(short[0].integers)
        says = f"`{name}` is {sizes}: a shape of {_dimensions_in_words(len(sizes))}, too few to have channels"
        return Reading(says, f"write one size per dimension into `{name}`", name)
    names = {"C": "its channels", "N": "its batch", "H": "its height", "W": "its width"}
    whose = _among(given, lambda argument: 0 < argument.rank <= index)
    order = {"0": " (NHWC)", "1": " (NCHW)"}.get(layout, "")
    says = f"it looks for {names.get(letter, letter)} in dimension {index}{order} of a tensor that has none"
    return _of(whose, says, f"at least {_dimensions_in_words(index + 1)}")


def _rank(match: re.Match[str], given: Given) -> Reading | None:
    """dims() == NDIMS (1 vs. 2) Asking for tensor of 2 dimensions from a tensor of 1 dimensions"""
    has, wanted = int(match["has"]), int(match["wanted"])
    whose = _among(given, lambda argument: argument.rank == has)
    says = f"it takes a tensor of {_dimensions_in_words(has)} for one of {wanted}"
    return _of(whose, says, "a single number" if wanted == 0 else _dimensions_in_words(wanted))


def _one_element(match: re.Match[str], given: Given) -> Reading | None:
    """1 == NumElements() (1 vs. 3) Must have a one element tensor"""
    has = int(match["has"])
    whose = _among(given, lambda argument: argument.size == has)
    return _of(whose, f"it takes a tensor of {has} elements for a single number", "a single number")


def _dtype(match: re.Match[str], given: Given) -> Reading | None:
    """dtype() == expected_dtype (8 vs. 1)  float expected, got complex64"""
    got, wanted = _type_name(match["got"]), _type_name(match["wanted"])
    whose = _among(given, lambda argument: argument.tensor.dtype == got)
    variables = [each.name for each in given.arguments if each.tensor.dtype == "resource"]
    if not whose and variables:
        held = f"a variable ({', '.join(f'`{name}`' for name in variables)})"
        fix = f"give all variables and values one type, {wanted}"
        return Reading(f"{held} holds {got}, and is read as {wanted}", fix)
    reading = _of(whose, f"it reads a tensor of {got} as {wanted}", f"the type {wanted}")
    cast = f"tf.cast({whose[0].expression}, tf.{wanted})" if len(whose) == 1 else ""
    return reading._replace(instead=f"{reading.instead}: `{cast}`" if cast else reading.instead)


def _overflow(match: re.Match[str], given: Given) -> Reading:
    """0 <= new_num_elements (0 vs. -46…); overflow when multiplying 90000000000000000 with 900000000"""
    numbers = match.groupdict()
    product = f"{int(numbers['a']):,} × {int(numbers['b']):,}" if numbers.get("a") and numbers.get("b") else ""
    says = f"a tensor of {product} elements" if product else "a tensor of more elements"
    says = f"it asks for {says}{', more' if product else ''} than 64 bits can count"
    large = [name for name, value in _numbered(given) if value >= _LARGE]
    large += [f"`{each.name}`" for each in given.arguments if each.rank and max(each.integers, default=0) >= _LARGE]
    large += [f"`{name}`" for name, value in given.settings.items() if _is_large(value)]
    if not large:
        return Reading(says, "bound the sizes before the call")
    named = f"{' and '.join(large[:_FEW])} {'is' if len(large) == 1 else 'are'} too large"
    return Reading(f"{named}: {says}", f"bound {large[0]} before the call", large[0])


def _negative(match: re.Match[str], given: Given) -> Reading | None:
    """size >= 0 (-112 vs. 0)"""
    number = int(match["a"])
    whose = _holders(number, given)
    if len(whose) == 1:
        return Reading(f"{whose[0]} is {number}: a size below 0", f"keep {whose[0]} at 0 or above", whose[0])
    return Reading(f"a dimension comes out as {number}, which sizes that overflow do", "keep the sizes small enough")


def _too_many(_: re.Match[str], __: Given) -> Reading:
    return Reading(
        "it makes a tensor of more than 254 dimensions, the most there are",
        "use fewer dimensions: merge some with tf.reshape",
    )


def _no_plain_memory(_: re.Match[str], __: Given) -> Reading:
    says = "a tensor of strings, variants or handles has no plain memory that could be shared"
    return Reading(says, "hand out numbers only", code="assert tensor.dtype.is_floating or tensor.dtype.is_integer")


def _out_of_range(match: re.Match[str], _: Given) -> Reading:
    name, number = match["name"], int(match["a"])
    return Reading(
        f"`{name}` is {number:,}, which does not fit {match['type']}", f"keep `{name}` below {2**31:,}", name
    )


def _null(match: re.Match[str], given: Given) -> Reading | None:
    """'image' Must be non NULL: of an empty tensor there is no memory."""
    empty = [argument for argument in given.arguments if argument.size == 0]
    named = [argument for argument in empty if argument.name == match["name"]] or empty
    if len(named) != 1:
        return None
    argument = named[0]
    says = f"`{argument.name}` is empty, {list(argument.tensor.shape)}, and has no memory"
    code = f"tf.debugging.assert_positive(tf.size({argument.expression}))"
    return Reading(says, f"leave {given.op} out where `{argument.expression}` is empty", f"`{argument.name}`", code)


def _status(match: re.Match[str], _: Given) -> Reading:
    """X is OK (INVALID_ARGUMENT: what TensorFlow would have raised)"""
    return Reading(one_line(match["said"].rstrip(") "), 160))


def _compared(match: re.Match[str], given: Given) -> Reading | None:
    """limit <= dim0_size (3 vs. 2): whatever has a name and two numbers."""
    left, how, right = match["left"], match["how"], match["right"]
    a, b = int(match["a"]), int(match["b"])
    if re.fullmatch(_NUMBER, left):  # 0 < size (0 vs. -1)
        left, right, a, b, how = right, left, b, a, _TURNED[how]
    bound = _holder(right, b, given)
    whose = _single(left, a, given) or (how in ("<", "<=") and _larger(a, b, given)) or _holder(left, a, given)
    if not whose:
        return _inside(left, how, right, a, b, bound, given)
    number = next((value for name, value in _numbered(given) if name == whose), a)
    limit = re.search(r"numeric_limits<(?:std::)?(\w+?)(?:_t)?>::max", match[0])
    counted = f"{b:,}" + (f", {bound}" if bound else f", the most {limit[1]} holds" if limit else "")
    says = f"{whose} is {number:,}, and {_BOUNDS[how]} {counted}"
    return Reading(says, f"pass {_wanted(how, b, bound)} for {whose}", whose, _assertion(whose, how, b, given))


def _inside(left: str, how: str, right: str, a: int, b: int, bound: str | None, given: Given) -> Reading:
    """No argument has the number: it is one that the op worked out."""
    if bound and not re.fullmatch(_NUMBER, right):
        turned = _TURNED[how]
        fix = f"pass {_wanted(turned, a, None)} for {bound}"
        return Reading(f"{bound} is {b:,}, and {_BOUNDS[turned]} {a:,}", fix, bound)
    worked_out = f", which {given.op} works out," if given.arguments or given.settings else ""
    return Reading(f"`{one_line(left, 40)}`{worked_out} is {a:,} and {_BOUNDS[how]} {b:,}")


_SHAPES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Given], Reading | None]], ...] = (
    (re.compile(r"\bd < dims\(\) \((?P<dimension>\d+) vs\. (?P<rank>\d+)\)"), _dimension),
    (re.compile(r"\bd >= 0 \((?P<dimension>-\d+) vs\. 0\)"), _last_dimension),
    (re.compile(r"Invalid index from the dimension: (?P<index>\d+), (?P<layout>\d+), (?P<letter>\w)"), _channels),
    (re.compile(r"Asking for tensor of (?P<wanted>\d+) dimensions from a tensor of (?P<has>\d+) dimensions"), _rank),
    (re.compile(r"(?:dims\(\)|rank) == \w+ \((?P<has>\d+) vs\. (?P<wanted>\d+)\)"), _rank),
    (re.compile(r"NDIMS == (?:\w+\.)?dims\(\) \((?P<wanted>\d+) vs\. (?P<has>\d+)\)"), _rank),
    (re.compile(r"1 == NumElements\(\) \(1 vs\. (?P<has>\d+)\)"), _one_element),
    (re.compile(r"dtype\(\) == expected_dtype \(\d+ vs\. \d+\)\s*(?P<wanted>\w+) expected, got (?P<got>\w+)"), _dtype),
    (re.compile(r"overflow when multiplying (?P<a>\d+) with (?P<b>\d+)"), _overflow),
    (re.compile(r"new_num_elements(?: >= 0)? \(|0 <= new_num_elements"), _overflow),
    (re.compile(r"\bsize >= 0 \((?P<a>-\d+) vs\. 0\)"), _negative),
    (re.compile(r"Too many dimensions in tensor|dims\(\) < \S+ \(254 vs\. 254\)"), _too_many),
    (re.compile(r"DataTypeCanUseMemcpy"), _no_plain_memory),
    (re.compile(r"Attr (?P<name>\w+) has value (?P<a>-?\d+) out of range for an? (?P<type>\w+)"), _out_of_range),
    (re.compile(r"'(?P<name>\w+)' Must be non NULL"), _null),
    (re.compile(r"is OK \([A-Z_]+: (?P<said>.+)$"), _status),
    (_COMPARED, _compared),
)


# ------------------------------------------------------------------------------- whose number it is


def _among(given: Given, fits: Callable[[Argument], bool]) -> list[Argument]:
    """Those that fit; of several the ones whose rank TensorFlow refuses elsewhere, else those it says nothing of."""
    fitting = [argument for argument in given.arguments if fits(argument)]
    refused = [argument for argument in fitting if argument.ranks and argument.rank not in argument.ranks]
    return refused or [argument for argument in fitting if not argument.ranks] or fitting


def _of(whose: list[Argument], says: str, needs: str) -> Reading:
    """The statement with the arguments that it can be about."""
    if not whose or len(whose) > _FEW:
        return Reading(says, "")
    shown = " or ".join(f"`{each.name}` {_shape(each)}" for each in whose)
    names = " or ".join(f"`{each.name}`" for each in whose)
    return Reading(f"{shown} needs {needs}: {says}", f"give {names} {needs}", names if len(whose) == 1 else "")


def _shape(argument: Argument) -> str:
    shape = argument.tensor.shape
    return f"({argument.tensor.dtype} {list(shape)})" if shape else f"(a scalar, {argument.tensor.dtype})"


def _holder(expression: str, number: int, given: Given) -> str | None:
    """What has this number: the only one that has, the one that is named alike, or the dimension that is meant."""
    if re.fullmatch(_NUMBER, expression):
        return None
    return _single(expression, number, given) or _only(expression, _dimensions(number, given))


def _single(expression: str, number: int, given: Given) -> str | None:
    """The argument or attribute that has this number."""
    return None if re.fullmatch(_NUMBER, expression) else _only(expression, _holders(number, given))


def _only(expression: str, names: list[str]) -> str | None:
    if len(names) == 1:
        return names[0]
    alike = [name for name in names if _alike(name, expression)]
    if len(alike) == 1:
        return alike[0]
    if meant := re.search(r"dim(?:ension|_size)?\(?(\d)", expression):
        return next((name for name in names if name.startswith(f"dimension {meant[1]} ")), None)
    return None


def _larger(a: int, b: int, given: Given) -> str | None:
    """A single number that lies above the bound as well: an op that counts up to it fails on the way there."""
    names = [name for name, value in _numbered(given) if value >= a > b]
    return names[0] if len(names) == 1 else None


def _numbered(given: Given) -> list[tuple[str, int]]:
    """The arguments and attributes that are single numbers."""
    found = [(f"`{each.name}`", each.integers[0]) for each in given.arguments if each.rank == 0 and each.integers]
    return found + [(f"`{name}`", value) for name, value in given.settings.items() if type(value) is int]


def _holders(number: int, given: Given) -> list[str]:
    """Single numbers first, then those in lists."""
    single = [name for name, value in _numbered(given) if value == number]
    if single:
        return single
    lists = [(each.name, each.integers) for each in given.arguments if each.rank == 1]
    lists += [(name, _numbers(value)) for name, value in given.settings.items() if isinstance(value, list)]
    return [f"`{name}[{values.index(number)}]`" for name, values in lists if number in values]


def _dimensions(number: int, given: Given) -> list[str]:
    return [
        f"dimension {index} of `{each.name}`"
        for each in given.arguments
        for index, dimension in enumerate(each.tensor.shape)
        if dimension == number
    ]


def _alike(name: str, expression: str) -> bool:
    one = plain(name.partition("[")[0].rpartition(" ")[2].strip("`"))
    other = plain(re.sub(r"\W+", "", expression))
    return len(one) > 1 and (one in other or other in one)


def _numbers(value: object) -> tuple[int, ...]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(each for each in values if type(each) is int)


def _is_large(value: object) -> bool:
    return isinstance(value, list) and any(number >= _LARGE for number in _numbers(value))


def _wanted(how: str, number: int, bound: str | None) -> str:
    words = {"<=": "at most ", "<": "less than ", ">=": "at least ", ">": "more than ", "==": "", "!=": "anything but "}
    return f"{words[how]}{number:,}{f' ({bound})' if bound else ''}"


def _assertion(whose: str, how: str, number: int, given: Given) -> str:
    names = {"<=": "less_equal", "<": "less", ">=": "greater_equal", ">": "greater", "==": "equal", "!=": "none_equal"}
    argument = next((each for each in given.arguments if f"`{each.name}`" == whose), None)
    return f"tf.debugging.assert_{names[how]}({argument.expression}, {number})" if argument else ""


def _dimensions_in_words(number: int) -> str:
    return count(number, "dimension")


def _type_name(name: str) -> str:
    return {"float": "float32", "double": "float64", "int": "int32"}.get(name, name)
