"""Which op was at work: Python frames, kernel classes, thrown exceptions, messages and sources."""

from __future__ import annotations

import pytest

from faultlens.diagnosis.evidence.custom_ops import loaded_ops
from faultlens.diagnosis.evidence.ops import kernel_op, op_at_fault
from faultlens.diagnosis.evidence.traced import traced_functions
from faultlens.records.crash import CppException, Crash, Frame, Outcome, Output, Thread

PACKAGES = "/home/ada/venv/lib/python3.11/site-packages"
DIED = Outcome(kind="signal", signal="SIGABRT")


def native(function: str) -> Frame:
    return Frame(kind="native", function=function, library=f"{PACKAGES}/tensorflow/libtensorflow_cc.so.2")


def python(function: str, file: str = "/home/ada/project/train.py", line: int = 1) -> Frame:
    return Frame(kind="python", function=function, file=file, line=line)


def crash(*frames: Frame, sources: dict[str, str] | None = None, thrown: CppException | None = None) -> Crash:
    thread = Thread(id=1, crashed=True, launched=True, frames=frames)
    exceptions = (thrown,) if thrown else ()
    return Crash(outcome=DIED, method="agent", threads=(thread,), sources=sources or {}, exceptions=exceptions)


@pytest.mark.parametrize(
    ("function", "op"),
    [
        ("tensorflow::BlockLSTMOp<Eigen::ThreadPoolDevice, float>::Compute(tensorflow::OpKernelContext*)", "BlockLSTM"),
        ("tensorflow::(anonymous namespace)::RaggedTensorToTensorBaseOp<long>::Compute(x)", "RaggedTensorToTensor"),
        ("tensorflow::MaxPoolingOp<Eigen::ThreadPoolDevice, float>::Compute(x)", "MaxPool"),
        ("tensorflow::MklMatMulOp<Eigen::ThreadPoolDevice, float, false>::Compute(x)", "MatMul"),
        ("tensorflow::TransposeCpuOp::Compute(x)", "Transpose"),
        ("tensorflow::SplitOpCPU<float>::Compute(x)", "Split"),
        ("tensorflow::ReductionOp<D, long, int, Eigen::internal::MaxReducer<long, 0> >::Compute(x)", "Max"),
        ("tensorflow::ReductionOp<D, bool, int, Eigen::internal::AndReducer>::Compute(x)", "All"),
        ("tensorflow::BinaryOp<Device, tensorflow::functor::div_no_nan<float> >::Compute(x)", "DivNoNan"),
        ("tensorflow::UnaryOp<Eigen::ThreadPoolDevice, tensorflow::functor::digamma<float> >::Compute(x)", "Digamma"),
        ("tensorflow::EmptyTensorListOp::Compile(tensorflow::XlaOpKernelContext*)", "EmptyTensorList"),
        ("tensorflow::RecordInputOp::RecordInputOp(tensorflow::OpKernelConstruction*)", "RecordInput"),
        ("PadRightOp::Compute(tensorflow::OpKernelContext*)", "PadRight"),  # a custom op
        ("tensorflow::data::IteratorGetNextOp::DoCompute(x)", None),  # runs others
        ("tensorflow::ThreadPoolDevice::Compute(tensorflow::OpKernel*, tensorflow::OpKernelContext*)", None),
        ("tensorflow::AsyncOpKernel::Compute(tensorflow::OpKernelContext*)", None),
    ],
)  # fmt: skip
def test_kernel_classes(function: str, op: str | None) -> None:
    assert kernel_op([native(function)]) == op


def test_a_class_that_serves_many_ops_leaves_it_to_the_inner_frame() -> None:
    inner = native("tensorflow::MatrixSquareRootOp<float>::ComputeMatrix(tensorflow::OpKernelContext*)")
    outer = native("tensorflow::LinearAlgebraOp<float, float>::Compute(tensorflow::OpKernelContext*)")
    assert kernel_op([inner, outer]) == "MatrixSquareRoot"
    assert kernel_op([outer]) is None


def test_the_generated_function_gives_spelling_and_version() -> None:
    frames = (
        python("fifo_queue_v2_eager_fallback", f"{PACKAGES}/tensorflow/python/ops/gen_data_flow_ops.py"),
        python("main"),
    )
    assert op_at_fault(crash(*frames)) == "FIFOQueueV2"


def test_the_thrower_is_named_instead_of_the_op_that_ran_it() -> None:
    frames = (python("make_iterator", f"{PACKAGES}/tensorflow/python/ops/gen_dataset_ops.py"), python("main"))
    threw = native("tensorflow::data::ShuffleDatasetOpBase::ShuffleDatasetBase::Iterator::Iterator(x)")
    thrown = CppException(type="std::bad_alloc", thread=1, seconds_before=0.1, frames=(threw,))
    assert op_at_fault(crash(*frames, thrown=thrown)) == "ShuffleDataset"


def test_a_kernel_elsewhere_is_not_what_the_program_waits_for() -> None:
    waiting = Thread(
        id=1,
        launched=True,
        frames=(python("mat_mul", f"{PACKAGES}/tensorflow/python/ops/gen_math_ops.py"), python("main")),
    )
    shard = Thread(id=2, crashed=True, frames=(native("Eigen::internal::gebp_kernel<float>::operator()(x)"),))
    worker = Thread(id=2, crashed=True, frames=(native("tensorflow::ParseExampleOp::Compute(x)"),))
    assert op_at_fault(Crash(outcome=DIED, method="agent", threads=(shard, waiting))) == "MatMul"
    assert op_at_fault(Crash(outcome=DIED, method="agent", threads=(worker, waiting))) == "ParseExample"


def test_without_any_kernel_the_public_function_is_named() -> None:
    frames = (
        python("convert_to_eager_tensor", f"{PACKAGES}/tensorflow/python/framework/constant_op.py"),
        python("_constant_impl", f"{PACKAGES}/tensorflow/python/framework/constant_op.py"),
        python("constant", f"{PACKAGES}/tensorflow/python/framework/constant_op.py"),
        python("wrapper", f"{PACKAGES}/tensorflow/python/ops/weak_tensor_ops.py"),
        python("main"),
    )
    assert op_at_fault(crash(*frames)) == "constant"


SOURCE = """
import tensorflow as tf
def loss(x):
    return tf.reduce_sum(tf.image.rot90(x))
fast = tf.function(loss, jit_compile=True)
@tf.function
def other(x):
    return tf.matmul(x, x)
fast(1)
"""


def test_a_compiled_function_stands_for_the_ops_in_it() -> None:
    frames = (
        Frame(kind="native", function="??"),
        native("xla::cpu::KernelThunk<2l, 1l>::Execute(xla::cpu::Thunk::ExecuteParams const&)"),
        python("<module>", line=9),
    )
    named = op_at_fault(crash(*frames, sources={"/home/ada/project/train.py": SOURCE}))
    assert named == "loss (reduce_sum, image.rot90)"


def test_traced_functions_and_broken_sources() -> None:
    assert {(function.name, function.xla) for function in traced_functions(SOURCE)} == {
        ("loss", True),
        ("other", False),
    }
    assert list(traced_functions("def broken(:")) == []


@pytest.mark.parametrize(
    ("message", "op"),
    [
        ("InvalidArgumentError: shapes do not fit [Op:Reshape]", "Reshape"),
        ("InvalidArgumentError: {{function_node __wrapped__MatMul_device_/job:localhost/device:CPU:0}} no", "MatMul"),
        ("InvalidArgumentError: {{node model/dense_1/BiasAdd_3}} no", "BiasAdd"),
        ("ValueError: no op is named here", None),
    ],
)
def test_messages_of_exceptions(message: str, op: str | None) -> None:
    text = f'Traceback (most recent call last):\n  File "/home/ada/project/train.py", line 2, in <module>\n{message}\n'
    ended = Crash(outcome=Outcome(kind="exception", exit_code=1), method="status", output=Output(stderr=text))
    assert op_at_fault(ended) == op


def test_ops_of_a_loaded_library() -> None:
    text = 'lib = tf.load_op_library("op.so")\nlib.pad_right(x)\n'
    assert loaded_ops(crash(python("main"), sources={"/home/ada/project/train.py": text})) == ("PadRight",)


@pytest.mark.parametrize(
    "text",
    [
        "lib = tf.load_op_library(path)\nlib.pad_right(x)\n",
        "tf.load_op_library(path).pad_right(x)\n",
        "class A:\n    def __init__(self):\n        self.ops = tf.load_op_library(path)\n    def f(self, x):\n"
        "        return self.ops.pad_right(x)\n",
        "def _load():\n    return tf.load_op_library(path)\nlib = _load()\npad = lib.pad_right\n",
        "lib = tf.load_op_library(path)\nprint(lib.OP_LIST)\ntf.data.Dataset.range(3).map(lib.pad_right)\n",
    ],
)
def test_ops_of_loaded_libraries_wherever_they_are_kept(text: str) -> None:
    assert loaded_ops(crash(sources={"train.py": text})) == ("PadRight",)


def test_a_library_that_another_module_loads() -> None:
    module, program = "lib = tf.load_op_library(path)\n", "from ops import lib\nlib.pad_right(x)\n"
    assert loaded_ops(crash(sources={"ops.py": module, "train.py": program})) == ("PadRight",)
    assert loaded_ops(crash(sources={"train.py": program})) == ()


@pytest.mark.parametrize(
    ("kernel", "calls", "op"),
    [
        ("PadRightKernelImpl", "lib.pad_right(x)", "PadRight"),
        ("PadRightGradOp", "lib.pad_right(x); lib.pad_right_grad(x)", "PadRightGrad"),
        ("PadOp", "lib.pad_right(x); lib.sum_up(x)", "Pad"),  # TensorFlow's own
        ("SumKernel", "lib.sum_up_rows(x); lib.sum_up_columns(x)", "Sum"),  # and again
        ("Gauss", "lib.gauss_rows(x); lib.gauss_columns(x)", "Gauss"),  # either
        ("Gauss", "lib.gauss_rows(x); lib.pad_right(x)", "GaussRows"),
    ],
)
def test_a_kernel_of_a_custom_op_is_told_by_the_registered_name(kernel: str, calls: str, op: str) -> None:
    sources = {"/home/ada/project/train.py": f"lib = tf.load_op_library(path)\n{calls}\n"}
    compute = Frame(
        kind="native", function=f"{kernel}::Compute(tensorflow::OpKernelContext*)", library="/home/ada/o.so"
    )
    assert op_at_fault(crash(compute, sources=sources)) == op


def test_of_a_pipeline_that_hangs_the_dataset_at_its_end_is_named() -> None:
    next_of = "tensorflow::data::{}DatasetOp::Dataset::Iterator::GetNextInternal(x)"
    waiting = Thread(id=1, launched=True, frames=(native(next_of.format("ParallelMap")), python("main")))
    works = Thread(id=2, frames=(native(next_of.format("DataService")), native(next_of.format("ParallelMap"))))
    elsewhere = Thread(id=3, frames=(native(next_of.format("Shuffle")), native(next_of.format("Prefetch"))))
    hung = Crash(outcome=Outcome(kind="timeout"), method="agent", threads=(waiting, elsewhere, works))
    assert op_at_fault(hung) == "DataServiceDataset"
    assert (
        op_at_fault(Crash(outcome=Outcome(kind="timeout"), method="agent", threads=(waiting,))) == "ParallelMapDataset"
    )
