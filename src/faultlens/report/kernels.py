"""TensorFlow's ops in flight in words: which op of which node, what it was given, who wrote it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from faultlens.diagnosis.evidence.arguments import input_names
from faultlens.diagnosis.evidence.kernels import kernel_at_fault, tensor_in_words, user_op
from faultlens.records.crash import Attribute, Crash, Frame, Kernel
from faultlens.report.facts import Pairs
from faultlens.report.headline import line_of
from faultlens.report.tensors import holds_few_numbers, kept_size, number_in_words, values_in_words
from faultlens.report.threads import thread_in_words
from faultlens.text.quantities import count
from faultlens.text.safe import ELLIPSIS, one_line
from faultlens.text.sizes import in_words as size

_NAME = 120
_OPS_NAMED = 6
_FEW_VALUES = 6
_CHOICE = re.compile(r"[A-Z][A-Z0-9_]*|[A-Za-z][A-Za-z_]{0,15}")  # SAME, NHWC, ROW_SPLITS, bilinear
_ITEMS, _DEPTH, _VALUE = 8, 4, 160  # of an attribute


class Input(NamedTuple):
    name: str  # "filter"; "input 0" where the op is not TensorFlow's
    words: str  # "float32 [3, 4, 8]"
    values: str  # the first of them; nothing where they were not kept


def kernel_in_words(kernel: Kernel, with_node: bool = True) -> str:
    """ "BlockLSTMV2 (node lstm/BlockLSTMV2, layer lstm)"."""
    op = one_line(user_op(kernel), _NAME)
    of_graph = with_node and kernel.node and kernel.node != kernel.op
    about = [
        f"computed as {one_line(kernel.op, _NAME)}" if user_op(kernel) != kernel.op else "",
        f"node {one_line(kernel.node, _NAME)}" if of_graph else "",
        f"layer {one_line(kernel.layer, _NAME)}" if kernel.layer else "",
        "its kernel was being constructed" if kernel.stage == "construct" else "",
    ]
    told = ", ".join(part for part in about if part)
    return f"{op} ({told})" if told else op


def line_in_words(frame: Frame, crash: Crash) -> str:
    """ "model.py:18 in call"."""
    return f"{line_of(frame, crash)} in {one_line(frame.function, _NAME)}"


def others_in_words(crash: Crash) -> str | None:
    """The ops that were computed at the same time as the one at fault."""
    main = kernel_at_fault(crash)
    names = Counter(one_line(kernel.op, 60) for kernel in crash.kernels if kernel is not main)
    if not names:
        return None
    told = [f"{number} × {name}" if number > 1 else name for name, number in names.most_common(_OPS_NAMED)]
    if len(names) > _OPS_NAMED:
        told.append(f"{ELLIPSIS} {count(len(names) - _OPS_NAMED, 'more op')}")
    return ("also in flight: " if main else "in flight: ") + ", ".join(told)


def facts_of(kernel: Kernel, crash: Crash) -> Pairs:
    """Everything about an op but its inputs and attributes."""
    thread = next((thread for thread in crash.threads if thread.id == kernel.thread), None)
    facts = [
        ("thread", thread_in_words(thread, crash) if thread else f"thread {kernel.thread}"),
        ("node", kernel.node),
        ("function", kernel.function or ""),
        ("layer", kernel.layer or ""),
        ("written at", line_in_words(kernel.written, crash) if kernel.written else ""),
        ("layer made at", line_in_words(kernel.layer_made, crash) if kernel.layer_made else ""),
        ("kernel", kernel.kernel_class or ""),
        ("stage", "its kernel was being constructed" if kernel.stage == "construct" else ""),
    ]
    return [(name, one_line(value, 400)) for name, value in facts if value]


def inputs_of(kernel: Kernel, most: int, most_values: int) -> list[Input]:
    """The inputs under the names of the op's definition."""
    return [
        Input(
            one_line(name, _NAME),
            tensor_in_words(tensor),
            (values_in_words(tensor, most_values) or "") if tensor else "",
        )
        for name, tensor in list(zip(input_names(kernel), kernel.inputs, strict=False))[:most]
    ]


def briefly(kernel: Kernel, most: int) -> list[str]:
    """ "seq_len_max: int64 [] = 9", "x: float32 [3, 4, 8]"."""
    told = []
    for name, tensor in list(zip(input_names(kernel), kernel.inputs, strict=False))[:most]:
        value = (
            f" = {values_in_words(tensor, _FEW_VALUES)}" if tensor and holds_few_numbers(tensor, _FEW_VALUES) else ""
        )
        short = one_line(name.removeprefix("input "), _NAME)
        told.append(f"{short}: {tensor_in_words(tensor)}{value}")
    hidden = len(kernel.inputs) - most
    return [*told, f"{ELLIPSIS} {count(hidden, 'more input')}"] if hidden > 0 else told


def settings_briefly(kernel: Kernel, most: int) -> list[str]:
    """ "strides = [1, 2, 2, 1]": numbers, and words out of a fixed choice. Other words may be private."""
    chosen = [
        f"{one_line(name, 80)} = {attribute_in_words(attribute)}"
        for name, attribute in sorted(kernel.attributes.items())
        if not name.startswith("_") and _is_telling(attribute)
    ]
    return chosen[:most]


def _is_telling(attribute: Attribute) -> bool:
    if attribute.kind == "string":
        return isinstance(attribute.value, str) and bool(_CHOICE.fullmatch(attribute.value))
    return attribute.kind in ("int", "float", "list(int)", "shape", "list(shape)") and attribute.value not in (None, [])


def attributes_of(kernel: Kernel, most: int) -> Pairs:
    """Names and values, TensorFlow's own (with an underscore) last."""
    chosen = sorted(kernel.attributes.items(), key=lambda pair: (pair[0].startswith("_"), pair[0]))
    return [(one_line(name, 80), attribute_in_words(attribute)) for name, attribute in chosen[:most]]


def attribute_in_words(attribute: Attribute) -> str:
    if attribute.value is None:
        return "not read"
    plain = attribute.kind in ("type", "func") and isinstance(attribute.value, str)
    return one_line(attribute.value if plain else "".join(_written(attribute.value)), _VALUE)


def contents_in_words(crash: Crash, where: str = "this report") -> str | None:
    """What the report holds of the program's data; None when nothing."""
    sizes = [kept for one in _processes(crash) for kernel in one.kernels for kept in map(kept_size, kernel.inputs)]
    known = [kept for kept in sizes if kept is not None]
    if not known:
        return None
    told = f"contents of {count(len(known), 'input')} ({size(sum(known))}) are kept in {where}"
    return f"{told}; `--no-contents` leaves them out"


def _processes(crash: Crash) -> Iterator[Crash]:
    waiting = [crash]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.children


def _written(value: Any, depth: int = 0) -> Iterator[str]:
    """Any value that JSON can hold, nearly as Python writes it, no longer than a reader can use."""
    if isinstance(value, (list, tuple, dict)) and depth == _DEPTH:
        yield ELLIPSIS
    elif isinstance(value, (list, tuple)):
        yield "["
        for number, item in enumerate(value[:_ITEMS]):
            yield ", " if number else ""
            yield from _written(item, depth + 1)
        yield f", {ELLIPSIS} {len(value)} in all]" if len(value) > _ITEMS else "]"
    elif isinstance(value, dict):
        yield "{"
        for number, (key, item) in enumerate(list(value.items())[:_ITEMS]):
            yield f"{', ' if number else ''}{one_line(str(key), 40)}: "
            yield from _written(item, depth + 1)
        yield f", {ELLIPSIS} {len(value)} in all}}" if len(value) > _ITEMS else "}"
    elif isinstance(value, (str, bytes)):
        yield repr(value[:_VALUE]) + (ELLIPSIS if len(value) > _VALUE else "")
    else:
        yield number_in_words(value) if isinstance(value, float) else str(value)
