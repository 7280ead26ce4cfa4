"""What the agent's library brings into a program, as the file tells."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from faultlens.agent import LIBRARY

pytestmark = pytest.mark.skipif(
    not shutil.which("readelf") or not LIBRARY.exists(), reason="needs readelf and the agent"
)


def _read(option: str) -> str:
    return subprocess.run(["readelf", "-W", option, LIBRARY], capture_output=True, text=True, check=True).stdout


def test_no_thread_local_memory_is_allocated_later() -> None:
    assert not re.findall(r"R_X86_64_(?:DTPMOD64|DTPOFF64|TLSDESC)", _read("-r"))
    assert "__tls_get_addr" not in _read("--dyn-syms")


def test_thread_local_memory_is_small() -> None:
    """It is taken from the stack of every thread."""
    size = re.search(r"^\s*TLS(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", _read("-l"), re.M)
    assert size
    assert int(size[1], 16) <= 1024


def test_the_c_library_alone_is_needed() -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", _read("-d")))
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}


def test_the_library_is_small() -> None:
    ends = re.findall(r"^\s*LOAD\s+0x\w+\s+(0x\w+)\s+0x\w+\s+0x\w+\s+(0x\w+)", _read("-l"), re.M)
    assert max(int(start, 16) + int(size, 16) for start, size in ends) <= 256 << 10
