"""Which code does a save bring along, that runs when it is loaded or called?"""

from __future__ import annotations

import json
import pickletools
import sys
from collections.abc import Iterator

MARSHALLED = "its layer {} carries marshalled Python code, which runs when it is loaded and called"
MOST = 8
# Modules of the standard library that Keras itself names in configurations.
HARMLESS = frozenset({"builtins", "collections", "functools", "typing"})
# Nodes of a graph that leave it.
PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
FILE_OPS = frozenset({"ReadFile", "WriteFile", "MatchingFiles"})


def in_config(config: str) -> tuple[str, ...]:
    """Of a Keras model, as JSON."""
    try:
        return tuple(dict.fromkeys(_in_layers(json.loads(config))))[:MOST]
    except (ValueError, RecursionError):
        marshalled = '"__lambda__"' in config or '"function_type": "lambda"' in config
        return (MARSHALLED.format("Lambda"),) if marshalled else ()


def _in_layers(config: object) -> Iterator[str]:
    waiting: list[tuple[object, str]] = [(config, "")]
    while waiting:
        item, layer = waiting.pop()
        if isinstance(item, list):
            waiting += [(each, layer) for each in item]
        if not isinstance(item, dict):
            continue
        kind, inner, module = item.get("class_name"), item.get("config"), item.get("module")
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            layer = str(inner["name"])[:80]
        if kind == "__lambda__" or (kind == "Lambda" and isinstance(inner, dict) and _is_marshalled(inner)):
            yield MARSHALLED.format(layer or "Lambda")
        top = module.partition(".")[0] if isinstance(module, str) else ""
        if top in sys.stdlib_module_names and top not in HARMLESS:
            yield f"it names {str(kind)[:80]} of the module {str(module)[:80]}, which is imported and called"
        waiting += [(each, layer) for each in item.values()]


def _is_marshalled(config: dict[str, object]) -> bool:
    """As Keras 2 wrote it: the code, its defaults and its closure."""
    return config.get("function_type") == "lambda" or isinstance(config.get("function"), list)


def in_ops(ops: set[str]) -> tuple[str, ...]:
    """By the names of the nodes of a graph."""
    found = []
    if python := sorted(ops & PYTHON_OPS):
        found.append(f"its graph calls Python functions of the program ({', '.join(python)})")
    if files := sorted(ops & FILE_OPS):
        found.append(f"its graph reads or writes files when it is called ({', '.join(files)})")
    return tuple(found)


def in_pickle(data: bytes) -> tuple[tuple[str, ...], bool]:
    """What loading it calls, in words, and whether it could be followed to its end. Nothing of it is run."""
    texts: list[str] = []
    called: dict[str, None] = {}
    whole = False
    try:
        for code, argument, _ in pickletools.genops(data):
            if code.name in ("GLOBAL", "INST"):
                called[str(argument).replace(" ", ".")] = None
            elif code.name == "STACK_GLOBAL" and len(texts) > 1:
                called[".".join(texts[-2:])] = None
            elif isinstance(argument, str):
                texts = [*texts[-1:], argument]
            whole = code.name == "STOP"
    except (ValueError, IndexError, OverflowError, MemoryError):
        pass
    named = ", ".join(name[:80] for name in list(called)[:MOST]) + (" and others" if len(called) > MOST else "")
    return ((f"it is a pickle: loading it calls {named}" if called else "it is a pickle"),), whole
