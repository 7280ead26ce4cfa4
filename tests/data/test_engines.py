"""The scan as a whole: readers that die, interruptions at any moment, files in motion, remote files, a cluster."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from faultlens.data import scanning
from faultlens.data.engine.pool import Job
from faultlens.data.scanning import LocalEngine, Options, scan
from faultlens.records.scan import Flaw, Scan
from tfrecords import example, file_of

PLUGIN = Path(__file__).with_name("programs") / "plugin"
SEED = random.Random(5)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)  # what is tested may stand there


def command(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "faultlens", "scan", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **more,
    )


def damaged_files(folder: Path, count: int, records: int = 40) -> None:
    folder.mkdir()
    for number in range(count):
        data = bytearray(file_of(example(x=[float(number)] * 20, label=[each]) for each in range(records)))
        for _ in range(number % 3):
            data[SEED.randrange(len(data))] ^= 1 << SEED.randrange(8)
        (folder / f"train-{number:05}-of-{count:05}.tfrecord").write_bytes(data)


def told(found: Scan) -> list[Flaw]:
    return list(found.flaws)


# ------------------------------------------------------------------------------- readers that die


def deadly(folder: Path, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "file.deadly"
    path.write_text("deadly\n" + "\n".join(lines))
    return path


@pytest.fixture
def with_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The format of another package is known in this process as well."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    scanning.plan.formats.formats.cache_clear()
    yield
    scanning.plan.formats.formats.cache_clear()


@pytest.mark.usefixtures("with_plugin")
def test_every_reader_that_dies_names_its_item(tmp_path: Path) -> None:
    lines = ["ok", "segv", "bad", "abort", "ok", "leave", "kill", "sleep", "eat", "ok"]
    deadly(tmp_path / "data", *lines)
    job = Job(patience=2.0, memory=400 << 20)
    found = scan([str(tmp_path / "data")], Options(job=job), LocalEngine(1))
    kinds = {flaw.place.record: (flaw.kind, flaw.reason) for flaw in found.flaws}
    assert {record: kind for record, (kind, _) in kinds.items()} == {
        2: "deadly", 3: "structure", 4: "deadly", 6: "deadly", 7: "deadly", 8: "endless", 9: "greedy",
    }  # fmt: skip
    assert "SIGSEGV" in kinds[2][1]
    assert found.records == 5  # the others, "deadly" among them


@pytest.mark.usefixtures("with_plugin")
def test_a_mistake_of_a_format_is_no_health(tmp_path: Path) -> None:
    deadly(tmp_path / "data", "ok", "bug", "ok")
    (flaw,) = scan([str(tmp_path / "data")], Options(), LocalEngine(1)).flaws
    assert flaw.severity == "error"
    assert "KeyError" in flaw.reason


def test_rubbish_on_stdout_does_not_reach_the_results(tmp_path: Path) -> None:
    deadly(tmp_path / "data", "ok", "bad")
    ran = command(tmp_path / "data", "--json", "-")
    assert ran.returncode == 1
    assert [flaw["reason"] for flaw in json.loads(ran.stdout)["flaws"]] == ["it says so"]


# ---------------------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_scan_that_was_ended_goes_on_where_it_was(tmp_path: Path, way: signal.Signals) -> None:
    folder = tmp_path / "data"
    damaged_files(folder, 12)
    for number in range(8):
        (folder / f"{number}.deadly").write_text("deadly\n" + "slow\n" * 6 + "bad\n")
    whole = json.loads(command(folder, "--json", "-").stdout)
    (journal,) = (tmp_path / "home" / "scans").iterdir()
    journal.unlink()
    for pieces in (0, 1, 5, 12):
        running = subprocess.Popen(
            [sys.executable, "-m", "faultlens", "scan", str(folder), "--resume"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while running.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < pieces):
            time.sleep(0.01)
        running.send_signal(way)
        running.wait()
    ran = command(folder, "--resume", "--json", "-")
    again = json.loads(ran.stdout)
    assert again["flaws"] == whole["flaws"]
    assert again["records"] == whole["records"]
    assert again["resumed"] >= 12
    assert not workers_left(folder)


def workers_left(folder: Path) -> list[str]:
    time.sleep(0.2)
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and b"faultlens.data.engine.worker" in (process / "cmdline").read_bytes():
                variables = (process / "environ").read_bytes()
                found += [process.name] if str(folder.parent).encode() in variables else []
    return found


def test_a_journal_that_was_cut_off_is_used_up_to_there(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    damaged_files(folder, 6)
    journal = tmp_path / "journal"
    whole = scan([str(folder)], Options(journal=journal), LocalEngine(1))
    data = journal.read_bytes()
    for size in (0, 10, len(data) // 2, len(data) - 1):
        journal.write_bytes(data[:size])
        again = scan([str(folder)], Options(journal=journal, resume=True), LocalEngine(1))
        assert told(again) == told(whole)
        assert again.resumed == data[:size].count(b"\n")
    hostile = data[: len(data) // 3] + b'{"piece": 1}\n\xff\xfe' + data[len(data) // 3 :]
    journal.write_bytes(hostile)
    assert told(scan([str(folder)], Options(journal=journal, resume=True), LocalEngine(1))) == told(whole)


def test_only_what_is_new_or_changed_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    damaged_files(folder, 5)
    options = Options(journal=tmp_path / "journal", resume=True)
    scan([str(folder)], options, LocalEngine(1))
    changed = sorted(folder.iterdir())[0]
    changed.write_bytes(changed.read_bytes() + b"rubbish behind it")
    again = scan([str(folder)], options, LocalEngine(1))
    assert again.resumed == 4
    assert any(flaw.place.path == str(changed) and flaw.kind == "trailing" for flaw in again.flaws)


def test_the_same_scan_twice_at_once_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.deadly").write_text("deadly\n" + "slow\n" * 100)
    first = subprocess.Popen(
        [sys.executable, "-m", "faultlens", "scan", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        scans = tmp_path / "home" / "scans"
        while not scans.exists() or not list(scans.iterdir()):
            time.sleep(0.02)
        time.sleep(0.1)
        second = command(folder)
        assert second.returncode == 2
        assert "already running" in second.stderr
    finally:
        first.kill()
        first.wait()


# ------------------------------------------------------------------------- files that are in motion


def test_files_that_change_or_are_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    damaged_files(folder, 1)
    slow = folder / "slow.deadly"
    slow.write_text("deadly\n" + "slow\n" * 60)
    with (folder / "train-00000-of-00001.tfrecord").open("ab"):  # a writer who has not written yet
        running = subprocess.Popen(
            [sys.executable, "-m", "faultlens", "scan", str(folder), "--json", str(tmp_path / "found.json")],
            stdout=subprocess.DEVNULL,
        )
        while not list((tmp_path / "home" / "scans").glob("*")):  # until the files are known
            time.sleep(0.02)
        with slow.open("a") as file:
            file.write("more\n")
        assert running.wait() == 1
    found = msgspec.json.decode((tmp_path / "found.json").read_bytes(), type=Scan)
    kinds = {(Path(flaw.place.path).name, flaw.kind) for flaw in found.flaws}
    assert kinds == {("slow.deadly", "changed"), ("train-00000-of-00001.tfrecord", "written")}
    assert f"process {os.getpid()} " in next(flaw.reason for flaw in found.flaws if flaw.kind == "written")


# ---------------------------------------------------------------------------------- remote files


class Ranges(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        wanted = self.headers.get("Range", "")
        if not wanted or not path.is_file():
            super().do_GET()
            return
        begin, _, end = wanted.removeprefix("bytes=").partition("-")
        data = path.read_bytes()[int(begin) : int(end) + 1 if end else None]
        self.send_response(206)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Range", f"bytes {begin}-{int(begin) + len(data) - 1}/{path.stat().st_size}")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def test_remote_files_are_read_through_fsspec(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    folder = tmp_path / "data"
    damaged_files(folder, 3, records=400)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        names = [path.name for path in sorted(folder.iterdir())]
        here = scan([str(folder / name) for name in names], Options(), LocalEngine(1))
        there = scan([f"{address}/{name}" for name in names], Options(piece_size=10_000), LocalEngine(2))
        gone = scan([f"{address}/nothing.tfrecord", f"{address}/{names[0]}"], Options(), LocalEngine(1))
    finally:
        server.shutdown()
    facts = lambda found: [(flaw.place.path.rpartition("/")[2], flaw.place.record, flaw.reason) for flaw in found.flaws]
    assert here.flaws
    assert facts(there) == facts(here)
    assert there.records == here.records
    assert [flaw.kind for flaw in gone.flaws] == ["unreadable"]


# ------------------------------------------------------------------------------------ a cluster


def test_a_cluster_that_loses_a_node_finds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from faultlens.data.engine.on_ray import RayEngine

    folder = tmp_path / "data"
    damaged_files(folder, 30)
    here = scan([str(folder)], Options(piece_size=1500), LocalEngine(2))
    assert here.flaws
    quiet = {"include_dashboard": False, "object_store_memory": 100 << 20, "num_cpus": 1}
    cluster = Cluster(initialize_head=True, head_node_args=quiet)
    killed: list[float] = []
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
        cluster.wait_for_nodes()

        def kill_one(progress: object) -> None:
            if isinstance(progress, scanning.Progress) and progress.files >= 2 and not killed:
                killed.append(progress.seconds)
                cluster.remove_node(nodes[0], allow_graceful=False)

        options = Options(piece_size=1500, journal=tmp_path / "journal")
        there = scan([str(folder)], options, RayEngine(cluster.address, pieces=4), kill_one)
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()
    assert killed
    assert told(there) == told(here)
    assert (there.records, there.files_checked, there.engine) == (here.records, here.files_checked, "ray")


# ------------------------------------------------------------------------------------ what is missing


def test_without_its_reader_a_file_is_not_called_bad(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "data"
    folder.mkdir()
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0]}), folder / "a.parquet")
    assert command(folder).returncode == 0
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "pyarrow.py").write_text("raise ModuleNotFoundError('No module named pyarrow', name='pyarrow')")
    ran = command(folder, "-v", env={**os.environ, "PYTHONPATH": f"{absent}:{os.environ['PYTHONPATH']}"})
    assert ran.returncode == 2
    assert "what is in Parquet files" in ran.stdout
    assert "pyarrow is not installed (pip install 'faultlens[data]')" in " ".join(ran.stdout.split())


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "There is no nowhere"),
        (["empty"], "There is no file in empty"),
        (["names.txt"], "no file in a format that faultlens knows"),
        ([".", "--using", "nothing"], "names no function"),
        ([".", "--schema", "missing.json"], "Cannot read the schema"),
        (["ftp2://host/file"], "cannot be reached"),
        (["full", "--address", "host"], "--address is that of a Ray cluster"),
        ([""], "There is no path with an empty name"),
        (["full", "--json", "missing/found.json"], "there is no folder"),
        (["full", "--json", "full"], "full: it is a folder"),
        (["full", "--quarantine", "full"], "would lie among the data that are scanned"),
        (["full", "--quarantine", "full/sub/clean"], "would lie among the data that are scanned"),
        (["full/a.csv", "--quarantine", "full"], "would lie among the data that are scanned"),
        (["full/*.csv", "--quarantine", "full"], "would lie among the data that are scanned"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.csv").write_text("1,2\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "names.txt").write_text("no data")
    ran = command(*arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["a.csv"]
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "Traceback" not in ran.stderr
