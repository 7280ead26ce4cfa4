"""Code in folders named `guest/` runs in the Python of the user's programs, which may be old and has no faultlens."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import places

ROOT = places.ROOT / "src" / "faultlens"
GUESTS = sorted(path for path in ROOT.rglob("*.py") if "guest" in path.relative_to(ROOT).parts)
# What is imported by name, in functions that run only where it is installed; our own packages, as start.py names them.
OTHERS = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "h5py", "faultlens_sandbox"})
# Of typing and the language after 3.9: evaluated at run time, annotations are not.
NEWER_ARGUMENTS = {"zip": "strict"}


def test_there_are_guests() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in GUESTS}
    assert {"guest", "sandbox/guest", "forecasting/guest", "custom_op/fuzz/guest", "verify/guest"} <= folders


@pytest.mark.parametrize("path", GUESTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_guest_needs_nothing_newer_than_python_3_9_and_nothing_of_faultlens(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    assert future or not tree.body[1:], "annotations would be evaluated"
    for node in ast.walk(tree):
        for name in _imported(node):
            assert name in OTHERS or name in sys.stdlib_module_names, name
            assert name != "faultlens"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEWER_ARGUMENTS:
            assert all(keyword.arg != NEWER_ARGUMENTS[node.func.id] for keyword in node.keywords)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name.partition(".")[0] for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [(node.module or "").partition(".")[0]]
    return []


def test_guests_compile_and_start_in_the_oldest_python_here() -> None:
    old = next((path for path in _old_pythons() if _is_old(path)), None)
    if old is None:
        pytest.skip("needs Python 3.9 (named by PYTHON39, on PATH, or in pyenv)")
    code = "import sys\nfor name in sys.argv[1:]: compile(open(name, encoding='utf-8').read(), name, 'exec')"
    subprocess.run([old, "-c", code, *GUESTS], check=True)
    start = ROOT / "sandbox" / "guest" / "start.py"
    done = subprocess.run([old, "-B", start, ROOT / "sandbox" / "guest" / "scripts.py"], capture_output=True, text=True)
    assert "IndexError" in done.stderr  # it was loaded with all that it imports, and misses its argument


def _is_old(python: Path) -> bool:
    """A shim on PATH may stand for nothing."""
    code = "import sys; sys.exit(sys.version_info[:2] != (3, 9))"
    return python.exists() and subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def _old_pythons() -> list[Path]:
    named = [Path(os.environ["PYTHON39"])] if "PYTHON39" in os.environ else []
    on_path = [Path(folder, "python3.9") for folder in os.environ.get("PATH", "").split(os.pathsep)]
    return [*named, *on_path, *sorted(Path.home().glob(".pyenv/versions/3.9*/bin/python"))]
