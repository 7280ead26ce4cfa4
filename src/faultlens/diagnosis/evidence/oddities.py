"""What is odd about the arguments of an op: ranks that TensorFlow itself refuses in graphs, indices outside of the
data, splits that go back, zeros, negative and absurd sizes, empty tensors, numbers that are none.

Odd is not guilty: which of them explains a crash is for the causes to say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from faultlens.diagnosis.evidence.arguments import Argument, Given
from faultlens.knowledge.op_arguments import parameters
from faultlens.text.quantities import count
from faultlens.text.safe import one_line

Kind = Literal["rank", "length", "window", "splits", "index", "negative", "zero", "huge", "empty", "not finite"]

_INDICES = re.compile(r"ind(?:ices|ex)$|argmax$|(?:^|_)ids$|positions$|coords")
_SPLITS = re.compile(r"splits|row_partition_tensors")
_WORDS_OF_SIZE = (
    "sizes? shapes? dims lengths? lens? max num number counts? depth height width k n capacity block strides? rates? "
    "ksize window dilations period steps? rows columns channels batch buckets bins limit segments parallelism threads "
    "radius ratio multiples reps frame paddings?"
)
_SIZES = re.compile(rf"(?:^|_)(?:{'|'.join(_WORDS_OF_SIZE.split())})(?:$|_|\d)")
# Where -1 means "all that is left", "unknown" or "the last".
_MAY_BE_MINUS_ONE = re.compile(r"shape|axis|dim$|seed|padding|begin|end|shift|offset|max|deadline|timeout|argument")
_DIVIDES = re.compile(r"strides?$|ksize|block|rates?$|dilations|window|ratio|period|steps?$|group|multiples|shapes?$")
_HUGE = 1 << 27  # elements that nobody asks for on purpose
_ABSURD = 1 << 40  # elements
_TRIED = 6  # the highest rank that was tried
_SHOWN = 6


class Oddity(NamedTuple):
    kind: Kind
    argument: str
    says: str  # "`filter` has 2 dimensions, [10, 5], and Conv2D takes 4"
    instead: str  # what to do about it
    code: str = ""  # that checks it before the call
    sure: bool = False  # TensorFlow itself refuses it elsewhere


def oddities(given: Given) -> list[Oddity]:
    found: list[Oddity] = []
    for argument in given.arguments:
        found += _about(argument, given)
    for name, value in given.settings.items():
        found += _about_setting(name, value, given)
    return [*found, *_window(given)]


def _about(argument: Argument, given: Given) -> Iterator[Oddity]:
    yield from _rank(argument, given)
    integers, bare = argument.integers, _bare(argument.name)
    if argument.size == 0 and argument.tensor.dtype != "string":  # lists of names are often empty
        yield _empty(argument, given)
    if _SPLITS.search(bare) and integers and argument.rank == 1:
        yield from _splits(argument, integers, given)
    elif integers and (_INDICES.search(bare) or (not argument.ranks and not parameters(given.op))):
        yield from _indices(argument, integers, given)
    elif integers and _SIZES.search(bare):
        yield from _sizes(argument.name, argument.expression, integers, argument.rank == 0)
    yield from _not_finite(argument)
    if any(dimension >= _HUGE for dimension in argument.tensor.shape):
        says = f"`{argument.name}` has the shape {_shape(argument)}"
        yield Oddity("huge", argument.name, says, f"make `{argument.name}` smaller: one of its dimensions is absurd")


# ---------------------------------------------------------------------------------------------- ranks


def _rank(argument: Argument, given: Given) -> Iterator[Oddity]:
    wanted = argument.ranks
    if not wanted or argument.rank in wanted or argument.rank > _TRIED or argument.tensor.dtype == "resource":
        return
    open_ended = wanted == tuple(range(wanted[0], _TRIED + 1))
    assertion = "assert_rank" if len(wanted) == 1 else "assert_rank_at_least" if open_ended else "assert_rank_in"
    bound = list(wanted) if assertion == "assert_rank_in" else wanted[0]
    yield Oddity(
        "rank",
        argument.name,
        f"`{argument.name}` {_has_rank(argument)}, and {given.op} takes {_ranks_in_words(wanted, open_ended)}",
        _reshaped(argument, wanted),
        f"tf.debugging.{assertion}({argument.expression}, {bound})",
        sure=True,
    )


def _has_rank(argument: Argument) -> str:
    return f"has {count(argument.rank, 'dimension')}, {_shape(argument)}" if argument.rank else "is a scalar"


def _ranks_in_words(ranks: Sequence[int], open_ended: bool) -> str:
    if open_ended:
        return f"{ranks[0]} or more dimensions"
    named = ["a scalar" if rank == 0 else str(rank) for rank in ranks]
    return " or ".join(named) + (" dimension" if ranks[-1] == 1 else " dimensions" if ranks[-1] else "")


def _reshaped(argument: Argument, wanted: Sequence[int]) -> str:
    rank, written, name = argument.rank, argument.expression, argument.name
    if wanted == (0,):
        return f"give `{name}` a single number"
    if rank == 0 and wanted[0] == 1:
        return f"give `{name}` one dimension: `tf.reshape({written}, [1])`, or one value per channel"
    if rank == wanted[0] - 1:
        return f"give `{name}` {wanted[0]} dimensions: `tf.expand_dims({written}, 0)` adds a first one, a batch of one"
    return f"give `{name}` {' or '.join(map(str, wanted[:3]))} dimensions"


# --------------------------------------------------------------------------------------------- values


def _empty(argument: Argument, given: Given) -> Oddity:
    return Oddity(
        "empty",
        argument.name,
        f"`{argument.name}` is empty, {_shape(argument)}",
        f"leave {given.op} out where `{argument.expression}` is empty",
        f"tf.debugging.assert_positive(tf.size({argument.expression}))",
    )


def _splits(argument: Argument, splits: Sequence[int], given: Given) -> Iterator[Oddity]:
    name, shown = argument.name, _listed(splits)
    others = [each for each in given.arguments if "values" in each.name and each.tensor.shape]
    longest = max((each.tensor.shape[0] for each in others), default=None)
    if splits[0] != 0:
        wrong = f"it begins with {splits[0]}, not 0"
    elif any(after < before for before, after in pairwise(splits)):
        wrong = "it goes back"
    elif longest is not None and splits[-1] > longest:
        wrong = f"it ends at {splits[-1]}, and `{others[0].name}` has {count(longest, 'value')}"
    else:
        return
    fix = f"make `{name}` start at 0, never go back, and end at the number of values"
    code = f"tf.RaggedTensor.from_row_splits(values, {argument.expression}, validate=True)"
    yield Oddity("splits", name, f"`{name}` is {shown}: {wrong}", fix, code)


def _indices(argument: Argument, indices: Sequence[int], given: Given) -> Iterator[Oddity]:
    name, written, lowest, highest = argument.name, argument.expression, min(indices), max(indices)
    if lowest < 0:
        says = f"`{name}` holds {lowest}{_of(indices)}: an index below 0"
        code = f"tf.debugging.assert_non_negative({written})"
        yield Oddity("index", name, says, f"keep `{name}` at 0 or above", code)
    others = [each for each in given.arguments if each is not argument and each.tensor.shape]
    data = [each for each in others if not each.tensor.dtype.startswith("int")] or others
    holder = max(data, key=lambda each: max(each.tensor.shape), default=None)
    if holder is not None and highest >= max(holder.tensor.shape):
        has = f"no dimension of `{holder.name}` {_shape(holder)} is that long"
        if holder.rank > 1 and holder.size is not None and highest >= holder.size:
            has = f"`{holder.name}` {_shape(holder)} has {count(holder.size, 'element')}"
        code = f"tf.debugging.assert_less({written}, tf.shape({holder.expression}, tf.{argument.tensor.dtype})[0])"
        says = f"`{name}` holds {highest}{_of(indices)}, and {has}"
        yield Oddity("index", name, says, f"keep `{name}` below the size of `{holder.name}`", code)


def _sizes(name: str, written: str, sizes: Sequence[int], single: bool) -> Iterator[Oddity]:
    shown = str(sizes[0]) if single else _listed(sizes)
    lowest, positive = min(sizes), [size for size in sizes if size > 0]
    if lowest < 0 and not (lowest == -1 and _MAY_BE_MINUS_ONE.search(name)):
        code = f"tf.debugging.assert_non_negative({written})"
        yield Oddity("negative", name, f"`{name}` is {shown}", f"keep `{name}` at 0 or above", code)
    overflows = len(positive) > 1 and math.prod(positive) >= 1 << 63
    if 0 in sizes and _DIVIDES.search(_bare(name)) and not overflows:
        code = f"tf.debugging.assert_positive({written})"
        yield Oddity("zero", name, f"`{name}` is {shown}", f"keep `{name}` above 0", code)
    product = math.prod(positive)
    if max(positive, default=0) >= _HUGE or (len(positive) > 1 and product >= _ABSURD):
        if overflows:
            says = f"`{name}` is {shown}: the sizes multiply to {product:.3g}, more than 64 bits can count"
            yield Oddity("huge", name, says, f"bound `{name}`: its product must fit 64 bits")
            return
        counts = len(positive) > 1 and re.search(r"shape|size|dims", name)
        made = f", which makes {product:.3g} elements" if counts else ""
        yield Oddity("huge", name, f"`{name}` is {shown}{made}", f"bound `{name}` before the call")


def _not_finite(argument: Argument) -> Iterator[Oddity]:
    wrong = [value for value in argument.values if isinstance(value, float) and not math.isfinite(value)]
    if wrong:
        name = argument.name
        says = f"`{name}` is {wrong[0]}" if argument.size == 1 else f"`{name}` holds {wrong[0]}"
        code = f"tf.debugging.assert_all_finite({argument.expression}, {name!r})"
        yield Oddity("not finite", name, says, f"keep `{name}` finite", code)


# ----------------------------------------------------------------------------------------- attributes


def _about_setting(name: str, value: object, given: Given) -> Iterator[Oddity]:
    if isinstance(value, int) and not isinstance(value, bool) and _is_size(name):
        yield from _sizes(name, name, [value], True)
    elif name in ("ksize", "strides") and value == []:
        says = f"`{name}` is empty: {given.op} takes one number per dimension"
        yield Oddity("length", name, says, f"write one number per dimension: `{name}=[1, 2, 2, 1]`", sure=True)
    elif isinstance(value, (list, tuple)) and value and all(type(each) is int for each in value):
        yield from _sizes(name, name, value, False)
        yield from _length(name, value, given)
    elif isinstance(value, (list, tuple)):
        for index, shape in enumerate(value):
            if isinstance(shape, (list, tuple)) and 0 in shape:
                of = _key(index, len(value), given)
                says = f"`{name}[{index}]`{of and f' ({of})'} is {list(shape)}: a shape without elements"
                yield Oddity("zero", name, says, f"give {of or f'`{name}[{index}]`'} a shape without 0")


def _is_size(name: str) -> bool:
    return bool(_SIZES.search(_bare(name)) or name.startswith("argument "))


def _key(index: int, number: int, given: Given) -> str:
    """What the features of an example are called, which is how the user knows them."""
    keys = (each.values for each in given.arguments if each.name.endswith("keys") and each.size == number)
    key = next((values[index] for values in keys if values), None)
    return f"the feature {one_line(key.decode(errors='replace'), 40)!r}" if isinstance(key, bytes) else ""


def _length(name: str, value: Sequence[int], given: Given) -> Iterator[Oddity]:
    """strides, ksize and dilations go by dimension: they are equally long."""
    others = [given.settings.get(each) for each in ("dilations", "ksize", "strides") if each != name]
    wanted = max((len(each) for each in others if isinstance(each, (list, tuple))), default=0)
    if name in ("strides", "ksize") and len(value) < wanted:
        says = f"`{name}` has {len(value)} of {wanted} numbers, {list(value)}: {given.op} takes one per dimension"
        whole = [1, *value, 1] if len(value) == wanted - 2 else [*value, *[1] * (wanted - len(value))]
        yield Oddity("length", name, says, f"write all {wanted}: `{name}={whole}`", sure=True)


def _window(given: Given) -> Iterator[Oddity]:
    """A filter or a pool that is larger than what it slides over, which leaves nothing of the result."""
    image = next((each for each in given.arguments if each.name in ("input", "value", "orig_input")), None)
    filters = next((each for each in given.arguments if each.name in ("filter", "filters")), None)
    if image is None or given.settings.get("padding") != "VALID":
        return
    ksize, order = given.settings.get("ksize"), str(given.settings.get("data_format", "NHWC"))
    spatial = slice(2, None) if order.startswith("NC") else slice(1, -1)
    pool = ksize[spatial] if isinstance(ksize, (list, tuple)) else None
    window = filters.tensor.shape[:-2] if filters is not None else pool
    room = image.tensor.shape[spatial]
    if window and len(window) == len(room) and any(size > space for size, space in zip(window, room, strict=True)):
        of = "`filter`" if filters is not None else "`ksize`"
        says = f"{of} covers {list(window)}, and `{image.name}` {_shape(image)} has only {list(room)}"
        yield Oddity("window", image.name, says, f'make {of} fit into `{image.name}`, or use padding="SAME"', sure=True)


# ---------------------------------------------------------------------------------------------- words


def _bare(name: str) -> str:
    return name.partition("[")[0].lower()


def _shape(argument: Argument) -> str:
    return _listed(argument.tensor.shape)


def _of(values: Sequence[int]) -> str:
    return f" ({_listed(values)})" if 1 < len(values) <= _SHOWN else ""


def _listed(values: Sequence[int]) -> str:
    shown = ", ".join(map(str, values[:_SHOWN]))
    return one_line(f"[{shown}{', …' if len(values) > _SHOWN else ''}]", 120)
