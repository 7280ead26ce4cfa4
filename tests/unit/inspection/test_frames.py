"""Which frames are the user's own, and how the others are folded."""

from __future__ import annotations

import pytest

import recorded
from fake_memory import mapping
from faultlens.diagnosis.evidence.folding import Fold, fold, fold_in_words, fold_recursion
from faultlens.inspection.frames import is_own, is_own_line, package_of, short_function, user_frame, without_dying
from faultlens.inspection.own_program import marked, own_program
from faultlens.records.crash import Address, Frame, Thread
from recorded import ended


def python(file: str, function: str = "f", line: int = 1) -> Frame:
    return Frame(kind="python", function=function, file=file, line=line)


TENSORFLOW = "/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2"


def native(function: str, library: str = TENSORFLOW) -> Frame:
    return Frame(kind="native", function=function, library=library)


@pytest.mark.parametrize(
    "file",
    [
        "train.py", "/home/ada/train.py", "/home/ada/lib/train.py", "/tmp/ipykernel_123/456.py",
        "<ipython-input-3-abc>", "/home/ada/python3/train.py",
    ],
)  # fmt: skip
def test_own(file: str) -> None:
    assert is_own(python(file))


@pytest.mark.parametrize(
    "file",
    [
        "/usr/lib/python3.11/threading.py", "/venv/lib/python3.11/site-packages/keras/x.py",
        "/usr/lib/python3/dist-packages/numpy/x.py", "/venv/lib64/python3.13t/os.py", "<string>", "<stdin>",
        "<frozen importlib._bootstrap>", "/usr/lib/python311.zip/os.py", "/tmp/__autograph_generated_file1x.py",
        "/home/ada/src/faultlens/inside/census.py",  # our own code in the program, also where it is not installed
    ],
)  # fmt: skip
def test_not_own(file: str) -> None:
    assert not is_own(python(file))


def test_code_that_was_typed_in_is_own_where_the_stack_begins_with_it() -> None:
    program = Thread(id=1, frames=(python("<string>"), python("/venv/lib/python3.11/site-packages/keras/x.py"),
                                   python("<string>", "<module>")))  # fmt: skip
    helper = Thread(id=2, frames=(python("<string>"), python("/usr/lib/python3.11/threading.py")))
    frames = marked((*program.frames, *helper.frames), own_program([program, helper], None, ()))
    assert [is_own(each) for each in frames] == [True, False, True, True, False]


@pytest.mark.parametrize(
    "frames",
    [
        (python("<string>", "__init__"), python("/home/ada/train.py", "<module>")),  # of a dataclass
        (python("/usr/lib/python3.11/multiprocessing/spawn.py", "spawn_main"), python("<string>", "<module>")),
    ],
)
def test_code_that_a_library_made_up_is_not(frames: tuple[Frame, ...]) -> None:
    told = marked(frames, own_program([Thread(id=1, frames=frames)], None, ()))
    assert not any(is_own(frame) for frame in told if frame.file == "<string>")


def test_a_line_in_a_header_of_the_system_is_not_the_users() -> None:
    header = Frame(kind="native", function="f", library="/home/ada/op.so", file="/usr/include/c++/12/vector", line=3)
    assert is_own(header)
    assert not is_own_line(header)
    assert is_own_line(Frame(kind="native", function="f", library="/home/ada/op.so", file="/home/ada/op.cc", line=3))


@pytest.mark.parametrize(
    ("executable", "libraries", "own"),
    [
        ("/home/ada/simulate", ["/usr/lib/libc.so.6"], True), ("/usr/bin/sort", [], False),
        ("/home/ada/embeds", ["/usr/lib/libpython3.11.so.1.0"], False), ("/home/ada/venv/bin/python3.11", [], False),
    ],
)  # fmt: skip
def test_the_executable_of_a_program_without_python_is_own(executable: str, libraries: list[str], own: bool) -> None:
    mappings = [mapping(0x1000 * at, 0x1000 * at + 1, "r-xp", path) for at, path in enumerate((executable, *libraries))]
    (frame,) = marked([native("main", executable)], own_program([], executable, mappings))
    assert is_own(frame) is own


@pytest.mark.parametrize(
    ("library", "own"),
    [
        ("/home/ada/fast_gather.so", True), ("/usr/lib/x86_64-linux-gnu/libc.so.6", False), ("/lib64/libm.so.6", False),
        ("/venv/lib/python3.11/site-packages/h5py/_x.cpython-311-x86_64-linux-gnu.so", False),
        ("/home/ada/venv/bin/python3.11", False),
    ],
)  # fmt: skip
def test_own_native_code(library: str, own: bool) -> None:
    assert is_own(native("f", library)) is own


def test_user_frame_is_on_the_launching_thread() -> None:
    assert user_frame(recorded.report("segv_in_custom_op").crash) == Frame(
        kind="python", function="main", file="/home/ada/mnist/train.py", line=24, column=19, end_column=39
    )


def test_user_frame_falls_back_to_the_crashed_and_the_main_thread() -> None:
    crashed = Thread(id=2, crashed=True, frames=(python("/venv/lib/python3.11/threading.py"),))
    main = Thread(id=1, frames=(python("a.py"),))
    assert user_frame(ended(pid=1, threads=(crashed, main))) == python("a.py")
    worker = Thread(id=2, crashed=True, frames=(python("b.py"),))
    assert user_frame(ended(pid=1, threads=(worker, main))) == python("b.py")
    assert user_frame(ended(pid=1, threads=(crashed,))) is None


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (python("/venv/lib/python3.11/site-packages/keras/src/x.py"), "keras"),
        (python("/usr/lib/python3.11/threading.py"), "python"),
        (python("<frozen importlib._bootstrap>"), "python"),
        (python("/venv/lib/python3.11/site-packages/six.py"), "six"),
        (native("f"), "tensorflow"),
        (native("f", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "libc"),
        (native("f", "/venv/lib/python3.11/site-packages/numpy.libs/libopenblas.so"), "numpy"),
        (native("f", "/usr/bin/python3.11"), "python"),
        (native("f", "/usr/lib/libpython3.11.so.1.0"), "python"),
        (Frame(kind="native", function="f"), "unknown code"),
    ],
)
def test_package(frame: Frame, name: str) -> None:
    assert package_of(frame) == name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "tensorflow::FooOp<Eigen::Device, float>::Compute(tensorflow::OpKernelContext*)",
            "tensorflow::FooOp<…>::Compute",
        ),
        ("void tensorflow::run<int>(int)", "tensorflow::run<…>"),
        ("tsl::(anonymous namespace)::PThread::ThreadFn(void*)", "tsl::PThread::ThreadFn"),
        ("absl::lts_20250814::Mutex::Lock()", "absl::Mutex::Lock"),
        ("std::function<void ()>::operator()() const", "std::function<…>::operator()"),
        ("operator new(unsigned long)", "operator new"),
        ("a::operator<<(std::ostream&, b)", "a::operator"),
        ("PyErr_Occurred", "PyErr_Occurred"),
        ("<lambda>", "<lambda>"),
        ("", ""),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}::operator()"),
    ],
)
def test_short_function(name: str, short: str) -> None:
    assert short_function(name) == short


def test_frames_that_carry_out_an_abort_are_left_out() -> None:
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    thrower = native("tensorflow::Thrower()")
    dying = [native("unknown", libc), native("raise", libc), native("abort", libc), native("std::terminate()")]
    assert list(without_dying([*dying, thrower])) == [thrower]
    # memcpy and free in libc are places of interest, and an abort deeper in the stack is none of ours
    segv = [native("memcpy", libc), thrower, native("abort", libc)]
    assert list(without_dying(segv)) == segv
    assert list(without_dying(dying)) == dying


def test_runs_of_library_frames_are_folded() -> None:
    keras = "/venv/lib/python3.11/site-packages/keras/src/"
    tensorflow = "/venv/lib/python3.11/site-packages/tensorflow/python/"
    fit = python(keras + "trainer.py", "fit")
    kernel = native("tensorflow::FooOp<float>::Compute(tensorflow::OpKernelContext*)")
    inner = [native("inner0"), native("inner1"), native("inner2")]
    stack = [
        *inner,
        native("a"), native("b"), native("c"),
        kernel,
        native("d"), python(tensorflow + "eager/execute.py"), python(keras + "layer.py"),
        fit,
        python(keras + "utils/traceback_utils.py"),
        python("train.py", "main"),
        python("train.py", "<module>"),
    ]  # fmt: skip
    rows = fold(stack)
    assert rows == [
        *inner,
        Fold(3, ("tensorflow",)),
        kernel,
        Fold(3, ("tensorflow", "keras")),
        fit,  # what the user called, below Keras' wrapper
        python(keras + "utils/traceback_utils.py"),  # one frame takes no more room than its fold
        python("train.py", "main"),
        python("train.py", "<module>"),
    ]
    assert fold_in_words(Fold(12, ("keras", "tensorflow"))) == "… 12 frames in keras, tensorflow"
    assert fold_in_words(Fold(12, ("a", "b", "c", "d"))) == "… 12 frames in a, b, c, …"


def test_code_typed_on_the_command_line_is_not_folded() -> None:
    typed = python("<string>", "<module>")
    library = [native(name) for name in "abcdef"]
    assert fold([*library, typed], innermost=0) == [Fold(6, ("tensorflow",)), typed]


def test_every_frame_is_shown_or_counted() -> None:
    for name in recorded.NAMES:
        for thread in recorded.report(name).crash.threads:
            rows = fold(thread.frames)
            assert sum(row.frames if isinstance(row, Fold) else 1 for row in rows) == len(thread.frames)


# -------------------------------------------------------------------------------------------- recursion


def recursion(times: int, *functions: str) -> list[Frame]:
    return [
        python("tree.py", name, line=7 * number + place)
        for number in range(times)
        for place, name in enumerate(functions)
    ]


@pytest.mark.parametrize("functions", [("walk",), ("even", "odd"), ("a", "a", "a", "b"), tuple("abcdefghijk")])
def test_one_round_of_a_recursion_is_shown_whatever_its_lines(functions: tuple[str, ...]) -> None:
    main = python("tree.py", "<module>")
    stack = [*recursion(90, *functions), main]
    again = Fold(89 * len(functions), round=len(functions))
    assert fold(stack) == [*stack[: len(functions)], again, main]
    assert list(fold_recursion(stack)) == [*stack[: len(functions)], again, main]


def test_a_recursion_through_native_code_and_libraries() -> None:
    inner = native("list_sort", "/usr/lib/libpython3.11.so.1.0")
    turn = [inner, native("list_sort_impl", "/usr/lib/libpython3.11.so.1.0"), inner, python("tree.py", "key")]
    main = python("tree.py", "<module>")
    assert fold([*turn * 50, main], innermost=0) == [Fold(3, ("python",)), turn[-1], Fold(49 * 4, round=4), main]
    nameless = [Frame(kind="native", function="??", library="op.so", offset=Address(place)) for place in (16, 48)]
    assert fold([*nameless * 50, main]) == [*nameless, Fold(98, round=2), main]
    different = [Frame(kind="native", function="??", library="op.so", offset=Address(place)) for place in range(9)]
    assert fold(different) == different


def test_a_recursion_inside_libraries_is_one_run_of_them() -> None:
    stack = [native("Flatten"), native("Helper")] * 20
    assert fold([*stack, python("a.py")], innermost=0) == [Fold(40, ("tensorflow",)), python("a.py")]


def test_a_recursion_in_no_fixed_order_is_cut_in_the_middle() -> None:
    order = [int(digit) for digit in str(7**700)]
    stack = [python("tree.py", f"visit_{number}") for number in order]
    rows = fold(stack)
    assert len(rows) < 45
    assert sum(row.frames if isinstance(row, Fold) else 1 for row in rows) == len(stack)
    assert rows[0] == stack[0] and rows[-1] == stack[-1]


def test_calls_that_come_twice_are_no_recursion() -> None:
    stack = [*recursion(2, "a", "b", "c"), *recursion(3, "d")]
    assert fold(stack) == stack


def test_a_recursion_in_words() -> None:
    assert fold_in_words(Fold(546, round=2)) == "… these 2 calls 273 times more"
    assert fold_in_words(Fold(1200, round=1)) == "… this call 1,200 times more"
