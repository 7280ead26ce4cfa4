"""Which Python a program would run on, and where that Python looks for packages."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.records.crash import Record
from faultlens.system.loader import OUR_WANT
from faultlens.system.procfs import read_fields
from faultlens.target_env.search_path import with_links
from faultlens.target_env.which_python import which_python
from faultlens.text.safe import one_line

SECONDS = 10.0
# Asked with -S: what an environment runs at every start (.pth files, sitecustomize) is not run for a look at it.
# Python's own `site` then finds the folders of packages. Nothing may be imported from the current folder or PYTHONPATH.
_QUESTION = """
import sys, encodings
path = [entry for entry in sys.path if entry]
sys.path[:] = [encodings.__file__.rpartition("/")[0].rpartition("/")[0]]
import site
sys.path[:] = path
try:
    site.addpackage  # what runs a .pth file
    site.addpackage = lambda folder, name, known: known
    known = site.venv(set())
    if site.ENABLE_USER_SITE is None:
        site.ENABLE_USER_SITE = site.check_enableusersite()
    site.addsitepackages(site.addusersitepackages(known))
except AttributeError:  # Python 2
    sys.path += site.getsitepackages()
base = getattr(sys, "base_prefix", sys.prefix)
print(repr([list(sys.version_info[:3]), sys.executable, sys.prefix, base, path, sys.path[len(path):]]))
"""


class Interpreter(Record, frozen=True):
    executable: str  # as a user would call it
    version: tuple[int, ...] | None  # (3, 11, 7)
    prefix: str
    base_prefix: str  # where the standard library is
    path: tuple[str, ...]  # where packages are looked for, first match wins
    problem: str | None = None  # why it gave no answer; the rest was then read from its folders
    was_asked: bool = True  # False: no process could be started, which says nothing about this one

    @property
    def abi(self) -> str | None:
        """The tag in the names of its extension modules: "cpython-311"."""
        return f"cpython-{self.version[0]}{self.version[1]}" if self.version else None

    @property
    def pip(self) -> str:
        """How to call its pip in a command that people copy."""
        return f"{shlex.quote(self.executable)} -m pip"


def find_interpreter(python: str | None, variables: Mapping[str, str], seconds: float = SECONDS) -> Interpreter:
    """`python` is a path, a name, or a virtual environment; by default the one that `run` would take."""
    executable = which_python(python, variables).executable
    try:
        done = subprocess.run(
            [executable, "-B", "-S", "-c", _QUESTION],  # -B: nothing is written into the environment
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except OSError as error:
        if error.errno in OUR_WANT:  # what the doctor is here to tell, and no fault of the interpreter
            return _from_folders(executable, f"no process could be started: {error.strerror}", was_asked=False)
        raise FaultlensError(f"Cannot run {executable}: {error.strerror}.", "Name a Python with --python.") from error
    except subprocess.TimeoutExpired:
        return _from_folders(executable, f"it gave no answer within {seconds:.0f} s")
    try:
        version, own, prefix, base, path, packages = ast.literal_eval(done.stdout.decode().splitlines()[-1])
        return Interpreter(
            executable=str(own or executable),
            version=tuple(map(int, version)),
            prefix=str(prefix),
            base_prefix=str(base),
            path=with_links(map(str, path), map(str, packages)),
        )
    except (IndexError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        said = one_line(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2], 200)
        return _from_folders(executable, f"it ended with {ending}" + (f": {said}" if said else ""))


def _from_folders(executable: str, problem: str, *, was_asked: bool = True) -> Interpreter:
    """What the folders tell, for a Python that does not run."""
    prefix = Path(executable).absolute().parent.parent
    settings = read_fields(prefix / "pyvenv.cfg", "=")
    base = Path(settings["home"]).parent if "home" in settings else prefix
    named = sorted(prefix.glob("lib*/python3.*/site-packages")) + sorted(prefix.glob("lib*/python3*/dist-packages"))
    folders = list({folder.resolve(): folder for folder in reversed(named)}.values())[::-1]  # lib64 is a link to lib
    version = settings.get("version") or settings.get("version_info")
    if version is None and folders:
        match = re.search(r"/python(3\.\d+)/", str(folders[0]))
        version = match[1] if match else None
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])
    if not numbers:
        how = problem.partition(": ")[0]  # what it says may be our own question, not understood
        raise FaultlensError(
            f"{executable} is not a Python interpreter: {how}.", "Name a Python or a virtual environment."
        )
    return Interpreter(
        executable=executable,
        version=numbers or None,
        prefix=str(prefix),
        base_prefix=str(base),
        path=tuple(map(str, folders)),
        problem=problem,
        was_asked=was_asked,
    )
