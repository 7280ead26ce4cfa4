"""The report as people see it: compared with the expected text, and shown hostile facts."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

import in_flight
import recorded
from faultlens.cli import output
from faultlens.records.crash import Frame, Outcome, Thread
from faultlens.records.diagnosis import Diagnosis, Evidence, RuledOut
from faultlens.records.report_file import Report
from faultlens.report import terminal
from hostile import hostile

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


def test_verdict_comes_first_then_its_line_its_proof_its_fix_and_where_to_read_on() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    assert recorded.plain(report, stored=STORED) == (
        "error[FL999] made-up-cause: FastGather reads table 3, which was never loaded\n"
        "  (SIGSEGV, 93% sure)\n"
        "\n"
        "      at  train.py:24  in main\n"
        "            22 │ for epoch in range(10):\n"
        "            23 │     for images, labels in data:\n"
        "          ▶ 24 │         loss = step(images, labels)\n"
        "               │                ^^^^^^^^^^^^^^^^^^^^\n"
        "            25 │     print(epoch, float(loss))\n"
        "\n"
        " because  · rdi, through which it reads, is 0\n"
        "          · died in FastGatherOp<…>::Compute of fast_gather.so, which is not\n"
        "            TensorFlow's\n"
        "\n"
        "     fix  · load every table before the first call  (safe)\n"
        "            call `fast_gather.load(path)` for each of the tables that the\n"
        "            vocabulary names\n"
        "          · return an error from the op when a table is missing\n"
        "\n"
        "    more  `faultlens show -v`\n"
    )


def test_verbose_has_the_sources_of_the_proof_rivals_and_what_was_ruled_out() -> None:
    parts = recorded.plain(recorded.diagnosed("segv_in_custom_op"), verbose=True).split("\n\n")
    assert parts[2:7] == [
        " because  · rdi, through which it reads, is 0  [registers]\n"
        "          · died in FastGatherOp<…>::Compute of fast_gather.so, which is not\n"
        "            TensorFlow's  [native stack]",
        "     fix  · load every table before the first call  (safe)\n"
        "            call `fast_gather.load(path)` for each of the tables that the\n"
        "            vocabulary names\n"
        "          · return an error from the op when a table is missing  (needs thought)",
        "      or  · FL998 another-cause: the op library is of another TensorFlow (41%\n            sure)",
        "     not  · stack-overflow: the instruction is an ordinary mov",
        "happened  python died by SIGSEGV in train.py:24 (main) → fast_gather.so,\n"
        "          FastGatherOp<…>::Compute, thread 'tf_Compute'",
    ]


def test_facts_that_only_say_how_it_died_give_way_to_those_that_say_why() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    facts = [("SIGSEGV at address 0x0", "siginfo"), ("in Compute", "native stack"), ("table 3 is null", "registers")]
    facts += [(f"shape [{number}]", "ops in flight") for number in range(4)]
    evidence = tuple(Evidence(fact=fact, source=source) for fact, source in facts)
    text = recorded.plain(replace(report, diagnoses=(replace(report.diagnoses[0], evidence=evidence),)))
    assert re.findall(r"· (.*)", text.partition("because")[2].partition("fix")[0]) == [
        "table 3 is null",
        "shape [0]",
        "shape [1]",
    ]
    bare = replace(report.diagnoses[0], evidence=evidence[:3])
    assert "because  · SIGSEGV at address 0x0\n          · table 3 is null\n\n" in recorded.plain(
        replace(report, diagnoses=(bare,))
    )


def test_a_fact_that_the_title_has_is_not_said_twice() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    said = Evidence(fact="Check failed: 4 < 3 (tensor.cc:1120)", source="stderr")
    found = replace(report.diagnoses[0], title="Slice ended it: Check failed: 4 < 3", evidence=(said,))
    other = Evidence(fact="4 rows were asked for", source="ops in flight")
    assert "tensor.cc" in recorded.plain(replace(report, diagnoses=(found,))), "better twice than no proof"
    text = recorded.plain(replace(report, diagnoses=(replace(found, evidence=(said, other)),)))
    assert "4 rows were asked for" in text and "tensor.cc" not in text


def test_a_rival_that_is_nearly_as_likely_is_named() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    first, rival = report.diagnoses
    assert "another-cause" not in recorded.plain(report)
    text = recorded.plain(replace(report, diagnoses=(first, replace(rival, confidence=0.9))))
    assert "      or  FL998 another-cause (90% sure): the op library is of another TensorFl…\n" in text


def test_no_verdict_is_said_so_with_what_would_decide() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    unknown = replace(report.diagnoses[0], cause="unknown", code="FL000", title="nothing decides", confidence=0.0)
    text = recorded.plain(replace(report, diagnoses=(unknown,)))
    assert text.startswith("error[FL000] unknown: nothing decides (SIGSEGV)\n\n")
    assert "\n    next  · load every table before the first call\n" in text
    assert "sure" not in text and "     fix" not in text and "needs thought" not in text


@pytest.mark.parametrize(
    ("kind", "signal", "title"),
    [("signal", "SIGSEGV", "error[FL1]"), ("signal", "SIGTERM", "warning[FL1]"), ("exit", None, "warning[FL1]")],
)
def test_level(kind: str, signal: str | None, title: str) -> None:
    crash = recorded.ended(outcome=Outcome(kind=kind, signal=signal))  # type: ignore[arg-type]
    found = Diagnosis(cause="c", code="FL1", confidence=0.5, title="t")
    assert recorded.plain(Report(outcome=crash.outcome, crash=crash, diagnoses=(found,))).startswith(title)


def test_exceptions_that_were_thrown_are_told_with_everything() -> None:
    report = recorded.report("abort_by_check")
    assert "  thrown  " not in recorded.plain(report)
    assert "  thrown  " in recorded.plain(report, verbose=True)


def test_ruled_out_causes_of_many_families_are_mentioned() -> None:
    """In turn one of each family; with one family, the first ones."""
    others = tuple(RuledOut(cause=f"not-in-the-catalogue-{number}", because="a fact") for number in range(9))
    report = replace(recorded.diagnosed("segv_in_custom_op"), ruled_out=others)
    assert re.findall(r"not-in-the-catalogue-(\d)", recorded.plain(report, verbose=True)) == ["0", "1", "2", "3", "4"]
    assert "not-in-the-catalogue" not in recorded.plain(report)


# ---------------------------------------------------------------------------------- inside TensorFlow


def test_the_line_that_wrote_the_op_then_the_op_then_how_far_the_program_had_come() -> None:
    parts = recorded.plain(in_flight.report(), stored=STORED).split("\n\n")
    assert parts[1].startswith("      at  train.py:14  in step\n")
    assert parts[1].endswith(
        "\n          called from train.py:24  in main\n"
        "      op  FastGather (layer gather)\n"
        "          inputs 0: float32 [32, 10] · 1: int64 [12] · 2: int64 [] = 0\n"
        "                 3: string [2] · 4: not set · … 1 more input\n"
        "          with shape = [-1, 10] · table = 'digits'\n"
        "progress  in step 1,204 (of 1,875) of epoch 4 (of 10), while training"
    )
    assert parts[-1] == "    more  `faultlens show -v` · `faultlens repro`\n"
    whole = recorded.plain(in_flight.report(), verbose=True, stored=STORED)
    assert "      op  FastGather (node model/gather/FastGather, layer gather)\n" in whole
    assert "          also in flight: MatMul, StatefulPartitionedCall\n" in whole
    assert whole.splitlines()[-3:] == [
        "          `faultlens repro` writes a small script that crashes the same way",
        "          contents of 3 inputs (121 bytes) are kept in this report;",
        "          `--no-contents` leaves them out",
    ]


def test_an_earlier_report_is_named_where_to_read_on() -> None:
    stream = io.StringIO()
    output.render(in_flight.report(), stream, stored=STORED, name="1a2b")
    assert stream.getvalue().endswith("\n    more  `faultlens show 1a2b -v` · `faultlens repro 1a2b`\n")


def test_the_line_that_wrote_the_op_is_named_where_it_is_not_quoted() -> None:
    report = in_flight.report()
    unquoted = replace(report, crash=replace(report.crash, sources={}))
    assert "\n      at  train.py:14  in step\n          called from train.py:24  in main\n" in recorded.plain(unquoted)
    elsewhere = replace(report, diagnoses=())
    assert "\n          written at train.py:14 in step\n" in recorded.plain(elsewhere)


def test_verbose_shows_the_ops_in_flight() -> None:
    text = recorded.plain(in_flight.report(reproducer=in_flight.REPRODUCER), verbose=True, stored=STORED)
    assert (
        "     ops  FastGather  at fault\n"
        "            thread      thread 4251 'tf_Compute' (crashed)\n"
        "            node        model/gather/FastGather\n"
        "            function    __inference_step_412\n"
        "            layer       gather\n"
        "            written at  train.py:14 in step\n"
        "            kernel      FastGatherOp<float, long>\n"
        "            input 0     float32 [32, 10]\n"
        "            input 1     int64 [12] = 7, 2, 1, 0, 4, 1, 4, 9, …, from 0 to 9\n"
        "            input 2     int64 [] = 0\n"
        "            input 3     string [2] = 'digits', 'café \\x1b[31m'\n"
        "            input 4     not set\n"
        "            input 5     resource []\n"
        "            T = float32 · shape = [-1, 10] · table = 'digits' · validate = False\n"
        "            _class = not read\n"
        "\n"
        "          MatMul  in flight\n"
        "            thread  thread 4252 'tf_Compute'\n"
    ) in text
    assert re.search(
        r"    time  ▂.*\n +│1 +│2 +│3 +│4\n +▲\n +anonymous memory .* at most 1.4 GiB,\s+│ epochs, ▲ saves\n", text
    )
    assert "\n   marks  2 s     trace train_function\n          5 s     epoch 1\n" in text
    assert (
        "   repro  reproduces 3 of 3, 6 lines: SIGSEGV in FastGatherOp<…>::Compute\n            import numpy as np\n"
    ) in text
    assert "faultlens repro" not in text


def test_a_reproducer() -> None:
    report = in_flight.report(reproducer=in_flight.REPRODUCER)
    assert "\n   repro  reproduces 3 of 3, 6 lines: SIGSEGV in FastGatherOp" in recorded.plain(report)
    assert "\n            fast.fast_gather(logits, indices=[7], axis=0)\n" in recorded.plain(report, verbose=True)
    long = replace(in_flight.REPRODUCER, script="x = 1\n" * 300)
    assert "\n            … 100 more lines\n" in recorded.plain(in_flight.report(reproducer=long), verbose=True)


def test_thousands_of_ops() -> None:
    report = in_flight.report()
    many = replace(report, crash=replace(report.crash, kernels=(in_flight.AT_FAULT, *[in_flight.BESIDE] * 5000)))
    assert "also in flight: 5000 × MatMul" in recorded.plain(many, verbose=True)
    assert "… and 4,951 more ops in flight" in recorded.plain(many, verbose=True)


@pytest.mark.parametrize(
    ("cause", "op_at_fault", "worth"),
    [
        ("op-check-failed", False, True),
        ("dangling-buffer", False, True),
        ("made-up-cause", True, True),
        ("made-up-cause", False, False),
        ("disk-full", False, False),
    ],
)
def test_a_reproducer_is_offered_where_there_may_be_one(cause: str, op_at_fault: bool, worth: bool) -> None:
    report = in_flight.report()
    kernels = report.crash.kernels if op_at_fault else ()
    found = replace(report.diagnoses[0], cause=cause)
    report = replace(report, crash=replace(report.crash, kernels=kernels), diagnoses=(found,))
    assert ("faultlens repro" in recorded.plain(report, stored=STORED)) is worth
    assert "faultlens repro" not in recorded.plain(report), "there is nothing it could read"


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


@pytest.mark.parametrize(("lines", "verbose", "again"), [(60, False, False), (15, False, True), (60, True, True)])
def test_a_verdict_that_scrolled_away_is_the_last_line(
    lines: int, verbose: bool, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", str(lines))
    verdict = "error[FL999] made-up-cause: FastGather reads table 3, which was never loaded (S…"
    for stream, repeated in ((Terminal(), again), (io.StringIO(), False)):
        output.render(recorded.diagnosed("segv_in_custom_op"), stream, verbose=verbose)
        assert (stream.getvalue().splitlines()[-1] == verdict) is repeated


@pytest.mark.parametrize("width", [120, 200])
def test_prose_stays_readable_on_a_wide_screen_and_source_has_all_of_it(width: int) -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    long = "x = " + "+ ".join(f"function_{number}" for number in range(20))
    sources = {
        path: text.replace("loss = step(", long + "; loss = step(") for path, text in report.crash.sources.items()
    }
    console = Console(file=io.StringIO(), width=width)
    terminal.render(replace(report, crash=replace(report.crash, sources=sources)), console=console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(len(line) for line in lines if "│" not in line) <= 120
    assert max(map(len, lines)) == width


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
        assert max(map(len, console.file.getvalue().splitlines())) >= min(width, 20)  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------ hostile content


@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_content_is_shown_safely(verbose: bool) -> None:
    text = recorded.plain(hostile(), verbose=verbose)
    assert not set(text) & {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}
    assert "\u202e" not in text
    assert "[red]<script>alert(1)</script>[/red]gnp" in text  # shown as it is, not obeyed
    assert "\\xff\\ud800" in text
    text.encode()
    assert len(text) < (10_000_000 if verbose else 60_000)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_hostile_content_on_any_stream(encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    output.render(hostile(), stream, verbose=True)
    stream.flush()
    shown = stream.buffer.getvalue()  # type: ignore[attr-defined]
    assert b"SIGSEGV" in shown and b"\x1b" not in shown


def test_of_a_certain_verdict_only_what_people_suspect_is_said_not_to_be() -> None:
    out = ("out-of-memory-kill", "duplicate-openmp", "thread-limit", "native-unaligned-access")
    others = tuple(RuledOut(cause=cause, because="a fact") for cause in out)
    report = replace(recorded.diagnosed("segv_in_custom_op"), ruled_out=others)
    sure = replace(report.diagnoses[0], cause="native-null-dereference", confidence=0.9)

    def told(diagnosis: Diagnosis) -> list[str]:
        text = recorded.plain(replace(report, diagnoses=(diagnosis,)), verbose=True)
        return re.findall(r"([a-z-]+): a fact", text)

    assert told(sure) == ["native-unaligned-access", "out-of-memory-kill"]
    assert set(told(replace(sure, confidence=0.6))) == set(out)
