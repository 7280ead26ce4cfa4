"""The page: everything on it, nothing obeyed, nothing fetched, and small whatever the report holds."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

import in_flight
import recorded
from faultlens.records.crash import CgroupState, Crash, MachineState, MemoryUse, Outcome, Sample
from faultlens.records.report_file import Report
from faultlens.report import html
from faultlens.report.timeline_chart import HEIGHT, WIDTH, chart
from hostile import hostile

OPEN_ENDED = {"meta", "path", "line", "br", "hr", "img"}


class Page(HTMLParser):
    """The elements of a page, checked for balance, with its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in OPEN_ENDED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPEN_ENDED:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", recorded.NAMES)
def test_every_recorded_crash(name: str) -> None:
    page = Page(html.page(recorded.report(name, with_sources=True)))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.links) <= {f"#{anchor}" for anchor in page.ids}, "links lead to sections of the page only"


def test_verdict() -> None:
    text = html.page(recorded.diagnosed("segv_in_custom_op"))
    page = Page(text)
    said = re.sub(r"\s+", " ", page.text)
    for words in (
        "FL999 made-up-cause",
        "FastGather reads table 3, which was never loaded",
        "93% sure",
        "2 native libraries",
        "Or perhaps FL998",
        "stack-overflow the instruction is an ordinary mov",
        "load every table before the first call safe",
        "rdi0x0000000000000000",
        "8 × tf_inter_op (4260, 4261",
    ):
        assert words in said
    assert '<a class="from" href="#registers">registers</a>' in text
    assert '<a class="from" href="#threads">native stack</a>' in text
    assert "<code>fast_gather.load(path)</code>" in text
    failing = re.findall(r'<div class="row failing"><span>24</span><span>(.*?)</span></div>', text)
    assert [line.strip() for line in failing] == ["loss = <mark>step(images, labels)</mark>"]


@pytest.mark.parametrize(
    ("source", "anchor"),
    [
        ("siginfo", "fault"),
        ("registers at the fault", "registers"),
        ("instruction", "fault"),
        ("native stack", "threads"),
        ("Python stack", "threads"),
        ("stderr", "output"),
        ("kernel log", "output"),
        ("cgroup counter", "memory"),
        ("RLIMIT_NOFILE", "memory"),
        ("/proc/PID/maps", "files"),
        ("memory map", "files"),
        ("statvfs", "files"),
        ("/proc/PID/status", "memory"),
        ("/proc/PID/task", "threads"),
        ("time limit", "environment"),
        ("kernels in flight", "tensorflow"),
        ("traced graph", "tensorflow"),
        ("your source", "source"),
        ("wait status", "environment"),
        ("installed packages", "environment"),
        ("doubt", None),
        ("", None),
    ],
)
def test_evidence_leads_to_its_facts(source: str, anchor: str | None) -> None:
    every = ("source", "tensorflow", "fault", "registers", "threads", "memory", "output", "files", "environment")
    assert html.anchor_of(source, every) == anchor


def test_no_link_to_facts_that_are_not_there() -> None:
    assert html.anchor_of("registers", ("threads", "environment")) is None


@pytest.mark.parametrize("kind", ["ok", "exit", "hang", "exception", "signal"])
def test_hardly_any_facts(kind: str) -> None:
    crash = Crash(outcome=Outcome(kind=kind), method="status")  # type: ignore[arg-type]
    text = html.page(Report(outcome=crash.outcome, crash=crash))
    Page(text)  # every element is closed
    assert "<h1" in text


# ---------------------------------------------------------------------------------- inside TensorFlow


def test_ops_in_flight() -> None:
    text = html.page(in_flight.report(reproducer=in_flight.REPRODUCER))
    said = re.sub(r"\s+", " ", Page(text).text)
    for words in (
        "train.py:14 in step, called from train.py:24",
        "thread 'tf_Compute'; in step 1,204 (of 1,875) of epoch 4 (of 10), while training",
        "called from train.py:24 in main",
        "FastGather at fault",
        "written attrain.py:14 in step",
        "1int64 [12] = 7, 2, 1, 0, …, from 0 to 9",
        "7, 2, 1, 0, 4, 1, 4, 9, 5, 9, 0, 6",
        "3string [2] = 'digits', 'café \\x1b[31m'",
        "MatMul model/dense_2/MatMul",
        "contents of 3 inputs (121 bytes) are kept in this report; --no-contents leaves them out",
        "reproduces 3 of 3, 6 lines: SIGSEGV in FastGatherOp<…>::Compute",
        'fast = tf.load_op_library("./fast_gather.so")',
        "input_0.npy1.4 KiB",
        "shaded: saving; the end came in step 1,204",
    ):
        assert words in said
    assert text.count('<details class="op fault" open>') == 1
    assert text.count('<details class="op">') == 2
    assert '<a href="#tensorflow">In TensorFlow</a>' in text


def test_many_values_are_folded() -> None:
    given = in_flight.numbers(*range(30), shape=(30,))
    report = in_flight.report()
    kernel = replace(in_flight.AT_FAULT, inputs=(given,))
    text = html.page(replace(report, crash=replace(report.crash, kernels=(kernel,))))
    assert re.search(r'<details><summary[^>]*>more values</summary><span class="value">0, 1, 2, .*, 29</span>', text)


def test_without_ops_there_is_no_such_section() -> None:
    text = html.page(recorded.diagnosed("segv_in_custom_op"))
    assert "In TensorFlow" not in text and 'id="reproduce"' not in text


# ------------------------------------------------------------------------------------ hostile content


def test_hostile_content_is_shown_safely() -> None:
    text = html.page(hostile())
    page = Page(text)
    assert not set(text) & {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}
    assert "\u202e" not in text
    text.encode()
    assert not {"script", "img", "iframe", "object", "link"} & set(page.names)
    assert not {name for name in page.attributes if name.startswith("on")}
    assert all(link.startswith("#") for link in page.links)
    assert text.count("<style>") == text.count("</style>") == 1
    assert "<script>document.title='owned'</script>" in page.text  # shown as it is
    assert "{{ 7*7 }}{% raw %}" in page.text
    assert "\\xff\\ud800" in page.text
    assert len(text) < 3_000_000
    assert " more threads" in page.text and " more facts" in page.text


def test_no_network() -> None:
    text = html.page(recorded.diagnosed("segv_in_custom_op"))
    assert "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'" in text
    assert "http:" not in text and "https:" not in text and "url(" not in text and "@import" not in text


# ---------------------------------------------------------------------------------- the memory timeline


def grown(**facts: object) -> Crash:
    samples = tuple(Sample(seconds=float(second), rss_anonymous=second << 20) for second in range(11))
    return replace(recorded.ended(timeline=samples, seconds=10.0), **facts)  # type: ignore[arg-type]


def test_timeline() -> None:
    drawn = chart(grown(cgroup=CgroupState(version=2, path="/", memory_limit=20 << 20)))
    assert drawn and drawn.limit
    assert drawn.curve.startswith(f"M0.0 {HEIGHT:.1f}L{WIDTH / 10:.1f} ")
    assert drawn.limit.label == "limit of the cgroup 20 MiB"
    assert (drawn.limit.at, drawn.span) == ("10.7%", "10 s")
    assert drawn.course == "anonymous memory over 10 s: from 0 bytes to 10 MiB, at most 10 MiB"


def test_a_limit_far_above_the_curve_is_told_in_words() -> None:
    drawn = chart(grown(machine=MachineState(memory_total=64 << 30)))
    assert drawn and drawn.limit is None
    assert drawn.far_limit == "memory of the machine 64 GiB"


def test_the_curve_goes_on_to_what_was_measured_at_the_fault() -> None:
    fault = recorded.report("segv_in_custom_op").crash.fault
    drawn = chart(grown(seconds=12.0, fault=fault, memory=MemoryUse(rss_anonymous=40 << 20)))
    assert drawn and "at most 40 MiB" in drawn.course


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 1e300, None])
def test_timeline_of_a_damaged_report(seconds: float | None) -> None:
    drawn = chart(grown(seconds=seconds))
    assert drawn and "nan" not in drawn.curve and "inf" not in drawn.curve


def test_long_timelines_stay_small() -> None:
    samples = tuple(Sample(seconds=number / 5, rss_anonymous=number) for number in range(500_000))
    drawn = chart(grown(timeline=samples, seconds=1e5))
    assert drawn and len(drawn.curve) < 5000
