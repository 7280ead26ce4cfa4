"""Exceptions with a reason below Python: the cause comes first, with its numbers; plain bugs stay the traceback's."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultlens.diagnosis.rank import diagnose

LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_{name}, ({size}, {size}))\n"


def started(run, tmp_path: Path, text: str):
    program = tmp_path / "program.py"
    program.write_text(text)
    return run(["python", program])


@pytest.mark.parametrize(
    ("text", "cause", "told"),
    [
        ("x = bytearray(1 << 60)\n", "oversized-allocation", "the machine has"),
        ("import numpy as np\nx = np.zeros((300000, 300000, 1000))\n", "oversized-allocation", "655 TiB"),
        ("x = [0] * (1 << 59)\n", "oversized-allocation", "the machine has"),
        (LIMIT.format(name="AS", size=1 << 30) + "x = bytearray(2 << 30)\n", "address-space-limit", "1 GiB"),
        (
            LIMIT.format(name="AS", size=512 << 20) + "import threading, time\nfor _ in range(900):\n"
            "    threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\n",
            "address-space-limit",
            "512 MiB",
        ),
        (
            LIMIT.format(name="NOFILE", size=64) + "x = [open(__file__) for _ in range(99)]\n",
            "file-descriptor-limit",
            "64 (ulimit -n)",
        ),
        (
            LIMIT.format(name="FSIZE", size=1 << 20) + "with open('big', 'wb', 0) as file:\n"
            "    file.write(bytes(2 << 20))\n    file.write(b'x')\n",
            "file-size-limit",
            "1 MiB (ulimit -f)",
        ),
        ("open('/dev/full', 'w', 1).write('x\\n')\n", "disk-full", "no space was left"),
        (
            "import gzip, io\nd = gzip.compress(bytes(999))\ngzip.GzipFile(fileobj=io.BytesIO(d[:20])).read()\n",
            "corrupt-input",
            "ended before",
        ),
    ],
)
def test_the_cause_comes_first_and_is_told(run, tmp_path, text: str, cause: str, told: str) -> None:
    done = started(run, tmp_path, text)
    best = diagnose(done.died).diagnoses[0]
    assert (done.returncode, best.cause) == (1, cause), done.stderr
    assert best.location is not None
    report = done.stderr.partition("error[")[2]
    assert told in " ".join(report.split())
    assert len(report.split("\n")) < 20


@pytest.mark.parametrize(
    "text",
    [
        "{}['a']\n",
        "int('x')\n",
        "raise MemoryError('out of tokens')\n",
        "open('/nowhere/data.csv')\n",
        "import subprocess\nsubprocess.run(['false'], check=True)\n",
        "raise RuntimeError('INTERNAL: something went wrong')\n",
    ],
)
def test_a_plain_exception_stays_the_tracebacks(run, tmp_path, text: str) -> None:
    done = started(run, tmp_path, text)
    assert diagnose(done.died).diagnoses[0].cause == "python-exception"
    assert "error[" not in done.stderr
    assert done.saved == []


def test_the_limits_at_the_end_are_known(run, tmp_path) -> None:
    """A program that sets a limit and fails at once was never sampled with it."""
    done = started(run, tmp_path, LIMIT.format(name="NOFILE", size=77) + "raise SystemExit(3)\n")
    assert done.died.limits["RLIMIT_NOFILE"].soft == 77
    assert done.died.machine is not None
