"""The code that runs inside the user's program, outside of any."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultlens.agent import INSIDE, LIBRARY
from faultlens.guest import notes as notes_module
from faultlens.guest.guard import Guard
from faultlens.guest.hooks import Hook, Hooks
from faultlens.guest.lines import LIBRARY as THEIRS
from faultlens.guest.lines import NOT_ASKED, USER, Lines
from faultlens.guest.live import start_time
from faultlens.guest.notes import Notes
from faultlens.guest.own_code import is_own
from faultlens.inspection.frames import is_own as is_own_frame
from faultlens.records.crash import Frame


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/home/ada/train.py", True),
        ("train.py", True),
        ("/tmp/ipykernel_1/2.py", True),
        ("<ipython-input-3-abc>", True),
        ("/usr/lib/python3/dist-packages/tensorflow/python/x.py", False),
        ("/venv/lib/python3.11/site-packages/keras/src/x.py", False),
        ("/opt/python/lib/python3.13t/threading.py", False),
        ("/usr/lib/python311.zip/abc.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", False),
        ("/tmp/__autograph_generated_filex.py", False),
        ("numpy/random/mtrand.pyx", False),
    ],
)
def test_whose_code_it_is(file: str, own: bool) -> None:
    assert is_own(file) is own
    assert is_own_frame(Frame(kind="python", function="f", file=file)) is own


def test_our_own_code_is_not_the_users() -> None:
    assert not is_own(str(INSIDE / "lines.py"))


# -------------------------------------------------------------------------------------------- notes


def test_notes_are_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.touch()
    Notes(str(file)).write({"a": "ä\udcff"}, {"b": [1, 2]})
    first, second = map(json.loads, file.read_text().splitlines())
    assert first == {"pid": os.getpid(), "a": "ä\udcff"}
    assert second["b"] == [1, 2]


def test_notes_stop_at_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_module, "LIMIT_BYTES", 250)
    file = tmp_path / "notes"
    file.touch()
    notes = Notes(str(file))
    for _ in range(10):
        notes.write({"function": "x" * 40})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [list(line)[1] for line in lines] == ["function", "function", "function", "problem"]


# -------------------------------------------------------------------------------------------- guard


def test_the_first_failure_is_told_and_the_last() -> None:
    told: list[str] = []
    guard = Guard(told.append)
    fails = guard(int)
    fails("x")
    fails("y")
    assert told == ["ValueError: invalid literal for int() with base 10: 'x'"]
    assert not guard.working


def test_telling_may_fail_too() -> None:
    def report(_: str) -> None:
        raise OSError(28, "No space left on device")

    guard = Guard(report)
    guard(int)("x")
    assert not guard.working


def test_exceptions_of_signal_handlers_get_through(tmp_path: Path) -> None:
    users_file = tmp_path / "handler.py"
    namespace: dict[str, Any] = {}
    exec(compile("def handler():\n    raise TimeoutError('alarm')\n", users_file, "exec"), namespace)
    guard = Guard(print)
    with pytest.raises(TimeoutError, match="alarm"):
        guard(namespace["handler"])()
    assert guard.working
    with pytest.raises(KeyboardInterrupt):
        guard(interrupted)()


def interrupted() -> None:
    raise KeyboardInterrupt


# ---------------------------------------------------------------------------------------- made in C


@pytest.fixture(scope="session")
def tools() -> dict[str, Callable[..., Any]]:
    if not LIBRARY.exists():
        pytest.skip("needs the agent")
    agent = ctypes.PyDLL(str(LIBRARY))
    agent.faultlens_tools.restype = ctypes.py_object
    return agent.faultlens_tools()  # type: ignore[no-any-return]


def test_a_chain_calls_before_and_after(tools: dict[str, Any]) -> None:
    calls: list[Any] = []

    class Model:
        def fit(self, x: int, scale: int = 1) -> int:
            calls.append("fit")
            return x * scale

    original = Model.fit
    before = lambda *arguments, **keywords: calls.append((arguments[1:], keywords))
    after = lambda result, arguments: calls.append((result, arguments[1:]))
    Model.fit = tools["chain"](original, before, after)  # type: ignore[method-assign]
    assert Model().fit(3, scale=2) == 6
    assert calls == [((3,), {"scale": 2}), "fit", (6, (3,))]

    class Derived(Model):
        def fit(self, x: int, scale: int = 1) -> int:
            return super().fit(x, scale=scale) + 1

    assert Derived().fit(3, scale=2) == 7


def test_a_chain_leaves_no_frame(tools: dict[str, Any]) -> None:
    def fails() -> None:
        raise ValueError("theirs")

    ended: list[Any] = []
    chained = tools["chain"](fails, None, lambda result, _: ended.append(result))
    with pytest.raises(ValueError, match="theirs") as caught:
        chained()
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["fails"]
    assert ended == [None]


def test_an_exception_from_before_or_after_gets_through(tools: dict[str, Any]) -> None:
    calls: list[str] = []
    before = tools["chain"](lambda: calls.append("called"), interrupted, None)
    with pytest.raises(KeyboardInterrupt):
        before()
    assert calls == []
    after = tools["chain"](lambda: 1 // 0, None, lambda *_: interrupted())
    with pytest.raises(KeyboardInterrupt):
        after()


def test_the_innermost_frame_of_the_user(tools: dict[str, Any]) -> None:
    asked: list[str] = []

    def decide(code: Any) -> int:
        asked.append(code.co_name)
        return {"outer": USER, "constant": NOT_ASKED}.get(code.co_name, THEIRS)

    user_frame = tools["frame_finder"](decide)

    def library() -> Any:
        return user_frame()

    def outer() -> Any:
        return library()

    frame = outer()
    assert frame.f_code.co_name == "outer"
    assert asked == ["library", "outer"]
    outer()
    assert asked == ["library", "outer"]  # decided once
    assert library() is None

    def constant() -> Any:
        return user_frame()

    def outer() -> Any:
        return constant()

    assert outer() is None


# -------------------------------------------------------------------------------------------- hooks


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "package_of_theirs"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(f"import marker_of_theirs\nfrom {name} import maths\n")
    (tmp_path / "marker_of_theirs.py").write_text("")
    (tmp_path / name / "maths.py").write_text(
        "def double(x):\n    return 2 * x\nclass Adder:\n    def add(self, x):\n        return x + 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_hooks_are_set_when_a_module_is_imported(package: str, tools: dict[str, Any]) -> None:
    calls: list[Any] = []
    record = lambda *arguments: calls.append(arguments)
    hooks = Hooks(
        tools["chain"],
        Guard(print),
        [
            Hook(f"{package}.maths", "double", before=record),
            Hook(f"{package}.maths", "Adder.add", after=record),
            Hook(f"{package}.maths", "Adder.gone_in_this_release", before=record),
            Hook(f"{package}.not_in_this_release", "f", before=record),
            Hook("other_package.maths", "f", before=record),
        ],
    )
    before = list(sys.meta_path)
    sys.modules.pop(package, None)

    class Marker:
        """Stands for the agent, which tells when the import of the package begins."""

        def find_spec(self, name: str, *_: Any) -> None:
            if name == "marker_of_theirs":
                hooks.importing(package)

    marker = Marker()
    sys.meta_path.insert(0, marker)  # type: ignore[arg-type]
    module = __import__(package)
    sys.meta_path.remove(marker)  # type: ignore[arg-type]
    assert sys.meta_path == before
    assert module.maths.double(4) == 8
    adder = module.maths.Adder()
    assert adder.add(1) == 2
    assert calls == [(4,), (2, (adder, 1))]
    assert "exec_module" not in vars(module.maths.__spec__.loader)


def test_a_module_that_is_there_already(package: str, tools: dict[str, Any]) -> None:
    sys.modules.pop(f"{package}.maths", None)
    sys.modules.pop(package, None)
    module = __import__(package)
    calls: list[Any] = []
    hooks = Hooks(tools["chain"], Guard(print), [Hook(f"{package}.maths", "double", before=calls.append)])
    before = list(sys.meta_path)
    hooks.watch([package])
    assert module.maths.double(1) == 2
    assert calls == [1]
    with pytest.raises(ImportError):
        __import__("this_module_is_not_there")
    assert sys.meta_path == before


def test_lines_of_a_graph(tmp_path: Path, tools: dict[str, Any]) -> None:
    class Graph:
        record: Any
        building_function = True
        _functions = ("__inference_g_1",)

    class Op:
        def __init__(self, name: str) -> None:
            self.name = name

    file = tmp_path / "notes"
    file.touch()
    guard = Guard(print)
    lines = Lines(Notes(str(file)), guard, tools["frame_finder"])
    seen: list[Any] = []
    Graph.record = tools["node_recorder"](lambda _, op: seen.append(op.name), lines.owner, lines.unknown)
    graph: Any = Graph()

    def traced() -> None:
        graph.record(Op("a"))
        for name in ("b", "c"):
            graph.record(Op(name))

    assert lines.begin_trace() and not lines.begin_trace()
    traced()
    assert not lines.end_trace() and lines.end_trace()
    lines.write(graph, b"__inference_f_2", ("f.py", 1, "f"))
    lines.write(graph, "__forward_f_3")
    first, second = map(json.loads, file.read_text().splitlines())
    start = traced.__code__.co_firstlineno
    name = "test_lines_of_a_graph.<locals>.traced" if sys.version_info >= (3, 11) else "traced"
    assert first["places"] == [[__file__, start + 1, name, 0, "a"], [__file__, start + 3, name, 0, "b c"]]
    assert (first["function"], first["calls"], first["defined"]) == (
        "__inference_f_2",
        ["__inference_g_1"],
        ["f.py", 1, "f"],
    )
    assert (second["function"], second["extends"], second["places"]) == ("__forward_f_3", "__inference_f_2", [])
    assert guard.working and seen == ["a", "b", "c"]


def test_what_the_program_raises_is_passed_on(tools: dict[str, Any]) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("theirs")

    class Graph:
        record = tools["node_recorder"](fails, lambda _: True, interrupted)
        other = tools["node_recorder"](lambda *_: 7, lambda _: False, interrupted)

    with pytest.raises(ValueError, match="theirs"):
        Graph().record(None)
    assert Graph().other(None) == 7
    assert Graph().other() == 7


def test_a_program_whose_name_is_not_utf8_has_a_start_time() -> None:
    comm = Path("/proc/self/comm")
    before = comm.read_bytes()
    comm.write_bytes(b"caf\xe9) R")
    try:
        assert start_time(str(os.getpid())).isdigit()
    finally:
        comm.write_bytes(before)
