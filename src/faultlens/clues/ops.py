"""Which TensorFlow op or API was at work: from Python frames, kernel classes, thrown exceptions and sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from faultlens.clues.frames import is_own, short_function
from faultlens.clues.owners import owner_of
from faultlens.crash import Crash, Frame, Thread

# TensorFlow generates one Python function per op.
_GENERATED = re.compile(r"/gen_\w+_ops\.py$|/tensorflow/.*/gen_\w+\.py$")
# Wrappers of ops from tf.load_op_library are made of text.
_TEXT = "<string>"
_KERNEL = re.compile(r"(?:^|::| )(?P<name>~?\w+)(?P<arguments><.*>)?::(?:Compute|ComputeAsync|DoCompute)\(")
_DATASET = re.compile(r"::(?P<name>\w+Dataset\w*?)Op(?:::|\b)")
_REDUCER = re.compile(r"(?P<name>Sum|Max|Min|Mean|Prod|And|Or)Reducer")
_FUNCTOR = re.compile(r"functor::(?P<name>\w+)<")
_REDUCTIONS = {"And": "All", "Or": "Any"}
# Kernel classes that serve several ops, or an op of another name.
_ALIASES = {
    "MklConvCustomBackpropInput": "Conv3DBackpropInput",
    "MklConvCustomBackpropFilter": "Conv3DBackpropFilter",
    "FusedResizeConv2DUsingGemm": "FusedPadConv2D",
    "HybridAsyncOpKernel": "",
    "AsyncOpKernel": "",
    "OpKernel": "",
    "ThreadPoolDevice": "",
    "Device": "",
    "RenamedDevice": "",
    "TFE_": "",
    "XlaLocalLaunchBase": "XlaLaunch",
    "CSR": "",
    "LinearAlgebra": "",
    "Reduction": "",
    "Binary": "",
    "Unary": "",
}
# Python functions that only hand a call on.
_PASSING = re.compile(r"/tensorflow/python/(?:util|eager|framework|profiler)/|/traceback_utils\.py$|/dispatch\.py$")
_PUBLIC = re.compile(r"/(?:site|dist)-packages/(?:tensorflow|keras|tf_keras)/")


def op_at_fault(crash: Crash) -> str | None:
    """The most specific name that the facts give; None where no op is to be seen."""
    crashed, launching = crash.crashed_thread, crash.launching_thread
    frames = crashed.frames if crashed else launching.frames if launching else ()
    same_thread = crashed is None or crashed is launching
    kernel = kernel_op(frames)
    generated = generated_op(launching) if same_thread else None
    if generated and kernel:
        return _same_op(generated, kernel) or generated
    return (
        generated
        or kernel
        or _thrown_op(crash)
        or (kernel_op(launching.frames) if launching and not same_thread else None)
        or _object_op(frames)
        or _public_call(launching)
    )


def kernel_op(frames: Iterable[Frame]) -> str | None:
    """From the innermost kernel on the stack: "tensorflow::BlockLSTMOp<…>::Compute" is BlockLSTM."""
    for frame in frames:
        if frame.kind != "native":
            continue
        match = _KERNEL.search(frame.function)
        if match and (name := _op_of_class(match["name"], match["arguments"] or "")):
            return name
    return None


def generated_op(thread: Thread | None) -> str | None:
    """From the generated Python function that was called last: "block_lstm_v2" is BlockLstmV2."""
    frames = [frame for frame in (thread.frames if thread else ()) if frame.kind == "python"]
    for index, frame in enumerate(frames):
        caller = frames[index + 1] if index + 1 < len(frames) else None
        if _GENERATED.search(frame.file or ""):
            return _camel(frame.function)
        if frame.file == _TEXT and caller is not None and frame.function.isidentifier() and not _is_module(frame):
            return _camel(frame.function)
        if is_own(frame):
            return None
    return None


def loaded_ops(crash: Crash) -> tuple[str, ...]:
    """Ops of libraries that the user's sources load and call: lib = tf.load_op_library(…); lib.pad_right(x)."""
    found = [name for text in crash.sources.values() for name in _called_on_op_libraries(text)]
    return tuple(dict.fromkeys(_camel(name) for name in found))


def _op_of_class(name: str, arguments: str) -> str:
    base = re.sub(r"(?:Op|OpBase|OpKernel|Kernel)$", "", name) or name
    if base in ("Reduction",) and (match := _REDUCER.search(arguments)):
        return _REDUCTIONS.get(match["name"], match["name"])
    if base in ("Binary", "Unary", "SimpleBinary") and (match := _FUNCTOR.search(arguments)):
        return _camel(match["name"])
    base = _ALIASES.get(base, base)
    return base.removeprefix("Mkl") if base not in ("Mkl", "") else ""


def _thrown_op(crash: Crash) -> str | None:
    """The exception that ended it left its frames behind, although its stack is gone."""
    for thrown in crash.exceptions[:1]:
        if op := kernel_op(thrown.frames):
            return op
        for frame in thrown.frames:
            if match := _DATASET.search(frame.function):
                return match["name"]
    return None


def _object_op(frames: Iterable[Frame]) -> str | None:
    """The class of a TensorFlow object that was being destroyed or optimised."""
    for frame in frames:
        if owner_of(frame) != "tensorflow":
            continue
        if match := _DATASET.search(frame.function):
            return match["name"]
        if match := re.search(r"::(\w+)::~\1\(", frame.function):
            return match[1]
        return None
    return None


def _public_call(thread: Thread | None) -> str | None:
    """The function of TensorFlow or Keras that the user's own line called."""
    called: str | None = None
    for frame in (frame for frame in (thread.frames if thread else ()) if frame.kind == "python"):
        if is_own(frame):
            return called
        if _PUBLIC.search(frame.file or "") and (not _PASSING.search(frame.file or "") or called is None):
            called = frame.function
    return None


def _same_op(generated: str, kernel: str) -> str | None:
    """Both name one op: the kernel's spelling, with what only the function knows ("V2")."""
    left, right = generated.lower(), kernel.lower()
    if left == right:
        return kernel
    return kernel + generated[len(kernel) :] if left.startswith(right) else None


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))


def _is_module(frame: Frame) -> bool:
    return frame.function.startswith("<")


def _called_on_op_libraries(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    libraries = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "load_op_library" in ast.dump(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            direct = isinstance(owner, ast.Call) and "load_op_library" in ast.dump(owner.func)
            if direct or (isinstance(owner, ast.Name) and owner.id in libraries):
                yield node.func.attr


def native_place(frame: Frame) -> str:
    return short_function(frame.function)
