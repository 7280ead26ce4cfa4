"""A Python that does not answer: what its folders tell."""

from __future__ import annotations

from pathlib import Path

from faultlens.doctor.interpreter import find_interpreter


def test_folders_under_two_names_are_read_once(tmp_path: Path) -> None:
    """Virtual environments have lib64 as a link to lib."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    found = find_interpreter(str(python), {})
    assert (found.path, found.version) == ((str(site),), (3, 11))
    assert (found.problem, found.was_asked) == ("it ended with exit status 3", True)
