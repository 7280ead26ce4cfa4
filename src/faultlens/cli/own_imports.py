"""faultlens where a variable that is meant for the program breaks our own Python.

`LD_LIBRARY_PATH` may bring a libz without `crc32`, `PYTHONPATH` a package of another Python: then parts of the standard
library, or of what faultlens stands on, cannot be imported. It starts again without the variable and remembers it for
the program. The dynamic loader and Python read these variables once, at the start: they can be put back after it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

from faultlens.errors import FaultlensError
from faultlens.text.safe import one_line

PRELOAD, LIBRARIES, PACKAGES = "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"
# What is tried, one after the other. A Python may need its LD_LIBRARY_PATH to start at all.
WITHOUT = ((LIBRARIES,), (LIBRARIES, PRELOAD), (LIBRARIES, PRELOAD, PACKAGES))
_REMEMBERED = {name: f"FAULTLENS_{name}_OF_PROGRAM" for name in (PRELOAD, LIBRARIES, PACKAGES)}
# Those of our modules that need native libraries. `run` would import some of them only when the program has died.
NATIVE = (
    "binascii", "bz2", "ctypes", "hashlib", "lzma", "zlib",
    "google_crc32c", "iced_x86", "lz4.frame", "msgspec", "pystack.engine", "zstandard",
)  # fmt: skip
SECONDS = 20.0
_put_back: set[str] = set()  # variables that this Python was started without


def variables_of_program() -> dict[str, str]:
    """The variables that a program would get."""
    variables = dict(os.environ)
    for name, remembered in _REMEMBERED.items():
        if remembered in variables:
            variables[name] = variables.pop(remembered)
    return variables


def put_back() -> None:
    """For whatever is started from here on."""
    for name, remembered in _REMEMBERED.items():
        if remembered in os.environ:
            os.environ[name] = os.environ.pop(remembered)
            _put_back.add(name)


def start_again(without: Iterable[str]) -> None:
    """In the same process. Does nothing if this Python was started without these variables."""
    if _disturbing(without):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], _setting_aside(without))


def check() -> None:
    """Starts again if a native module cannot be loaded, or kills who loads it. Costs a tenth of a second, and nothing
    where no variable leads the loader elsewhere. What cannot be mended shows where it is needed."""
    if not _disturbing((LIBRARIES, PRELOAD)):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        pid = os.fork()
    except OSError:  # the program may still be started
        return
    if pid == 0:
        _import_and_exit()
    if os.waitpid(pid, 0)[1] != 0:
        _start_as_it_works()


def rescue(error: ImportError) -> FaultlensError:
    """Returns only if there is no other start."""
    _start_as_it_works()
    named = _disturbing((LIBRARIES, PRELOAD, PACKAGES))
    advice = f"Look at {', '.join(named)}, or install" if named else "Install"
    return FaultlensError(
        f"Python cannot load a part of faultlens: {one_line(str(error), 300)}.",
        f"{advice} faultlens again: {sys.executable} -m pip install --force-reinstall faultlens",
    )


def _start_as_it_works() -> None:
    for names in WITHOUT:
        if _disturbing(names) and _works(names):
            start_again(names)


def _disturbing(names: Iterable[str]) -> list[str]:
    return [name for name in names if os.environ.get(name) and name not in _put_back]


def _works(without: Iterable[str]) -> bool:
    code = "import sys; del sys.path[0]; from faultlens.cli import own_imports; own_imports.import_native()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=_setting_aside(without),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _setting_aside(names: Iterable[str]) -> dict[str, str]:
    variables = dict(os.environ)
    for name in _disturbing(names):
        variables[_REMEMBERED[name]] = variables.pop(name)
    return variables


def import_native() -> None:
    for module in NATIVE:
        __import__(module)


def _import_and_exit() -> None:
    """In the forked child: what a broken library prints is nobody's business."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        import_native()
    except BaseException:
        os._exit(1)
    os._exit(0)
