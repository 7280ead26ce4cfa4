"""A program with mounts of its own, as in a container: its files are looked at where it sees them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

FILLS = """\
import mmap, os
with open("disk/data.bin", "w+b") as file:
    file.truncate(4 << 20)
    view = mmap.mmap(file.fileno(), 0)
    for at in range(0, len(view), 4096):
        view[at] = 1
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_a_file_system_that_only_the_program_sees(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(FILLS)
    (tmp_path / "disk").mkdir()
    mounts = f"mount -t tmpfs -o size=1m tmpfs disk && exec {sys.executable} main.py"
    done = run(["unshare", "-m", "sh", "-c", mounts])
    if done.crash is None or done.crash.outcome.signal != "SIGBUS":
        pytest.skip(f"a mount is not allowed here: {done.stderr[-200:]}")
    assert "shared-memory-full" in done.stderr
    assert all(file.state != "missing" for file in done.crash.files if file.path.endswith("data.bin"))
