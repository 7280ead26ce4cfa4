"""What a Python says of itself, without running what its environment wants to run; and one that does not answer."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.target_env.interpreter import find_interpreter


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


def pythons() -> list[str]:
    found = (sys.executable, f"{sys.base_prefix}/bin/python3", "/usr/bin/python3")
    return [path for path in dict.fromkeys(found) if Path(path).exists()]


@pytest.mark.parametrize("python", pythons())
def test_packages_are_looked_for_where_it_looks(python: str, tmp_path: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True)
    user = tmp_path / ".local" / "lib" / f"python3.{version.stdout.strip()}" / "site-packages"
    user.mkdir(parents=True)
    question = "import sys; print(repr([sys.executable, sys.prefix, sys.base_prefix, sys.path[1:]]))"
    said = subprocess.run([python, "-c", question], capture_output=True, text=True, env=variables, check=True)
    found = find_interpreter(python, variables)
    assert [found.executable, found.prefix, found.base_prefix, list(found.path)] == ast.literal_eval(said.stdout)


def test_nothing_of_the_environment_is_run(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    harm = f"open({str(tmp_path / 'harm')!r}, 'w')"
    for folder in (site, tmp_path / "named", tmp_path / "path"):
        folder.mkdir(exist_ok=True)
        for module in ("sitecustomize", "usercustomize", "site", "os"):
            (folder / f"{module}.py").write_text(harm)
    (site / "code.pth").write_text(f"import sys; {harm}\n# a comment\n\n{tmp_path}/named\n/nowhere\n")
    found = find_interpreter(str(tmp_path / "env"), {"PYTHONPATH": str(tmp_path / "path")})
    assert found.problem is None
    assert not (tmp_path / "harm").exists()
    assert found.path[0] == str(tmp_path / "path")
    assert found.path[-2:] == (str(site), str(tmp_path / "named"))
