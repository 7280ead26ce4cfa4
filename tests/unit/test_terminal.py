"""The report as people see it: compared with the expected text, and shown hostile facts."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import recorded
from msgspec.structs import replace
from rich.console import Console

from faultlens.cli import output
from faultlens.crash import (
    Address,
    CppException,
    Crash,
    Fault,
    Frame,
    Instruction,
    Library,
    Limit,
    Mapping,
    MemoryUse,
    Outcome,
    Output,
    Program,
    Sample,
    Thread,
)
from faultlens.diagnosis import Diagnosis, Evidence, Fix, RuledOut
from faultlens.report import terminal
from faultlens.reportfile import Report

STORED = Path("/reports/20251116T120000Z-python-SIGSEGV-1a2b3c4d/report.json")


@pytest.mark.parametrize("name", recorded.NAMES)
def test_plain_text(name: str) -> None:
    report = recorded.report(name, with_sources=True)
    expected = (recorded.FOLDER / f"{name}.txt").read_text()
    assert recorded.plain(report, stored=STORED) == expected


def test_verbose_shows_every_kind_of_fact() -> None:
    report = recorded.report("segv_in_custom_op")
    expected = (recorded.FOLDER / "segv_in_custom_op.verbose.txt").read_text()
    assert recorded.plain(report, verbose=True, stored=STORED) == expected


def test_no_line_of_the_short_report_is_wider_than_a_pipe_unless_it_holds_a_path() -> None:
    for name in recorded.NAMES:
        for line in recorded.plain(recorded.report(name)).splitlines():
            assert len(line) <= output.PIPE_WIDTH


def test_diagnosis() -> None:
    report = replace(
        recorded.report("child_crashed"),
        diagnoses=(
            Diagnosis(
                cause="op-bad-argument",
                code="FL301",
                confidence=0.93,
                title="batch_to_space divides by a block shape of 0",
                evidence=(Evidence(fact="ecx, the divisor, is 0", source="registers"),),
                fixes=(Fix(title="pass a block shape of at least 1", detail="pool.py:8", grade="safe"),),
            ),
        ),
        ruled_out=(RuledOut(cause="illegal-instruction", because="the signal is SIGFPE"),),
    )
    assert recorded.plain(report).split("\n\n")[1] == (
        "   cause  FL301 batch_to_space divides by a block shape of 0  (93% sure)\n"
        " because  ecx, the divisor, is 0  [registers]\n"
        "     fix  pass a block shape of at least 1  (safe)\n"
        "          pool.py:8\n"
        "     not  illegal-instruction: the signal is SIGFPE"
    )


# ------------------------------------------------------------------------------------- source excerpt


def test_source_that_is_not_known_is_not_shown() -> None:
    assert "▶" not in recorded.plain(recorded.report("segv_in_custom_op"))


@pytest.mark.parametrize(
    ("source", "frame", "shown"),
    [
        # Columns are bytes of UTF-8; tabs are drawn as four columns.
        (
            "größe = f(x)\n",
            {"line": 1, "column": 10, "end_column": 14},
            ["▶ 1 │ größe = f(x)", " " * 4 + "│         ^^^^"],
        ),
        (
            "if x:\n\tf(x)\n",
            {"line": 2, "column": 1, "end_column": 5},
            ["  1 │ if x:", "▶ 2 │     f(x)", "    │     ^^^^"],
        ),
        # The expression goes on in the next line.
        ("f(\n  1)\n", {"line": 1, "column": 0, "end_column": 0}, ["▶ 1 │ f(", "    │ ^^", "  2 │   1)"]),
        ("f()\n", {"line": 1}, ["▶ 1 │ f()"]),
        ("f()\n", {"line": 99}, []),
        ("f()\n", {"line": -1}, []),
        ("f(\x1b[31m)\n", {"line": 1}, ["▶ 1 │ f()"]),
    ],
)
def test_excerpt(source: str, frame: dict[str, int], shown: list[str]) -> None:
    stack = (Frame(kind="python", function="g", file="own.py", **frame),)  # type: ignore[arg-type]
    crash = recorded.ended(pid=1, threads=(Thread(id=1, crashed=True, frames=stack),), sources={"own.py": source})
    text = recorded.plain(Report(outcome=crash.outcome, crash=crash))
    assert re.findall(r"^ {10}(.*│.*)$", text, re.M)[: len(shown)] == shown
    assert ("▶" in text) is bool(shown)


# -------------------------------------------------------------------------------------------- streams


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO) -> str:
    output.render(recorded.report("segv_in_custom_op"), stream)
    return stream.getvalue()


def test_colours_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # of no account: a pipe stays plain
    assert "\x1b[" in shown(Terminal())
    assert "\x1b" not in shown(io.StringIO())


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(Terminal())


def test_ascii_stream() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    output.render(recorded.report("segv_in_custom_op", with_sources=True), stream, verbose=True)
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "> 24 |" in text
    assert "\\u" not in text


@pytest.mark.parametrize("width", [1, 20, 40, 80, 100, 300])
def test_any_width(width: int) -> None:
    for name in recorded.NAMES:
        console = Console(file=io.StringIO(), width=width)
        terminal.render(recorded.report(name), verbose=True, console=console)


# ------------------------------------------------------------------------------------ hostile content

EVIL = (
    "\x1b[31m\x1b]0;owned\x07\x1b[2J[red]<script>alert(1)</script>[/red]\u202egnp\x00\x07\r\n[link=http://x]"
    "\udcff\ud800 日本語 [/]"
)


def hostile() -> Report:
    place = Address(0x1000)
    stack = (
        Frame(kind="native", function=EVIL, library=f"/lib/{EVIL}.so", offset=place),
        Frame(kind="native", function="f<" * 5000, approximate=True),
        Frame(kind="python", function=EVIL, file=EVIL, line=-5, column=3, end_column=1),
        Frame(kind="python", function="g" * 50_000, file="/home/u/" + "d/" * 3000 + "x.py", line=10**12),
    )
    crash = Crash(
        outcome=Outcome(kind="signal", signal="SIGSEGV"),
        method="core",
        pid=7,
        time=1e300,
        seconds=-1.0,
        program=Program(command=(EVIL, "x" * 100_000), directory=EVIL, environment={EVIL: EVIL, "A": "B" * 300_000}),
        fault=Fault(
            signal="SIGSEGV",
            code="SEGV_ACCERR",
            thread=7,
            address=place,
            access="write",
            registers={EVIL: place},
            instruction=Instruction(address=place, code="zz" * 500, text=EVIL),
        ),
        also_faulted=(Fault(signal=EVIL, code=EVIL, thread=8),),
        threads=(
            Thread(id=7, name=EVIL, python_name=EVIL, crashed=True, frames=stack),
            Thread(id=8, name="[bold]x[/bold]" + "y" * 1000),
        ),
        mappings=(Mapping(start=place, end=Address(0x2000), permissions="r--p", path=f"/data/{EVIL}"),),
        libraries=(Library(path=EVIL, start=place, build_id=EVIL),),
        abort_message=EVIL,
        exceptions=(CppException(type=EVIL, message="m" * 90_000, thread=7, seconds_before=1e30),),
        output=Output(stderr=EVIL * 50 + "Check failed: " + EVIL, stdout=EVIL),
        kernel_log=(EVIL,),
        gaps=(EVIL,),
        limits={EVIL: Limit(soft=10**18, hard=None)},
        timeline=(Sample(seconds=0, rss_anonymous=-5), Sample(seconds=-9, rss_anonymous=10**18)),
        memory=MemoryUse(rss_anonymous=-1, threads=-3),
        children=(recorded.ended(program=Program(command=(EVIL,))),),
    )
    diagnosis = Diagnosis(
        cause=EVIL,
        code="FL1[red]",
        confidence=1e9,
        title=EVIL,
        evidence=(Evidence(fact=EVIL, source=EVIL),),
        fixes=(Fix(title=EVIL, detail=EVIL),),
    )
    ruled_out = (RuledOut(cause=EVIL, because=EVIL),)
    return Report(outcome=crash.outcome, crash=crash, diagnoses=(diagnosis,), ruled_out=ruled_out)


@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_content_is_shown_safely(verbose: bool) -> None:
    text = recorded.plain(hostile(), verbose=verbose)
    assert not set(text) & {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}
    assert "\u202e" not in text
    assert "[red]<script>alert(1)</script>[/red]gnp" in text  # shown as it is, not obeyed
    assert "\\xff\\ud800" in text
    text.encode()
    assert len(text) < 60_000


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_hostile_content_on_any_stream(encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    output.render(hostile(), stream, verbose=True)
    stream.flush()
