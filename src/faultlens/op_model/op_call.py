"""One call of an op as a script: from the kernel that was in flight to the text that calls it again. Pure.

A report may come from a stranger. Names are emitted only if they are names in the definition that TensorFlow itself
gave, types only if they are in our table, and everything else through repr()."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from faultlens.op_model.arrays import DTYPES, Array, expression, from_tensor, shape_text, zero
from faultlens.op_model.files import SCRIPT, Files
from faultlens.op_model.op_definition import AttributeDefinition, Definition, Input
from faultlens.op_model.wrapping import wrapped
from faultlens.records.crash import Attribute, Crash, Kernel, Tensor
from faultlens.text.safe import one_line

# How the op is called: at once, in a graph whose shapes are not known while it is built, compiled by XLA with
# its inputs as constants or as parameters, in a pipeline, or again and again.
Form = Literal["eager", "graph", "compiled", "compiled with parameters", "dataset", "loop"]
ROUNDS = 1000
_OTHER_TYPES = ("resource", "variant")


class CannotCallError(Exception):
    """The op cannot be called with what was recorded; the text says why, as the end of a sentence."""


class Argument(NamedTuple):
    name: str
    arrays: tuple[Array, ...]
    is_list: bool = False


class Setting(NamedTuple):
    """An attribute that is given in the call."""

    name: str
    kind: str
    value: Any
    optional: bool = False


class Call(NamedTuple):
    op: str
    function: str
    arguments: tuple[Argument, ...]
    settings: tuple[Setting, ...] = ()
    library: str | None = None
    form: Form = "eager"
    limits: tuple[tuple[str, int], ...] = ()  # ("RLIMIT_DATA", bytes): without them it would not die

    def arrays(self) -> Iterator[Array]:
        return (array for argument in self.arguments for array in argument.arrays)


# --------------------------------------------------------------------------------- from the kernel to a call


def call_of(kernel: Kernel, definition: Definition) -> Call:
    if definition.function is None:
        raise CannotCallError(f"{definition.op} has no Python function")
    settings = tuple(_settings(kernel.attributes, definition))
    arguments = tuple(_arguments(kernel, definition))
    return Call(definition.op, definition.function, arguments, settings, definition.library)


def forms_for(crash: Crash, kernel: Kernel) -> list[Form]:
    """The likeliest first."""
    functions = [frame.function for thread in crash.threads for frame in thread.frames if frame.kind == "native"]
    crashed = crash.crashed_thread
    own = [frame.function for frame in (crashed.frames if crashed else ()) if frame.kind == "native"]
    forms: list[Form] = ["eager", "graph"]
    if any("xla::" in name or "tensorflow::Xla" in name for name in own):
        forms = ["compiled", "compiled with parameters", *forms]
    if any("tensorflow::data::" in name for name in (*own, *functions)):
        forms.append("dataset")
    if kernel.stage == "compute" and crash.fault and crash.fault.signal in ("SIGABRT", "SIGSEGV"):
        forms.append("loop")  # damage to the heap is noticed sooner or later
    return forms


def _arguments(kernel: Kernel, definition: Definition) -> Iterator[Argument]:
    counts = _counts(kernel, definition)
    tensors = list(kernel.inputs) if kernel.inputs else [None] * sum(counts)
    if len(tensors) < sum(counts):
        raise CannotCallError(f"only {len(tensors)} of its {sum(counts)} inputs were recorded")
    for each, count in zip(definition.inputs, counts, strict=True):
        if each.by_reference:
            raise CannotCallError(f"its input {each.name} is a reference to a variable of a TF 1 graph")
        taken, tensors = tensors[:count], tensors[count:]
        dtypes = _dtypes(each, count, kernel.attributes)
        arrays = [_array(each, *pair, kernel) for pair in zip(taken, dtypes, strict=True)]
        yield Argument(each.name, tuple(arrays), bool(each.number_attribute or each.list_attribute))


def _counts(kernel: Kernel, definition: Definition) -> list[int]:
    """How many of the kernel's inputs belong to each argument of the op."""
    counts: list[int | None] = [_count(each, kernel.attributes) for each in definition.inputs]
    open_ended = [index for index, count in enumerate(counts) if count is None]
    if len(open_ended) == 1 and kernel.inputs:
        counts[open_ended[0]] = max(len(kernel.inputs) - sum(count or 0 for count in counts), 0)
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        name = definition.inputs[open_ended[0]].name
        raise CannotCallError(f"how long the list {name} was is not known")
    return known


def _count(each: Input, attributes: Mapping[str, Attribute]) -> int | None:
    if each.number_attribute:
        value = _value(attributes, each.number_attribute)
        return value if isinstance(value, int) and 0 <= value < 10_000 else None
    if each.list_attribute:
        value = _value(attributes, each.list_attribute)
        return len(value) if isinstance(value, list) else None
    return 1


def _dtypes(each: Input, count: int, attributes: Mapping[str, Attribute]) -> list[str | None]:
    if each.list_attribute:
        value = _value(attributes, each.list_attribute)
        return [str(name) for name in value] if isinstance(value, list) and len(value) == count else [None] * count
    named = each.dtype or _value(attributes, each.type_attribute or "")
    return [named if isinstance(named, str) else None] * count


def _array(each: Input, tensor: Tensor | None, dtype: str | None, kernel: Kernel) -> Array:
    if tensor is None:
        if kernel.stage == "compute":
            raise CannotCallError(f"its input {each.name} could not be read")
        if dtype not in DTYPES:  # a kernel is made before its inputs are there: any tensor of the type will do
            raise CannotCallError(f"nothing is known of its input {each.name}")
        return Array(str(dtype), (), fill=zero(str(dtype)), recorded=False)
    if tensor.dtype == "resource":
        return _variable(each, kernel)
    array = from_tensor(tensor)
    if array is None:
        raise CannotCallError(f"its input {each.name} is of type {one_line(tensor.dtype, 40)}")
    return array


def _variable(each: Input, kernel: Kernel) -> Array:
    """Ops on a variable name its type; its shape is that of what they are given for it."""
    dtype = str(_value(kernel.attributes, "dtype") or _value(kernel.attributes, "T"))
    alike = [tensor for tensor in kernel.inputs if tensor and tensor.dtype == dtype and from_tensor(tensor)]
    if dtype not in DTYPES or not alike:
        raise CannotCallError(f"its input {each.name} is a resource, and what it held was not recorded")
    largest = max(alike, key=lambda tensor: len(tensor.shape))
    return Array(dtype, largest.shape, fill=zero(dtype), recorded=False, variable=True)


def _settings(attributes: Mapping[str, Attribute], definition: Definition) -> Iterator[Setting]:
    told_by_inputs = {
        name
        for each in definition.inputs
        for name in (each.type_attribute, each.list_attribute, each.number_attribute)
        if name
    }
    for each in definition.attributes:
        if each.name in told_by_inputs or each.name not in definition.parameters:
            continue
        recorded = attributes.get(each.name)
        if recorded is None or recorded.kind == "other" or not _expressible(each, recorded.value):
            if not each.has_default:
                raise CannotCallError(f"its attribute {each.name} is not known")
            continue
        value = _frozen(recorded.value)
        if not (each.has_default and _equal(value, _frozen(each.default))):
            yield Setting(each.name, each.kind, value, each.has_default)


def _expressible(each: AttributeDefinition, value: Any) -> bool:
    try:
        setting_text(each.kind, value)
    except CannotCallError:
        return False
    return True


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, (int, float)):
        try:
            return struct.pack("<f", left) == struct.pack("<f", right)  # attributes are of single precision
        except OverflowError:
            return left == right
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _value(attributes: Mapping[str, Attribute], name: str) -> Any:
    return attributes[name].value if name in attributes else None


# ------------------------------------------------------------------------------------- from a call to a script


def script_of(call: Call, comments: Sequence[str] = ()) -> Files:
    """The script, and the arrays that it loads."""
    made = [[expression(array, f"{name}.npy") for name, array in _named(argument)] for argument in call.arguments]
    arrays = {
        f"{name}.npy": each.array
        for argument, several in zip(call.arguments, made, strict=True)
        for (name, _), each in zip(_named(argument), several, strict=True)
        if each.array is not None
    }
    lines = [f"# {one_line(comment, 300)}" for comment in (*comments, *_made_up(call))]
    lines += ["import resource", ""] if call.limits else []
    lines += ["import numpy as np"] if arrays else []
    lines += ["import tensorflow as tf", ""]
    for name, value in call.limits:
        lines.append(f"resource.setrlimit(resource.{name}, ({value!r}, {value!r}))")
    lines += [f"library = tf.load_op_library({call.library!r})"] if call.library else []
    lines += _body(call, [[each.text for each in several] for several in made])
    return {SCRIPT: wrapped("\n".join(lines)).encode(), **arrays}


def _named(argument: Argument) -> list[tuple[str, Array]]:
    if not argument.is_list:
        return [(argument.name, argument.arrays[0])]
    return [(f"{argument.name}_{index}", array) for index, array in enumerate(argument.arrays)]


def _made_up(call: Call) -> Iterator[str]:
    names = [argument.name for argument in call.arguments if not all(array.recorded for array in argument.arrays)]
    if names:
        yield f"The contents of {', '.join(names)} were not recorded: these are made up."


def _body(call: Call, texts: list[list[str]]) -> list[str]:
    direct = _call_text(call, _grouped(call, texts))
    if call.form == "loop":
        return [f"for _ in range({ROUNDS}):", f"    {direct}"]
    if call.form == "dataset":
        return [f"dataset = tf.data.Dataset.range(1).map(lambda _: {direct})", "list(dataset)"]
    if call.form == "compiled":
        return [
            "",
            "",
            "@tf.function(jit_compile=True)",
            "def reproduce():",
            f"    return {direct}",
            "",
            "",
            "reproduce()",
        ]
    if call.form in ("graph", "compiled with parameters"):
        return _function(call, texts)
    return [direct]


def _function(call: Call, texts: list[list[str]]) -> list[str]:
    names = [[name for name, _ in _named(argument)] for argument in call.arguments]
    options = "jit_compile=True"
    if call.form == "graph":
        specs = [f"tf.TensorSpec(None, tf.{'resource' if a.variable else a.dtype})" for a in call.arrays()]
        options = f"input_signature=[{', '.join(specs)}]"
    return [
        *("", "", f"@tf.function({options})"),
        f"def reproduce({', '.join(name for group in names for name in group)}):",
        f"    return {_call_text(call, _grouped(call, names))}",
        *("", "", f"reproduce({', '.join(text for group in texts for text in group)})"),
    ]


def _grouped(call: Call, texts: list[list[str]]) -> list[str]:
    """One text per argument."""
    return [
        f"[{', '.join(group)}]" if argument.is_list else group[0]
        for argument, group in zip(call.arguments, texts, strict=True)
    ]


def _call_text(call: Call, inputs: list[str]) -> str:
    owner = "library" if call.library else "tf.raw_ops"
    words = [f"{argument.name}={text}" for argument, text in zip(call.arguments, inputs, strict=True)]
    words += [f"{setting.name}={setting_text(setting.kind, setting.value)}" for setting in call.settings]
    return f"{owner}.{call.function}({', '.join(words)})"


def setting_text(kind: str, value: Any) -> str:
    if kind.startswith("list("):
        if not isinstance(value, (list, tuple)):
            raise CannotCallError("it is no list")
        inner = kind[5:-1]
        if inner == "int":
            return shape_text([_integer(item) for item in value])
        return f"[{', '.join(setting_text(inner, item) for item in value)}]"
    if kind == "shape":
        if value is None:
            return "tf.TensorShape(None)"
        if not isinstance(value, (list, tuple)):
            raise CannotCallError("it is no shape")
        return shape_text([None if _integer(size) < 0 else size for size in value])
    if kind == "type":
        if not isinstance(value, str) or (value not in DTYPES and value not in _OTHER_TYPES):
            raise CannotCallError("it is no type")
        return f"tf.{value}"
    if kind == "float":
        if value in ("inf", "-inf", "nan"):  # which JSON has no other words for
            return f"float({value!r})"
        return repr(float(_checked(value, float, int)))
    if kind == "int":
        return repr(_integer(value))
    types = {"bool": (bool,), "string": (str, bytes)}.get(kind)
    if types is None:
        raise CannotCallError(f"attributes of kind {one_line(kind, 40)} cannot be written")
    return repr(_checked(value, *types))


def _integer(value: Any) -> int:
    number: int = _checked(value, int)
    if not -(1 << 63) <= number < 1 << 63:
        raise CannotCallError("it is too large")
    return number


def _checked(value: Any, *types: type) -> Any:
    """JSON knows no difference between a number and the number that was meant."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise CannotCallError("it is not of its type")
    return value
