"""The version stands in one place, and building reads it there without importing the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import places
from faultlens import __version__

ROOT = places.ROOT
BUILD = "from setuptools.build_meta import prepare_metadata_for_build_wheel as build; build('.')"


def test_the_metadata_have_the_version_of_the_package(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "README.md", tmp_path)
    package = tmp_path / "src" / "faultlens"
    package.mkdir(parents=True)
    source = (ROOT / "src" / "faultlens" / "__init__.py").read_text()
    changed = source.replace(f'__version__ = "{__version__}"', '__version__ = "9.8.7"')
    (package / "__init__.py").write_text(f"{changed}\nraise ImportError('it was imported')\n")
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    assert "Version: 9.8.7\n" in (tmp_path / "faultlens-9.8.7.dist-info" / "METADATA").read_text()


def test_it_stands_nowhere_else() -> None:
    assert not re.search(r'^version = "', (ROOT / "pyproject.toml").read_text(), re.M)
    places = [path.name for path in (ROOT / "src").rglob("*.py") if f'"{__version__}"' in path.read_text()]
    assert places == ["__init__.py"]
