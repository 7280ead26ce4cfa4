"""`faultlens scan --decode`: decoders that die, hang, eat, fork and lie, and the items that make them."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from faultlens.data.decode import Decoder, Decoding, Verdict
from faultlens.data.engine import plan
from faultlens.data.engine.checking import Signs, check
from faultlens.data.formats.base import Item
from faultlens.data.look import Wanted, nothing
from faultlens.errors import FaultlensError
from faultlens.records import report_file
from faultlens.records.scan import Place
from faultlens.sandbox.guest import capabilities, tasks
from faultlens.store import folder as store
from tfrecords import example, file_of, sequence_example

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

PROGRAMS = Path(__file__).with_name("programs")
AROUND = 5  # healthy items between the others
SECRET = "hunter2-is-no-password"
# What an item says, the kinds that are right, and what the reason tells.
BAD = {
    "read null": ("deadly", "died by SIGSEGV: Python handed a null pointer to "),
    "check": ("deadly", "died by SIGABRT: BlockLSTMV2: `seq_len_max` is 9, and may be at most 3"),
    "overflow": ("deadly", "died by SIGSEGV"),
    "kill itself": ("deadly", "died by SIGKILL"),
    "leave": ("deadly", "ended its process with exit status 0"),
    "close": ("deadly", "closed descriptors that are not its own"),
    "kill parent": ("decode deadly", ""),  # Landlock forbids it, or it happens
    "value error": ("decode", "ValueError: not"),
    "exit": ("decode", "SystemExit: 3"),
    "spin": ("endless", "did not come back within 4 s"),
    "eat": ("greedy", "more than 512 MiB of memory"),
    "impossible": ("greedy", "MemoryError"),
    "fork bomb": ("greedy endless", ""),  # counting processes may take longer than they have
    "limit": ("decode", "ValueError: at most"),
}
HARMLESS = ("scribble", "truncate", "print", "fork", "daemon", "helpers", "remove", "write", "leak")


@dataclass(frozen=True)
class Tried:
    words: list[str]
    verdicts: list[Verdict]
    count: int
    home: Path
    temporary: Path
    left: list[int]  # processes
    open_before: list[str]
    open_after: list[str]


def items(data: Sequence[bytes], what: str = "record") -> Iterator[Item]:
    return (Item(Place(path="x", record=number), what, each) for number, each in enumerate(data))


def hostile(**more: object) -> Decoding:
    options = Decoding(python=sys.executable, using="hostile_decoder:act", folder=str(PROGRAMS))
    return options._replace(**more)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """All of them, in one go."""
    home, temporary = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("temporary")
    words = ["fine"] * AROUND
    for word in (*HARMLESS, *BAD):
        words += [word, *["fine"] * AROUND]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAULTLENS_HOME", str(home))
        patch.setenv("MY_API_TOKEN", SECRET)
        patch.setattr(tempfile, "tempdir", str(temporary))
        alive = marked(patch)
        before = descriptors()
        with Decoder(hostile(seconds=4, memory=512 << 20)) as decoder:
            verdicts = list(decoder.tried(items([word.encode() for word in words])))
            count = decoder.count
        yield Tried(words, verdicts, count, home, temporary, gone(alive), before, descriptors())


def marked(patch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Finds the processes that are started from now on, by a variable of theirs."""
    mark = uuid.uuid4().hex
    patch.setenv("MARK_OF_TEST", mark)

    def bears(pid: str) -> bool:
        try:
            return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    return lambda: [int(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if bears(pid)]


def gone(alive: Callable[[], list[int]]) -> list[int]:
    """Those that are still there after a while."""
    deadline = time.monotonic() + 20
    while (left := alive()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def descriptors() -> list[str]:
    with os.scandir("/proc/self/fd") as found:
        names = [each.name for each in found]
    return sorted(os.readlink(f"/proc/self/fd/{name}") for name in names if os.path.lexists(f"/proc/self/fd/{name}"))


def test_exactly_the_bad_items_are_named(tried: Tried) -> None:
    named = {tried.words[verdict.place.record]: verdict for verdict in tried.verdicts}
    assert list(named) == list(BAD)  # in order
    assert len(tried.verdicts) == len(BAD)
    for word, (kinds, reason) in BAD.items():
        assert named[word].kind in kinds.split(), named[word]
        assert reason in named[word].reason
    assert tried.count == len(tried.words)


def test_nothing_of_them_is_left(tried: Tried) -> None:
    assert tried.left == []
    assert list(tried.temporary.iterdir()) == []
    assert [name for name in tried.open_after if "memfd" in name or "pipe" in name] == [
        name for name in tried.open_before if "memfd" in name or "pipe" in name
    ]


def test_a_death_is_a_report(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tried.home))
    named = {tried.words[verdict.place.record]: verdict.report for verdict in tried.verdicts}
    report = report_file.read(store.find(named["check"]))
    assert report.diagnoses[0].op == "BlockLSTMV2"
    assert "Check failed: limit <= dim0_size" in report.crash.output.stderr
    assert named["read null"] and named["read null"] != named["check"]
    thread = report_file.read(store.find(named["read null"])).crash.threads[0]  # its numbers are those of a namespace
    assert thread.crashed and {"native", "python"} == {frame.kind for frame in thread.frames}
    texts = [path.read_text() for path in tried.home.rglob("*") if path.is_file()]
    assert texts and not [text for text in texts if SECRET in text]


def test_what_else_deaths_may_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same as before; not of the item at hand; of no item."""
    died = Path("/dev/shm", uuid.uuid4().hex)  # the only other place that a decoder can write to
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path))
    monkeypatch.setenv("DIED_ONCE", str(died))
    with Decoder(hostile()) as decoder:
        first, second = decoder.tried(items([b"read null", b"fine", b"read null"]))
        assert first.report == second.report is not None
        (poison,) = decoder.tried(items([b"fine"] * 9 + [b"poison"] + [b"fine"] * 20))
        assert (poison.kind, poison.place.record) == ("deadly", 9)
        assert "a later item that is harmless without this one" in poison.reason
        assert decoder.notes == []
        assert list(decoder.tried(items([b"fine", b"once", b"fine"]))) == []
        assert len(decoder.notes) == 1 and "died by SIGABRT" in decoder.notes[0]
        died.unlink(missing_ok=True)  # where a sandbox has a /dev/shm of its own, it is not here


def test_processes_and_threads_are_bounded(tried: Tried) -> None:
    if os.geteuid() == 0 and capabilities.permitted() & tasks.NEEDED != tasks.NEEDED:
        pytest.skip("root cannot be bounded here")
    told = next(verdict.reason for verdict in tried.verdicts if tried.words[verdict.place.record] == "limit")
    assert 200 < int(told.split()[-2]) < 100_000


# ------------------------------------------------------------------------------------------ the command


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "faultlens", "scan", *map(str, arguments)]


def test_a_scan_keeps_its_output_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [b"fine", b"print", b"scribble", b"value error", b"daemon", b"fine", b"read null", b"write", b"fine"]
    (tmp_path / "a.tfrecord").write_bytes(file_of(words))
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    alive = marked(monkeypatch)
    done = subprocess.run(
        command(tmp_path / "a.tfrecord", "--using", "hostile_decoder:act", "--json", "-"),
        cwd=PROGRAMS, capture_output=True, timeout=100,
    )  # fmt: skip
    assert gone(alive) == []
    assert (done.returncode, done.stderr) == (1, b"")
    found = json.loads(done.stdout)
    assert [(flaw["kind"], flaw["place"]["record"]) for flaw in found["flaws"]] == [("decode", 3), ("deadly", 6)]
    assert found["decoded"] == found["records"] == len(words)
    shown = subprocess.run(
        [sys.executable, "-m", "faultlens", "show", found["flaws"][1]["report"]], capture_output=True, timeout=60
    )
    assert b"null-pointer-passed" in shown.stdout


def test_decoders_end_with_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tfrecord").write_bytes(file_of([b"helpers", b"daemon", b"sleep"]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a scan that is killed leaves its folder
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    alive = marked(monkeypatch)
    scan = subprocess.Popen(
        command(tmp_path / "a.tfrecord", "--using", "hostile_decoder:act", "--time-limit", 500),
        cwd=PROGRAMS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while (many := len(alive())) < 13 and time.monotonic() < deadline:  # four of ours, eight helpers, a daemon
        time.sleep(0.05)
    scan.kill()
    scan.wait()
    assert many >= 13
    assert gone(alive) == []


# --------------------------------------------------------------------------------- TensorFlow's decoders


def encoded(kind: str, **options: object) -> bytes:
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.radial_gradient("L").resize((40, 30)).convert("RGB").save(file, kind, **options)
    return file.getvalue()


def test_images_and_examples_with_images(tmp_path: Path) -> None:
    kinds = ["JPEG", "PNG", "GIF", "BMP"]
    healthy = [encoded(kind) for kind in kinds] + [encoded("JPEG", progressive=True)]
    with Decoder(Decoding(python=sys.executable)) as decoder:
        assert list(decoder.tried(items(healthy * 300, "image"))) == []
        assert decoder.count == len(healthy) * 300
        texts = [b"BM is no image", b"\xff\xd8\xff", b"", b"RIFF"]
        assert list(decoder.tried(items([*texts, *healthy], "line"))) == []
        assert list(decoder.tried(items(texts, "image"))) == []
        records = [example(image=each, label=[1]) for each in healthy]
        records += [sequence_example({"id": [1]}, {"frames": [each, each]}) for each in healthy]
        assert list(decoder.tried(items([*records, *texts]))) == []
        assert decoder.count == len(healthy) * 302  # what holds no image is not tried

        cut = [each[: len(each) * 3 // 4] for each in healthy]
        mixed = [each for pair in zip(healthy, cut, strict=True) for each in pair]
        verdicts = list(decoder.tried(items(mixed, "image")))
        assert [(verdict.place.record, verdict.kind) for verdict in verdicts] == [
            (2 * number + 1, "decode") for number in range(len(cut))
        ]
        assert verdicts[1].reason.startswith("InvalidArgumentError: Invalid PNG data")
        (verdict,) = decoder.tried(items([example(image=healthy[0], thumb=cut[0])]))
        assert (verdict.kind, verdict.place.member) == ("decode", "thumb")

        (tmp_path / "a.csv").write_text("1,2\n")
        (found,) = plan.files([str(tmp_path / "a.csv")])
        checked = check(found.pieces[0], Wanted(), Signs(nothing, lambda: None), decoder)
        assert [each.check for each in checked.unchecked] == ["decoding of CSV files"]


# ------------------------------------------------------------------------------------ what cannot be used

UNUSABLE = {
    "no_such_module:parse": "No module named 'no_such_module'",
    "hostile_decoder:KEPT": "KEPT is not a function",
    "leaves:parse": "SystemExit: 4",
    "hostile_decoder:always_fails": "Every one of the first 32 items",
    "hostile_decoder:always_eats": "Every one of the first 32 items",
}


def test_functions_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    (tmp_path / "hostile_decoder.py").symlink_to(PROGRAMS / "hostile_decoder.py")
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(4)")

    def problem(using: str) -> str:
        with Decoder(hostile(using=using, folder=str(tmp_path), memory=64 << 20)) as decoder:
            with pytest.raises(FaultlensError) as caught:
                list(decoder.tried(items([b"fine"] * 40)))
            return caught.value.problem

    with concurrent.futures.ThreadPoolExecutor(2) as both:
        told = dict(zip(UNUSABLE, both.map(problem, UNUSABLE), strict=True))
    for using, words in UNUSABLE.items():
        assert words in told[using] and using in told[using]
    assert "memory" in told["hostile_decoder:always_eats"]
    with pytest.raises(FaultlensError, match="names no function"):
        Decoder(hostile(using="hostile_decoder"))
    with Decoder(hostile(python="/no/such/python")) as decoder, pytest.raises(FaultlensError, match="Cannot run"):
        list(decoder.tried(items([b"fine"])))
