"""A few lines of Python that show what was found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from faultlens.custom_op.fuzz import wire
from faultlens.custom_op.fuzz.session import Modules
from faultlens.custom_op.fuzz.suspects import Suspect, leaves_its_block
from faultlens.custom_op.fuzz.vast import is_vast
from faultlens.op_model.arrays import Array, Made, expression
from faultlens.op_model.files import SCRIPT, Files
from faultlens.op_model.op_call import Call, setting_text
from faultlens.op_model.wrapping import wrapped

NO_MODULES = Modules()
TAKEN = ("sys", "tf", "np", "library", "calls", "alone", "pool", "tape", "result", "given", "_")
REPEATED = "for _ in range(16):  # a guard stands before one block of four, and behind the others"

PAGES = """\
def zeros(shape, dtype):  # in pages that take no memory until they are written to
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
    pages = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize, flags)
    return tf.experimental.dlpack.from_dlpack(np.frombuffer(pages, dtype).reshape(shape).__dlpack__())
""".splitlines()


class Named(NamedTuple):
    """A call whose inputs have names."""

    lines: list[str]  # that make them
    names: list[str]
    text: str  # of the call
    files: dict[str, bytes]


def script_of(
    suspect: Suspect, before: Sequence[Call] = (), modules: Modules = NO_MODULES, guarded: bool = False
) -> Files:
    """`before`: calls without which it does not show; `modules` are imported where their gradients count; `guarded`: it
    runs with the guard allocator."""
    lines: list[str] = []
    files: dict[str, bytes] = {}
    for number, call in enumerate(before):
        earlier = _named(call, f"_{number}")
        lines += [*earlier.lines, *_tolerant(earlier.text)]
        files |= earlier.files
    named = _named(suspect.call)
    beside = [_named(call, f"_beside{number}") for number, call in enumerate(_beside(suspect))]
    for each in (named, *beside):
        files |= each.files
    lines += [line for each in beside for line in each.lines]
    body = _together([named, *beside]) if beside else _shown(suspect, named)
    vast = any(is_vast(array) for call in (*before, suspect.call, *_beside(suspect)) for array in call.arrays())
    made = named.lines
    if guarded and suspect.probe == "eager" and leaves_its_block(suspect) and not vast:
        body = [REPEATED, *(f"    {line}" for line in (*map(_copied, made), *body))]
        made = []
    standard = [line for line in body if line.startswith(("import ", "from "))]
    imports = [*standard, *([""] if standard else []), *(["import numpy as np"] if files else [])]
    if vast:
        imports = [*standard, "import math", "import mmap", "", "import numpy as np"]
        lines = [*PAGES, *lines]
    head = [*imports, "import tensorflow as tf", "", f"library = tf.load_op_library({suspect.call.library!r})"]
    if suspect.probe == "gradient" and modules.names:
        head = ["import sys", *head, f"sys.path.insert(0, {modules.folder!r})"]
        head += [f"import {name}  # registers the gradient" for name in modules.names]
    text = "\n".join([*head, *lines, *made, *(line for line in body if line and line not in standard)])
    return {SCRIPT: wrapped(text).encode(), **files}


def _copied(line: str) -> str:
    """In a block of its own: TensorFlow keeps small constants, and may share NumPy's memory."""
    name, _, value = line.partition(" = ")
    return line if value.startswith("[") else f"{name} = tf.gather([{value}], 0)"


def _beside(suspect: Suspect) -> list[Call]:
    """Calls that other threads made meanwhile, where threads gave each other's results."""
    others = dict(suspect.options).get("others", ()) if suspect.rule == "threads-differ" else ()
    return [wire.call_of(each, suspect.call.op, suspect.call.library) for each in others]


def _tolerant(text: str) -> list[str]:
    return ["try:", f"    {text}", "except Exception:", "    pass"]


def _named(call: Call, suffix: str = "") -> Named:
    lines, names, files, words = [], [], {}, []
    for argument in call.arguments:
        name = argument.name + suffix + ("_" if argument.name in TAKEN else "")
        texts = []
        for number, array in enumerate(argument.arrays):
            file = f"{name}{number}.npy"
            made = _vast(array) if is_vast(array) else expression(array, file)
            texts.append(made.text)
            if made.array is not None:
                files[file] = made.array
        lines.append(f"{name} = [{', '.join(texts)}]" if argument.is_list else f"{name} = {texts[0]}")
        names.append(name)
        words.append(f"{argument.name}={name}")
    words += [f"{each.name}={setting_text(each.kind, each.value)}" for each in call.settings]
    return Named(lines, names, f"library.{call.function}({', '.join(words)})", files)


def _vast(array: Array) -> Made:
    return Made(f"zeros({list(array.shape)}, {array.dtype!r})")


def _shown(suspect: Suspect, named: Named) -> list[str]:
    made = _BY_RULE.get(suspect.rule) or _BY_PROBE.get(suspect.probe) or _eager
    return made(named)


def _eager(named: Named) -> list[str]:
    return [named.text]


def _printed(named: Named) -> list[str]:
    return [f"print({named.text})"]


def _graph(named: Named) -> list[str]:
    names = ", ".join(named.names)
    return [
        f"specs = tf.nest.map_structure(lambda each: tf.TensorSpec(None, each.dtype), [{names}])",
        f"run = tf.function(lambda {names}: {named.text}, input_signature=specs)",
        f"print(run({names}))",
    ]


def _dataset(named: Named) -> list[str]:
    return [f"list(tf.data.Dataset.range(16).map(lambda _: {named.text}, num_parallel_calls=4))"]


def _threads(named: Named) -> list[str]:
    return [
        "from concurrent.futures import ThreadPoolExecutor",
        "",
        "with ThreadPoolExecutor(8) as pool:",
        f"    results = list(pool.map(lambda _: {named.text}, range(1000)))",
    ]


def _together(calls: Sequence[Named]) -> list[str]:
    """Each result against what the same call gives by itself."""
    return [
        "from concurrent.futures import ThreadPoolExecutor",
        "",
        "calls = [",
        *(f"    lambda: {each.text}," for each in calls),
        "]",
        "alone = [repr(call()) for call in calls]",
        "with ThreadPoolExecutor(8) as pool:",
        "    results = list(pool.map(lambda number: repr(calls[number % len(calls)]()), range(5000)))",
        'print(sum(each != alone[number % len(calls)] for number, each in enumerate(results)), "of 5000 differ")',
    ]


def _vectorized(named: Named) -> list[str]:
    names = ", ".join(named.names)
    stacked = f"tf.nest.map_structure(lambda each: tf.stack([each] * 3), ({names},))"
    return [f"run = lambda {names}: {named.text}", f"tf.vectorized_map(lambda given: run(*given), {stacked})"]


def _compiled(named: Named) -> list[str]:
    names = ", ".join(named.names)
    return [f"tf.function(lambda {names}: {named.text}, jit_compile=True)({names})"]


def _gradient(named: Named) -> list[str]:
    names = ", ".join(named.names)
    return [
        "with tf.GradientTape() as tape:",
        f"    tape.watch([{names}])",
        f"    result = {named.text}",
        f"print(tape.gradient(result, [{names}]))",
    ]


def _repeated(named: Named) -> list[str]:
    return ["for _ in range(1000):", f"    {named.text}"]


def _leak(named: Named) -> list[str]:
    return [
        "import resource",
        "",
        "for _ in range(10):",
        "    for _ in range(5000):",
        f"        {named.text}",
        '    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "KiB")',
    ]


def _uninitialised(named: Named) -> list[str]:
    return [
        "import ctypes",
        "",
        "for pattern in (0xD4, 0x6A):  # malloc fills new memory with it",
        "    ctypes.CDLL(None).mallopt(-6, pattern)",
        f"    print({named.text})",
    ]


def _shapes(named: Named) -> list[str]:
    return [
        f"graph = tf.function(lambda: {named.text}).get_concrete_function()",
        'print("the graph says", [each.shape for each in graph.outputs])',
        f'print("it is", [each.shape for each in tf.nest.flatten({named.text})])',
    ]


def _modified(named: Named) -> list[str]:
    names = ", ".join(named.names)
    return [f"print({names})", named.text, f"print({names})"]


_BY_RULE = {
    "leak": _leak,
    "leaks-files": _repeated,
    "leaks-threads": _repeated,
    "uninitialised-output": _uninitialised,
    "shape-disagrees": _shapes,
    "no-shape": _shapes,
    "input-modified": _modified,
    "wrong-result": _printed,
    "missing-output": _graph,
}
_BY_PROBE = {
    "graph": _graph,
    "dataset": _dataset,
    "threads": _threads,
    "vectorized": _vectorized,
    "compiled": _compiled,
    "gradient": _gradient,
    "repeat": _repeated,
    "leak": _repeated,
}
