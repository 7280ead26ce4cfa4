"""Which TensorFlow op or API was at work: from Python frames, kernel classes, thrown exceptions and sources."""

from __future__ import annotations

import re
from collections.abc import Iterable

from faultlens.diagnosis.evidence import custom_ops, traced, user_calls
from faultlens.diagnosis.evidence.kernels import kernel_at_fault, user_op
from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.inspection.frames import is_own, short_function, user_frame
from faultlens.inspection.owners import owner_of
from faultlens.knowledge.carriers import is_carrier
from faultlens.knowledge.op_names import registered
from faultlens.knowledge.tflite_ops import tflite_op
from faultlens.records.crash import Crash, Frame, Thread

# TensorFlow generates one Python function per op.
_GENERATED = re.compile(r"/gen_\w+_ops\.py$|/tensorflow/.*/gen_\w+\.py$")
# Wrappers of ops from tf.load_op_library are made of text.
_TEXT = "<string>"

_KERNEL = re.compile(r"(?:^|::| )(?P<name>\w+)(?P<arguments><.*>)?::(?:Compute|ComputeAsync|DoCompute)\(")
_COMPILED_KERNEL = re.compile(r"(?:^|::| )(?P<name>\w+)(?P<arguments><.*>)?::Compile\(tensorflow::XlaOpKernelContext")
_CONSTRUCTED = re.compile(
    r"(?:^|::| )(?P<name>\w+)(?P<arguments><.*>)?::(?P=name)\(tensorflow::(?:Xla)?OpKernelConstruction"
)
_KERNEL_FORMS = (_KERNEL, _COMPILED_KERNEL, _CONSTRUCTED)
_METHOD = re.compile(r"(?:^|::| )(?P<name>\w+Op)(?:<.*>)?::\w+\(")
_DATASET = re.compile(r"::(?P<name>\w+Dataset(?:V\d)?)Op(?:Base)?(?:::|\b)")
_DESTROYED = re.compile(r"(?:^|::)(\w+)(?:<.*>)?::~\1\(")

# What the names of kernel classes have on top of the op's.
_CLASS_ENDING = re.compile(r"(?:(?:Base)?Op(?:Base|Kernel|CPU|Cpu)?|Kernel)$")
_CLASS_WORDS = (
    ("Mkl", ""),
    ("Custom", ""),
    ("Cpu", ""),
    ("CPU", ""),
    ("Native", ""),
    ("Pooling", "Pool"),
    ("Base", ""),
)
# Kernel classes that are named otherwise than their op.
_ALIASES = {
    "MklConvCustomBackpropInput": "Conv2DBackpropInput",
    "MklConvCustomBackpropFilter": "Conv2DBackpropFilter",
    "FusedResizeConv2DUsingGemm": "FusedPadConv2D",
    "UnigramSampler": "LearnedUnigramCandidateSampler",
}
# Classes that serve many ops: the op is told by a template argument or by another frame, if at all.
_GENERIC = frozenset({
    "AsyncOp", "HybridAsyncOp", "Async", "HybridAsync", "", "Op", "ThreadPoolDevice", "Device", "RenamedDevice",
    "SingleThreadedCpuDevice", "XlaCompilationDevice", "Xla", "LinearAlgebra", "Reduction", "Binary", "Unary",
    "SimpleBinary", "UnaryVariant", "BinaryElementWise", "UnaryElementWise", "CSR", "Resource", "ResourceHandle",
    "Lookup", "SimpleCandidateSampler", "BaseCandidateSampler", "Pooling3D", "MklPrimitive", "Dataset",
    "UnaryDataset", "BinaryDataset", "Queue", "TypedQueue", "Function",
})  # fmt: skip
_REDUCER = re.compile(r"(?P<name>Sum|Max|Min|Mean|Prod|And|Or)Reducer")
_REDUCTIONS = {"And": "All", "Or": "Any"}
_ARGUMENT = re.compile(r"\btensorflow::(?:\w+::)*(?P<name>\w+)")

# In messages of exceptions: "[Op:Reshape]", "__wrapped__Reshape_device_", "{{node model/dense/MatMul}}".
_IN_MESSAGE = (
    re.compile(r"\[Op:(\w+)\]"),
    re.compile(r"\{\{function_node __wrapped__([A-Za-z]\w*?)_(?:\w+_\d+_)?device_"),
    re.compile(r"\{\{node (?:[\w./-]*/)?(\w+?)(?:_\d+)?\}\}"),
)

# Objects that users never see: what died in their destructors is told by what the program did.
_PLUMBING = re.compile(
    r"(?:Buffer|Handle|Tensor|Shape|Spec|Ptr|Status|Executor|Context|Device|Manager|Thread\w*|Pool|State|Impl|Base"
    r"|Allocator|Closure|Function|Graph|Node|Map|Set|List|Vector|Storage)$"
)


def loads_tensorflow(crash: Crash) -> bool:
    return any("libtensorflow" in library.path for library in crash.libraries)


def op_at_fault(crash: Crash) -> str | None:
    """The most specific name that the facts give; None where no op is to be seen."""
    name = _name_at_fault(crash)
    return (custom_ops.named_after(name, custom_ops.loaded_ops(crash)) or name) if name else None


def _name_at_fault(crash: Crash) -> str | None:
    in_flight = kernel_at_fault(crash)
    if in_flight is not None and not is_carrier(in_flight.op):
        return user_op(in_flight)
    crashed, launching = crash.crashed_thread, crash.launching_thread
    if crashed is None and launching is None:
        return _op_in_exception(crash)
    frames = crashed.frames if crashed else launching.frames if launching else ()
    waiting = launching.frames if launching and launching is not crashed else ()
    generated = generated_op(launching)
    # A thread of tf.data's may have crashed while the program was busy with something else.
    elsewhere = (kernel_op(frames) or _dataset_op(frames)) if waiting else None
    if generated and not is_carrier(generated):
        kernel = elsewhere or kernel_op((*frames, *waiting))
        return (_same_op(generated, kernel) if kernel else None) or elsewhere or generated
    return (
        _thrown_op(crash)
        or kernel_op(frames)
        or _tflite_op(frames)
        or (_dataset_op(frames) if crashed else _awaited_dataset(crash, frames))
        or kernel_op(waiting)
        or traced.compiled_function(crash, user_frame(crash), (*frames, *waiting))
        or _object_op(frames)
        or traced.configured(crash, frames)
        or _dataset_op(waiting)
        or user_calls.public_call(crash, launching)
        or user_calls.called_back_by(launching)
        or traced.called_function(crash, launching, user_frame(crash))
        or generated
    )


def kernel_op(frames: Iterable[Frame]) -> str | None:
    """From the innermost kernel on the stack: "tensorflow::BlockLSTMOp<…>::Compute" is BlockLSTM."""
    inner: list[Frame] = []
    for frame in frames:
        if frame.kind != "native":
            inner.clear()
            continue
        match = _kernel_method(frame.function)
        if match and (name := _op_of_class(match["name"], match["arguments"] or "", inner)) and not is_carrier(name):
            return name
        inner.append(frame)
    return None


def _kernel_method(function: str) -> re.Match[str] | None:
    """Names of C++ functions can be thousands of characters long: those that cannot be meant are left out quickly."""
    if not any(word in function for word in ("Compute", "::Compile(", "OpKernelConstruction")):
        return None
    return next((match for form in _KERNEL_FORMS if (match := form.search(function))), None)


def generated_op(thread: Thread | None) -> str | None:
    """From the generated Python function that was called last: "fifo_queue_v2" is FIFOQueueV2."""
    frames = [frame for frame in (thread.frames if thread else ()) if frame.kind == "python"]
    for index, frame in enumerate(frames):
        caller = frames[index + 1] if index + 1 < len(frames) else None
        if _GENERATED.search(frame.file or ""):
            return _op_of_function(frame.function)
        if frame.file == _TEXT and caller is not None and frame.function.isidentifier() and not _is_module(frame):
            return _op_of_function(frame.function)
        if is_own(frame):
            return None
    return None


def _op_of_function(name: str) -> str:
    name = name.removesuffix("_eager_fallback")
    return registered(name) or custom_ops.camel(name)


def _op_of_class(name: str, arguments: str, inner: Iterable[Frame]) -> str:
    base = _CLASS_ENDING.sub("", name)
    if base in _ALIASES:
        return _ALIASES[base]
    if known := registered_class(base):
        return known
    if base == "Reduction" and (match := _REDUCER.search(arguments)):
        return _REDUCTIONS.get(match["name"], match["name"])
    for match in _ARGUMENT.finditer(arguments):
        argument = match["name"]
        if known := _ALIASES.get(argument) or registered(argument) or registered(f"{argument[:-7]}CandidateSampler"):
            return known
    if base not in _GENERIC:
        return base.removeprefix("Mkl").removesuffix("Base")
    methods = (match for frame in inner if (match := _METHOD.search(frame.function)))
    return next((known for match in methods if (known := registered_class(_CLASS_ENDING.sub("", match["name"])))), "")


def registered_class(base: str) -> str | None:
    """The op a kernel class is named after, versions left open: one class serves BlockLSTM and BlockLSTMV2."""
    if base in _GENERIC:
        return None
    for word, instead in (("", ""), *_CLASS_WORDS):
        base = base.replace(word, instead) if word else base
        if known := registered(base):
            return known
        for version in ("V2", "V3", "V4"):
            if known := registered(base + version):
                return known[: len(base)]
    return None


def _thrown_op(crash: Crash) -> str | None:
    """The exception that ended it left its frames behind, although its stack is gone."""
    for thrown in crash.exceptions[:1]:
        if thrown.type.startswith("pybind11::"):  # Python's own exceptions on their way through C++
            return None
        if op := _dataset_op(thrown.frames) or kernel_op(thrown.frames):
            return op
    return None


def _dataset_op(frames: Iterable[Frame]) -> str | None:
    """The innermost dataset at work: its iterators run on threads of their own, without any kernel."""
    for frame in frames:
        if frame.kind == "native" and (match := _DATASET.search(frame.function)):
            return registered(match["name"]) or match["name"]
    return None


def _awaited_dataset(crash: Crash, frames: Iterable[Frame]) -> str | None:
    """The dataset that keeps a pipeline waiting: the innermost on the thread that works for the one waited for."""
    waited = _dataset_op(frames)
    chains = ([op for frame in thread.frames if (op := _dataset_op((frame,)))] for thread in crash.threads)
    return next((chain[0] for chain in chains if waited in chain and chain[0] != waited), waited)


def _object_op(frames: Iterable[Frame]) -> str | None:
    """The class of a TensorFlow object that was being destroyed."""
    first = next((frame for frame in frames if owner_of(frame) == "tensorflow"), None)
    match = _DESTROYED.search(first.function) if first else None
    return match[1] if match and not _PLUMBING.search(match[1]) else None


def _tflite_op(frames: Iterable[Frame]) -> str | None:
    """The innermost kernel of TensorFlow Lite: "CONV_2D"."""
    return next((op for frame in frames if frame.kind == "native" and (op := tflite_op(frame.function))), None)


def _op_in_exception(crash: Crash) -> str | None:
    """The op that raised: named in the text, or the generated function that the traceback ends in."""
    exception = python_exception(crash)
    if exception is None:
        return None
    if named := named_in(exception.details or exception.message):
        return named
    function = next((frame.function for frame in exception.frames if _GENERATED.search(frame.file or "")), None)
    return _op_of_function(function) if function else None


def named_in(message: str) -> str | None:
    """The op that a message of TensorFlow's names; functions and ops that only run others hand it on."""
    names = (match[1] for pattern in _IN_MESSAGE for match in pattern.finditer(message))
    name = next((name for name in names if not name.startswith("__") and not is_carrier(name)), None)
    return (registered(name) or name) if name else None


def _same_op(generated: str, kernel: str) -> str | None:
    """Both name one op: the kernel's spelling, with what only the function knows ("V2")."""
    left, right = generated.lower(), kernel.lower()
    if left == right:
        return kernel
    return kernel + generated[len(kernel) :] if left.startswith(right) else None


def _is_module(frame: Frame) -> bool:
    return frame.function.startswith("<")


def native_place(frame: Frame) -> str:
    return short_function(frame.function)
