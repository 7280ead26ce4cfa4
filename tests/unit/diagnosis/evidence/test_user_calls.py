"""What a user would name where no kernel is on the stack: the call that is written on their own line."""

from __future__ import annotations

import pytest

from faultlens.diagnosis.evidence.ops import op_at_fault
from faultlens.diagnosis.evidence.user_calls import called_back_by, public_call
from faultlens.records.crash import Crash, Frame, Outcome, Thread

PACKAGES = "/home/ada/venv/lib/python3.11/site-packages"
TENSORFLOW = f"{PACKAGES}/tensorflow/python"
PROGRAM = "/home/ada/project/train.py"
IMPORTS = "import tensorflow as tf\nfrom tensorflow.python.eager import context\nimport keras\n"


def inside(function: str, file: str) -> Frame:
    return Frame(kind="python", function=function, file=file, line=1)


def crash(line: str, *called: Frame, running: str | None = None, imports: str = IMPORTS) -> Crash:
    """`called`: the functions below the line, the innermost first; `running`: the part of it that runs."""
    number = imports.count("\n") + 1
    start = line.index(running) if running else None
    end = start + len(running) if start is not None and running else None
    own = Frame(kind="python", function="main", file=PROGRAM, line=number, column=start, end_column=end)
    thread = Thread(id=1, crashed=True, launched=True, frames=(*called, own))
    died = Outcome(kind="signal", signal="SIGSEGV")
    return Crash(outcome=died, method="agent", threads=(thread,), sources={PROGRAM: f"{imports}{line}\n"})


def named(found: Crash) -> str | None:
    return public_call(found, found.launching_thread)


def test_a_function_is_named_as_it_is_written() -> None:
    called = (inside("convert_to_eager_tensor", f"{TENSORFLOW}/framework/constant_op.py"),)
    assert named(crash("x = f(tf.constant(deep))", *called, running="tf.constant(deep)")) == "tf.constant"


def test_so_is_one_of_the_context() -> None:
    called = (inside("check_alive", f"{TENSORFLOW}/eager/context.py"),) * 2
    line = "print(context.check_alive(worker))"
    assert named(crash(line, *called, running="context.check_alive(worker)")) == "context.check_alive"
    assert op_at_fault(crash(line, *called, running=None, imports="")) == "check_alive"  # older Pythons, other files


def test_an_object_that_is_being_made_is_named_by_its_class() -> None:
    file = f"{TENSORFLOW}/distribute/collective_all_reduce_strategy.py"
    called = (inside("_initialize_strategy", file), inside("__init__", file))
    line = "strategy = tf.distribute.MultiWorkerMirroredStrategy()"
    assert named(crash(line, *called)) == "tf.distribute.MultiWorkerMirroredStrategy"
    assert named(crash("s = MultiWorkerMirroredStrategy()", *called, imports="")) == "MultiWorkerMirroredStrategy"


@pytest.mark.parametrize(
    ("line", "running", "file", "function", "name"),
    [
        ("m.save(path)", "m.save(path)", "keras/src/models/model.py", "save", "Model.save"),
        ("net.fit(x)", "net.fit(x)", "keras/src/backend/tensorflow/trainer.py", "fit", "Model.fit"),
        ("i.invoke()", "i.invoke()", "tensorflow/lite/python/interpreter.py", "invoke", "Interpreter.invoke"),
        (
            "tf.train.Checkpoint(m=m).save(p)",
            "tf.train.Checkpoint(m=m).save(p)",
            "tensorflow/python/checkpoint/checkpoint.py",
            "save",
            "tf.train.Checkpoint.save",
        ),
    ],
)
def test_methods_are_named_by_their_class(line: str, running: str, file: str, function: str, name: str) -> None:
    assert named(crash(line, inside(function, f"{PACKAGES}/{file}"), running=running)) == name


def test_printing_is_not_an_op_of_its_own_name() -> None:
    file = f"{TENSORFLOW}/framework/ops.py"
    called = (inside("value_text", file), inside("__repr__", file))
    assert named(crash("print(t)", *called, running="print(t)")) == "print"


def test_what_only_hands_on_is_never_named() -> None:
    file = f"{TENSORFLOW}/distribute/x.py"
    assert named(crash("train()", inside("_prepare", file), inside("__init__", file), running="train()")) is None
    assert named(crash("train()", running="train()")) is None  # TensorFlow has no part in it


def test_a_traced_function_is_named_with_the_calls_in_it() -> None:
    source = "import tensorflow as tf\nfrom tensorflow.python.ops import collective_ops\n@tf.function\ndef total(x):\n"
    source += "    return collective_ops.all_reduce(x)\n"
    eager = f"{TENSORFLOW}/eager"
    called = (
        inside("call_function", f"{eager}/context.py"),
        inside("__call__", f"{eager}/polymorphic_function/polymorphic_function.py"),
        inside("error_handler", f"{TENSORFLOW}/util/traceback_utils.py"),
    )
    assert op_at_fault(crash("total(1)", *called, running="total(1)", imports=source)) == "total (all_reduce)"


def test_code_that_tensorflow_calls_back_is_named_by_who_calls_it() -> None:
    iterator = f"{TENSORFLOW}/data/ops/iterator_ops.py"
    thread = Thread(
        id=1,
        crashed=True,
        launched=True,
        frames=(
            inside("make_iterator", f"{TENSORFLOW}/ops/gen_dataset_ops.py"),
            inside("_create_iterator", iterator),
            inside("__iter__", f"{TENSORFLOW}/data/ops/dataset_ops.py"),
            inside("gen", PROGRAM),
            inside("generator_py_func", f"{TENSORFLOW}/data/ops/from_generator_op.py"),
            inside("__call__", f"{TENSORFLOW}/ops/script_ops.py"),
        ),
    )
    assert called_back_by(thread) == "Dataset.from_generator"
    ended = Crash(outcome=Outcome(kind="signal", signal="SIGABRT"), method="agent", threads=(thread,))
    assert op_at_fault(ended) == "Dataset.from_generator"
    assert called_back_by(Thread(id=1, frames=thread.frames[:4])) is None
