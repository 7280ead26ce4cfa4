"""From the name of a node at run time to the line that wrote it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from faultlens.inspection.graph_lines import GraphLines, statement_line, with_graph_lines
from faultlens.records.crash import Crash, Frame, Kernel, Outcome, Thread

TRACED = Path(__file__).parent / "traced"
NOTES = (TRACED / "notes.jsonl").read_bytes()
PROGRAM = (TRACED / "program.py").read_text()
FILE = "/project/program.py"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def lines() -> GraphLines:
    return GraphLines.parse(NOTES, 4711)


BACKWARD_BRANCH = "gradient_tape/cond/StatelessIf/then/_40/gradient_tape/cond/gradients/cond/PartitionedCall_grad"
STEP_CALL = {(FILE, line_of("step(tf.ones"))}


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("Mean", "loss = tf.reduce_mean("),
        ("Maximum", "for _ in tf.range"),
        ("cond/else/_1/cond/Exp", "y = tf.exp(x)"),
        ("cond/then/_0/cond/PartitionedCall/MatMul", "tf.linalg.matmul"),  # in a function called from a branch
        ("while/body/_12/while/Sin", "y = tf.sin(y)"),
        ("ArithmeticOptimizer/ReplaceMulWithSquare_cond/then/_0/cond/PartitionedCall/mul", "tf.linalg.matmul"),
        ("ConstantFolding/Greater", "if tf.reduce_sum(x) > 0"),
        ("Sum-0-TransposeNHWCToNCHW-LayoutOptimizer", "if tf.reduce_sum(x) > 0"),
        # The gradient of an op leads to the op; where its name does not tell, to the call for gradients.
        ("gradient_tape/while/body/_30/gradient_tape/while/gradients/while/Sin_grad/Cos", "y = tf.sin(y)"),
        (f"{BACKWARD_BRANCH}/PartitionedCall/gradients/MatMul_grad/MatMul_1", "tf.linalg.matmul"),
        ("gradient_tape/ReluGrad", "tape.gradient"),
        ("gradient_tape/truediv", "tape.gradient"),
    ],
)
def test_names_at_run_time(lines: GraphLines, node: str, text: str) -> None:
    found = lines.find(node)
    assert found.frame and (found.frame.file, found.frame.kind) == (FILE, "python")
    line = statement_line(PROGRAM, found.frame.line or 0) if found.in_statement else found.frame.line
    assert line == line_of(text)


@pytest.mark.parametrize(
    ("node", "layer", "text"),
    [
        ("conv2d_1/convolution", "conv2d", "layers.Conv2D"),  # a layer of Keras: the line that made it
        ("norm_1/batchnorm/mul_1", "norm", "BatchNormalization"),
        ("local_1/LRN", "local", "tf.nn.lrn(x)"),  # a layer of the user's: the line inside it
        ("dense_1/MatMul", "dense", "layers.Dense(1)"),
    ],
)
def test_layers(lines: GraphLines, node: str, layer: str, text: str) -> None:
    found = lines.find(f"StatefulPartitionedCall/sequential_1/{node}")
    assert found.layer == layer
    place = found.frame or found.layer_made
    assert place and place.line == line_of(text)
    assert (found.frame is None) == (layer != "local")
    assert found.function and found.function.startswith("__inference_one_step_on_data")
    gradient = lines.find(f"StatefulPartitionedCall/gradient_tape/sequential_1/{node}/Grad")
    assert gradient == lines.find("no such node")  # names are not made up


def test_gradients_of_layers(lines: GraphLines) -> None:
    for node, layer, text in (
        ("dense_1/MatMul/MatMul_1", "dense", "layers.Dense(1)"),
        ("local_1/LRNGrad", "local", "tf.nn.lrn(x)"),
        ("conv2d_1/convolution/Conv2DBackpropFilter", "conv2d", "layers.Conv2D"),
    ):
        found = lines.find(f"StatefulPartitionedCall/gradient_tape/sequential_1/{node}")
        place = found.frame or found.layer_made
        assert place and (found.layer, place.line) == (layer, line_of(text)), node


def test_a_name_that_means_several_lines_means_none(lines: GraphLines) -> None:
    assert lines.find("Relu").frame is None  # in step(), in inner() and in other()
    by_function = lines.find("Relu", next(f.function for f in lines._functions if "other" in (f.function or "")))
    assert by_function.frame and by_function.frame.line == line_of("    return tf.nn.relu(x)")
    by_caller = lines.find("Relu", callers={(FILE, line_of("other(tf.ones"))})
    assert by_caller == by_function
    inlined = lines.find("cond/then/_0/cond/PartitionedCall/Relu", callers=STEP_CALL)
    assert inlined.frame and inlined.frame.line == line_of("tf.nn.relu(scaled(x))")


@pytest.mark.parametrize(
    "node", ["", "/", "Nothing", "my_scope/MatMul", "Sin", "while/Sin/", "x" * 100_000, "a/" * 2000]
)
def test_unknown_names_find_nothing(lines: GraphLines, node: str) -> None:
    assert lines.find(node).frame is None


def test_the_definition_of_a_function(lines: GraphLines) -> None:
    name = next(f.function for f in lines._functions if f.defined and f.defined.function == "inner")
    frame = lines.defined(name or "")
    assert frame and frame.line in (line_of("def inner"), line_of("def inner") - 1)  # or its decorator
    assert lines.defined("inner") is None


def test_graphs_of_other_processes_are_left_out() -> None:
    assert GraphLines.parse(NOTES, 4712).find("Mean").frame is None
    assert GraphLines.parse(NOTES, 4712, 4711).find("Mean").frame is not None  # forked from it


def test_problems_are_told() -> None:
    noted = NOTES + b'{"pid":4711,"problem":"OSError: [Errno 28]"}\n'
    assert GraphLines.parse(noted, 4711).problems == ("OSError: [Errno 28]",)


def test_damaged_notes() -> None:
    rng = random.Random(0)
    for _ in range(300):
        damaged = bytearray(NOTES[: rng.randrange(len(NOTES))])
        for _ in range(rng.randrange(20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        lines = GraphLines.parse(bytes(damaged), 4711)
        for node in ("range", "gradient_tape/while/gradients/while/Sin_grad/Cos", "sequential_1/norm_1/mul"):
            frame = lines.find(node, callers=STEP_CALL).frame
            assert frame is None or 0 < (frame.line or 0) < 2**31


@pytest.mark.parametrize(
    "notes",
    [
        b"\0" * 4096,
        b"[" * 100_000,
        b'{"pid":1,"function":"f","places":[["f",0,"g",0,"a"]]}',
        b'{"pid":1,"function":"f","places":[["f",-1,"g",0,"a"],["f",1]]}',
        b'{"pid":1,"function":"f","places":[["' + b"f" * 10_000 + b'",1,"g",0,"a"]]}',
        b'{"pid":1,"function":"f","extends":"f","places":[["f",1,"g",0,""]],"calls":["f"]}',
        b'{"pid":"x","layer":7}',
    ],
)
def test_hostile_notes(notes: bytes) -> None:
    lines = GraphLines.parse(notes, 1)
    assert lines.find("a").frame is None
    assert lines.defined("f") is None


# ---------------------------------------------------------------------------------------------- in a crash


def crash(kernel: Kernel, *native: str) -> Crash:
    call = Frame(kind="python", function="<module>", file=FILE, line=line_of("step(tf.ones"))
    frames = tuple(Frame(kind="native", function=function) for function in native)
    return Crash(
        outcome=Outcome(kind="signal"),
        method="agent",
        pid=4711,
        threads=(Thread(id=2, crashed=True, frames=frames), Thread(id=1, launched=True, frames=(call,))),
        kernels=(kernel,),
    )


EXECUTOR = "tensorflow::(anonymous namespace)::ExecutorState<tensorflow::PropagatorState>::Process(…)"


def test_the_kernel_gets_its_line_and_the_statement_begins_it() -> None:
    before = crash(Kernel(op="_MklMatMul", node="cond/then/_0/cond/PartitionedCall/MatMul", thread=2), EXECUTOR)
    (kernel,) = with_graph_lines(before, NOTES, {FILE: PROGRAM}.get).kernels
    assert kernel.written and kernel.written.line == line_of("tf.linalg.matmul(")
    assert kernel.function is None  # inner() or its twin that keeps what the gradients need
    (kernel,) = with_graph_lines(before, NOTES, lambda _: None).kernels  # the file has changed
    assert kernel.written and kernel.written.line in range(line_of("matmul(") + 1, line_of("matmul(") + 4)


def test_an_op_called_eagerly_has_no_node() -> None:
    kernel = Kernel(op="Mean", node="Mean", thread=2, kernel_class="tensorflow::MeanOp")
    run = "tensorflow::KernelAndDeviceOp::Run(…)"
    for native in (("tensorflow::MeanOp::Compute(…)", run), (EXECUTOR, "tensorflow::MeanOp::Compute(…)", run), ()):
        assert with_graph_lines(crash(kernel, *native), NOTES, {}.get).kernels == (kernel,)


SYNCHRONOUS = (
    "tensorflow::MeanOp::Compute(…)",
    "tensorflow::(anonymous namespace)::SingleThreadedExecutorImpl::Run(…)",
    "tensorflow::KernelAndDeviceFunc::Run(…)",
)


def started_by(kernel: Kernel, *python: str) -> Crash:
    """TensorFlow runs a small function as it runs a single op, which it wraps in a function of its own."""
    before = crash(kernel, *SYNCHRONOUS)
    calls = tuple(Frame(kind="python", function=function) for function in python)
    crashed, launching = before.threads
    return replace(before, threads=(replace(crashed, frames=(*crashed.frames, *calls)), launching))


@pytest.mark.parametrize(
    "python",
    [("mean",), ("_mean",), ("quick_execute", "mean_eager_fallback", "mean"), ("mean", "py_function", "call_function")],
)
def test_an_op_that_python_called_is_not_that_of_a_function(python: tuple[str, ...]) -> None:
    kernel = Kernel(op="Mean", node="Mean", thread=2, kernel_class="tensorflow::MeanOp")
    assert with_graph_lines(started_by(kernel, *python), NOTES, {}.get).kernels == (kernel,)


@pytest.mark.parametrize("python", [("quick_execute", "call_function", "mean"), ("iterator_get_next",), ()])
def test_an_op_of_a_function_that_python_called(python: tuple[str, ...]) -> None:
    kernel = Kernel(op="Mean", node="Mean", thread=2, kernel_class="tensorflow::MeanOp")
    (found,) = with_graph_lines(started_by(kernel, *python), NOTES, {}.get).kernels
    assert found.written and found.written.line == line_of("reduce_mean(")


def test_a_function_that_runs_as_an_op() -> None:
    name = next(f.function for f in GraphLines.parse(NOTES)._functions if f.defined and f.defined.function == "step")
    (kernel,) = with_graph_lines(crash(Kernel(op=name or "", node=name or "", thread=2)), NOTES, {}.get).kernels
    assert kernel.written and kernel.written.function == "step"
    assert kernel.function == name


def test_statements() -> None:
    assert statement_line("a = f(\n  1,\n  2)\nb = 1\n", 3) == 1
    assert statement_line("def f():\n  return g(\n    1)\n", 3) == 2
    assert statement_line("if (a\n  or b):\n  c()\n", 2) == 1
    assert statement_line("not python", 5) == 5
    assert statement_line("", 5) == 5
