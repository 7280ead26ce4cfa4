"""The line to a warm Python: what is told when it cannot begin, and what happens beside it meanwhile."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from faultlens.errors import FaultlensError
from faultlens.sandbox.guest import confinement, namespaces
from faultlens.sandbox.warm.link import CHUNK, Link


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("echo 'Traceback (most recent call last):' >&2; echo 'OSError: [Errno 28] No space left.' >&2; exit 1",
         "ended with exit status 1 when it was to import TensorFlow: OSError: [Errno 28] No space left."),
        ("echo 'Illegal instruction' >&2; kill -ILL $$", "died by SIGILL when it was to import TensorFlow: Illegal "),
        (f"head -c {2 * CHUNK} /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 3", "TensorFlow: the end."),
        ("exit 1", "ended with exit status 1 when it was to import TensorFlow."),
    ],
)  # fmt: skip
def test_why_it_could_not_begin(tmp_path: Path, says: str, told: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{says}\n")
    python.chmod(0o755)
    data = os.memfd_create("items")
    try:
        with pytest.raises(FaultlensError) as raised:
            Link(str(python), {}, data, os.environ, lambda: None, tmp_path / "server.py", tmp_path / "stderr")
    finally:
        os.close(data)
    assert told in str(raised.value)


@pytest.mark.skipif(not confinement.available().mounts, reason="needs a namespace of mounts")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_shared_memory_that_vanishes_while_it_is_taken_over(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process with OpenMP leaves a file in /dev/shm for a while."""
    place = Path(f"/dev/shm/faultlens-test-{os.getpid()}")
    remove = place.rmdir if kind == "folder" else place.unlink
    (place.mkdir if kind == "folder" else place.touch)()
    mount = namespaces._mount

    def after_removal(source: str | None, target: str, *rest: object) -> None:
        if target == namespaces.SHARED_MEMORY:
            remove()
        mount(source, target, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(namespaces, "_mount", after_removal)
    child = os.fork()
    if child == 0:
        try:
            namespaces.enter([])
            os._exit(1 if place.exists() else 0)
        except BaseException:
            traceback.print_exc()
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
