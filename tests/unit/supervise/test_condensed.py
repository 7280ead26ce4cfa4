"""What a report keeps of a source file: lines stay where they are, the text can be parsed, the verdict is the same."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from msgspec.structs import replace

import places
from faultlens.diagnosis.evidence.telling_lines import telling_lines
from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome
from faultlens.supervise import sources
from faultlens.supervise.condensed import around, condensed

RECORDED = sorted(places.RECORDED.glob("*.json"))

TEXT = '''\
"""Secret docstring
over two lines."""
import ctypes, threading
from model import build  # secret comment

KEY = "secret"
lib = ctypes.CDLL("/secret/lib.so")


@decorated("secret")
def unrelated(x, y="secret"):
    return x


def release(p):
    """Secret."""
    if p: lib.free(p); log(f"secret {p}")
    else: return "secret"


class Model:
    name = "secret"

    def train(self, p, note="""secret
    over lines"""):
        threading.Thread(target=release, args=(p,), name="secret").start()

        first = 1
        second = 2  # near comment
        self.run("near", first + second)
        return None


Model().train(build(b"secret"), note="secret")
'''


def test_a_file() -> None:
    at = 1 + TEXT[: TEXT.index("self.run(")].count("\n")
    crash = Crash(outcome=Outcome(kind="ok"), method="agent", sources={"a.py": TEXT})
    kept = condensed(TEXT, around([at]), telling_lines(crash)["a.py"])
    ast.parse(kept)
    lines, before = kept.split("\n"), TEXT.split("\n")
    assert "secret" not in kept.lower().replace('"/secret/lib.so"', "")
    assert lines[at - 2 : at] == ["        second = 2  # near comment", '        self.run("near", first + second)']
    assert lines[2] == "import ctypes, threading" and lines[3] == "from model import build"
    assert lines[6].startswith("lib = ctypes.CDLL(")
    assert "unrelated" not in kept
    assert "lib.free(p)" in lines[before.index('    if p: lib.free(p); log(f"secret {p}")')]
    assert any("threading.Thread(target=release" in line for line in lines)


@pytest.mark.parametrize("module", [ast, inspect, sources])
@pytest.mark.parametrize("at", [1, 2, 50, 120, 700, 10**6])
def test_real_files_can_still_be_parsed(module: object, at: int) -> None:
    text = inspect.getsource(module)  # type: ignore[arg-type]
    near = around([at])
    kept = condensed(text, near, {at + 40, at + 90})
    ast.parse(kept)
    assert len(kept.split("\n")) <= len(text.split("\n"))


def test_what_cannot_be_parsed() -> None:
    assert condensed("def broken(:\nx = 1\ny = 2\n", {2}, {3}) == "\nx = 1\n"
    assert condensed("", set(), set()).strip() == ""


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_verdict_is_that_of_the_whole_file(path: Path) -> None:
    crash = report_file.read(path).crash
    assert _verdicts(_kept_of(crash)) == _verdicts(crash)


def _kept_of(crash: Crash) -> Crash:
    near = {path: around(frame.line for frame in sources._frames(crash) if frame.file == path and frame.line)
            for path in crash.sources}  # fmt: skip
    telling = telling_lines(crash)
    kept = {path: condensed(text, near[path], telling[path]) for path, text in crash.sources.items()}
    return replace(crash, sources=kept, children=tuple(map(_kept_of, crash.children)))


def _verdicts(crash: Crash) -> list[object]:
    found = diagnose(crash).diagnoses
    return [(each.cause, each.confidence, each.title, each.location, each.called_from, each.op) for each in found]
