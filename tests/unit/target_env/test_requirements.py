"""What the packages that TensorFlow imports need in turn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultlens.doctor.checks.packages import requirements
from faultlens.doctor.checks.packages.requirements import Requirements
from faultlens.doctor.importing import Failure, Trial, try_import
from faultlens.records.finding import Examination
from faultlens.target_env.source_imports import imports_of
from made_environment import install, site_packages, target, tensorflow

REQUESTS = {"requests/__init__.py": b"from . import compat\n", "requests/compat.py": b"import os\n\nimport urllib3\n"}


def _examine(tmp_path: Path) -> Examination:
    return Requirements().examine(target(tmp_path))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = site_packages(tmp_path)
    tensorflow(folder, requires=["requests>=2.21", "tensorboard~=2.20"])
    return folder


def test_all_are_there(tmp_path: Path, site: Path) -> None:
    install(site, "requests", "2.32", files=REQUESTS, requires=["urllib3<3,>=1.26"])
    install(site, "urllib3", "2.5", files={"urllib3/__init__.py": b""})
    install(site, "tensorboard", "2.20.0")
    seen = _examine(tmp_path)
    assert (seen.mark, seen.findings) == ("ok", ())
    assert seen.summary == "the 4 packages that TensorFlow needs have what they need"


def test_what_the_import_comes_to_is_not_there(tmp_path: Path, site: Path) -> None:
    install(site, "requests", "2.32", files=REQUESTS, requires=["urllib3<3,>=1.26"])
    (found,) = _examine(tmp_path).findings
    assert found.severity == "error"
    assert found.title == "urllib3 is not installed, and requests needs it: `import tensorflow` fails"
    assert [each.fact for each in found.evidence] == [
        "requests 2.32 requires urllib3<3,>=1.26",
        "compat.py imports it in line 3",
    ]
    assert "pip install --no-deps 'urllib3<3,>=1.26'" in found.fixes[0].command


def test_two_steps_away(tmp_path: Path, site: Path) -> None:
    install(site, "requests", "2.32", files=REQUESTS, requires=["urllib3"])
    install(site, "urllib3", "2.5", files={"urllib3/__init__.py": b"import deeper"}, requires=["deeper"])
    assert [each.title.partition(":")[0] for each in _examine(tmp_path).findings] == [
        "deeper is not installed, and urllib3 needs it"
    ]


@pytest.mark.parametrize(
    ("line", "requires", "marks"),
    [
        (b"import urllib3", ["urllib3; python_version < '3.8'"], []),
        (b"import urllib3", ["urllib3; extra == 'security'"], []),
        (b"import urllib3", [], []),
        (b"__import__('urllib3')", ["urllib3"], ["error"]),
        (b"try:\n    import urllib3\nexcept ImportError:\n    urllib3 = None", ["urllib3"], ["warning"]),
        (b"pass", ["wheel"], []),  # declared, and used nowhere
        (b"import other", ["urllib3"], []),
    ],
)
def test_only_what_is_needed_and_used_is_told(
    tmp_path: Path, site: Path, line: bytes, requires: list[str], marks: list[str]
) -> None:
    install(site, "requests", "2.32", files={"requests/__init__.py": line}, requires=requires)
    seen = _examine(tmp_path)
    assert [each.severity for each in seen.findings] == marks


TREE = b"""
from requests import lazy
if lazy.backend == "torch":
    pass
elif lazy.available:
    pass
elif dmtree.available:
    pass
else:
    raise ImportError("To use this, you need to have `urllib3` installed.")
"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"for name in ('os', 'urllib3'):\n    locals()[name] = __import__(name)", "`import tensorflow` fails"),
        (b"import importlib\nx = importlib.import_module('urllib3')", "`import tensorflow` fails"),
        (b"try:\n    import urllib3\nexcept ImportError:\n    urllib3 = None", "requests goes on without it"),
        (b"try:\n    import urllib3\nexcept OSError:\n    urllib3 = None", "may fail"),
        (b"try:\n    import urllib3\nexcept ImportError:\n    pass\nif x:\n    import urllib3", "may fail"),
        (TREE, "`import tensorflow` fails"),
    ],
)
def test_what_the_sources_do_with_it_decides(tmp_path: Path, site: Path, lines: bytes, said: str) -> None:
    install(site, "requests", "2.32", files={"requests/__init__.py": lines}, requires=["urllib3"])
    (found,) = _examine(tmp_path).findings
    assert said in found.title
    assert found.severity == ("error" if said.endswith(" fails") else "warning")


def test_another_package_may_stand_in(tmp_path: Path, site: Path) -> None:
    install(site, "requests", "2.32", files={"requests/__init__.py": TREE}, requires=["urllib3"])
    install(site, "dm-tree", "0.1.9", files={"tree/__init__.py": b""})
    assert [each.severity for each in _examine(tmp_path).findings] == ["warning"]


@pytest.mark.parametrize(("version", "marks"), [("1.10.0", ["warning"]), ("1.11.0", []), ("9.0", [])])
def test_what_tensorflow_itself_asks_for_is_too_old(tmp_path: Path, version: str, marks: list[str]) -> None:
    """Newer than it asks for is no reason."""
    folder = site_packages(tmp_path)
    tensorflow(folder, requires=["wrapt<2,>=1.11.0"])
    install(folder, "wrapt", version, files={"wrapt/__init__.py": b""})
    found = _examine(tmp_path).findings
    assert [each.severity for each in found] == marks
    assert all("pip install --no-deps 'wrapt<2,>=1.11.0'" in each.fixes[0].command for each in found)


@pytest.mark.parametrize(
    ("place", "error", "titles"),
    [
        (
            "/site/wrapt/decorators.py:34",
            "cannot import name 'getargspec'",
            ["needs wrapt>=1.11.0, 1.10.0 is installed"],
        ),
        ("/site/tensorflow/x.py:3", "something else", ["may fail", "`import tensorflow` fails: ImportError"]),
    ],
)
def test_an_import_that_failed_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: str, titles: list[str]
) -> None:
    folder = site_packages(tmp_path)
    tensorflow(folder, requires=["wrapt>=1.11.0"])
    install(folder, "wrapt", "1.10.0", files={"wrapt/__init__.py": b""})
    failure = Failure("import tensorflow", f"ImportError: {error}", "", place)
    monkeypatch.setattr(requirements, "try_import", lambda *_: Trial(failure=failure))
    found = Requirements().examine(target(tmp_path, deep=True)).findings
    assert len(found) == len(titles)
    errors = [each for each in found if each.severity == "error"]
    assert len(errors) == 1 and titles[-1] in errors[0].title
    assert "'wrapt>=1.11.0'" in errors[0].fixes[0].command


def test_an_extra_that_is_asked_for(tmp_path: Path) -> None:
    folder = site_packages(tmp_path)
    tensorflow(folder, requires=["requests[security]"])
    install(folder, "requests", "2.32", files=REQUESTS, requires=["urllib3; extra == 'security'"])
    assert [each.severity for each in _examine(tmp_path).findings] == ["error"]


def test_another_version(tmp_path: Path, site: Path) -> None:
    install(site, "requests", "2.32", files=REQUESTS, requires=["urllib3<3,>=1.26"])
    install(site, "urllib3", "0.9", files={"urllib3/__init__.py": b""})
    (found,) = _examine(tmp_path).findings
    assert found.severity == "warning"
    assert found.title.startswith("requests 2.32 needs urllib3<3,>=1.26, 0.9 is installed")


def test_others_are_a_note(tmp_path: Path, site: Path) -> None:
    install(site, "someone", "1.0", requires=["nowhere>=2"])
    seen = _examine(tmp_path)
    assert seen.mark == "ok"
    assert "someone 1.0 asks for nowhere>=2, which is not installed" in seen.details


def test_without_tensorflow(tmp_path: Path) -> None:
    install(site_packages(tmp_path), "someone", "1.0", requires=["nowhere>=2"])
    seen = _examine(tmp_path)
    assert (seen.mark, len(seen.details)) == ("skipped", 1)


def test_imports_are_followed_inside_of_a_package(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "from .a import x\nfrom p import b\nimport p.c.d\n",
        "p/a.py": "from .. import nothing\nimport of_a\n",
        "p/b/__init__.py": "from . import inner\n",
        "p/b/inner.py": "from ..c import e\n",
        "p/c/__init__.py": "",
        "p/c/d.py": "import of_d.sub as y\n",
        "p/c/e.py": "def later():\n    import never\nif later:\n    import perhaps\nfrom of_e import z\n",
        "p/unseen.py": "import unseen\n",
        "p/broken.py": "import (",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = imports_of("p", [tmp_path])
    assert {name: (place.file.name, place.line) for name, place in found.certain.items() if name} == {
        "of_a": ("a.py", 2),
        "of_d": ("d.py", 1),
        "of_e": ("e.py", 5),
    }


@pytest.mark.parametrize(
    ("text", "failed", "died"),
    [
        ("x = 1", "", ""),
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'", ""),
        ("raise SystemExit(3)", "SystemExit: 3", ""),
        ("import ctypes; ctypes.string_at(0)", "", "SIGSEGV"),
        ("import os; os._exit(7)", "", "exit status 7"),
        (f"open({str(Path(__file__).with_name('made'))!r}, 'w')", "OSError", ""),
    ],
)
def test_an_import_is_tried_where_it_can_do_no_harm(tmp_path: Path, text: str, failed: str, died: str) -> None:
    (tmp_path / "some_module.py").write_text(text)
    trial = try_import(sys.executable, ["import some_module"], {"PYTHONPATH": str(tmp_path)})
    assert trial.works == (not failed and not died)
    assert trial.died == died
    if failed == "OSError":  # which one depends on what this kernel confines with
        assert trial.failure and "made" in trial.failure.error
        assert not Path(__file__).with_name("made").exists()
    else:
        assert (trial.failure.error if trial.failure else "") == failed
