"""Installed packages, in every form in which they lie on a search path, are those of `importlib.metadata`."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import zipfile
from pathlib import Path

import pytest

from faultlens.target_env.distributions import installed, normal


def described(name: str, version: str) -> str:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: six\n\nVersion: 0.0 is old\n"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def path(tmp_path: Path) -> list[str]:
    first, second = tmp_path / "first", tmp_path / "second"
    write(first / "Wheel.Name-1.0.dist-info/METADATA", described("wheel-name", "1.0.post1"))
    write(second / "wheel_name-9.9.dist-info/METADATA", described("wheel-name", "9.9"))
    write(second / "developed.egg-info/PKG-INFO", described("developed", "2.0.dev1"))
    write(second / "debian-3.1.egg-info", described("Debian", "3.1"))
    write(second / "nothing.egg-info/SOURCES.txt", "")
    write(second / "old-4.0-py3.11.egg-info/PKG-INFO", described("old", "4.0"))
    write(tmp_path / "unpacked-5.0-py3.11.egg/EGG-INFO/PKG-INFO", described("unpacked", "5.0"))
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("zipped-6.0.dist-info/METADATA", described("zipped", "6.0"))
        archive.writestr("wheel_name-7.0.dist-info/METADATA", described("wheel-name", "7.0"))
    with zipfile.ZipFile(tmp_path / "packed-8.0-py3.11.egg", "w") as archive:
        archive.writestr("EGG-INFO/PKG-INFO", described("packed", "8.0"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text.zip").write_text("no archive")
    names = (
        "gone",
        "pipe",
        "text.zip",
        "first",
        "second",
        "unpacked-5.0-py3.11.egg",
        "app.zip",
        "packed-8.0-py3.11.egg",
    )
    return [str(tmp_path / name) for name in names]


def as_python_says(path: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in importlib.metadata.distributions(path=path):
        if each.metadata["Name"] is not None:
            found.setdefault(normal(each.metadata["Name"]), each.version)
    return found


def test_of_every_form(path: list[str]) -> None:
    said = as_python_says([entry for entry in path if not entry.endswith("pipe")])  # which would wait for ever
    assert len(said) == 7
    assert {each.key: each.version for each in installed(path)} == said


def test_of_the_environment_that_runs_this() -> None:
    assert {each.key: each.version for each in installed(sys.path)} == as_python_says(sys.path)


def test_what_they_need_is_read_wherever_they_lie(path: list[str]) -> None:
    assert {each.requires for each in installed(path)} == {("six",)}
