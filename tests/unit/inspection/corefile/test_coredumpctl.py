"""Cores out of systemd's store, with a stand-in for coredumpctl."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultlens.errors import FaultlensError
from faultlens.inspection.corefile.coredumpctl import fetched_core, is_coredumpctl


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "coredumpctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_targets_are_recognised() -> None:
    assert is_coredumpctl("coredumpctl")
    assert is_coredumpctl("coredumpctl:python3")
    assert not is_coredumpctl("coredumpctl.core")


def test_the_core_is_fetched_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, 'for word; do case $word in --output=*) echo "$@" >"${word#--output=}"; esac; done', monkeypatch)
    with fetched_core("coredumpctl:-4242") as core:
        words = core.read_text().split()
    assert words[0] == "dump"
    assert words[-2:] == ["--", "-4242"]  # a match is never taken for an option
    assert not core.exists()


def test_no_match_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "echo 'No match found.' >&2; exit 1", monkeypatch)
    with pytest.raises(FaultlensError, match="no such core: No match found") as caught, fetched_core("coredumpctl"):
        pass
    assert "coredumpctl list" in caught.value.advice


def test_a_machine_without_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FaultlensError, match="no coredumpctl"), fetched_core("coredumpctl"):
        pass
