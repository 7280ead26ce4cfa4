"""faultlens.install(), inside the program: starts the helper process (attendant.py), sets handlers of fatal signals.

The program goes on whatever happens here. Only Python's own library is needed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from faultlens.agent import LIBRARY
from faultlens.fs.state_dir import home
from faultlens.guest import live

READY = 3  # the helper's descriptor of the pipe on which it says where its shared memory is
START_S = 20.0
_PACKAGES = Path(__file__).parents[2]
_START = """
import sys
sys.path = [*filter(None, sys.path), *sys.argv[2:]]
from faultlens.cli.crash_handler import main
main()
"""


class InstallError(Exception):
    """Crashes will not be reported; the text says why."""


_failed = False


def install() -> None:
    """Does nothing if it was called before, here or in the process that forked this one, or under `faultlens run`."""
    global _failed
    if _failed or live.is_supervised():
        return
    live.install(home())
    try:
        _attend()
    except InstallError as error:
        _failed = True
        print(f"faultlens: crashes of this program will not be reported: {error}", file=sys.stderr)


def _attend() -> None:
    if not LIBRARY.exists():
        raise InstallError("the capture agent was not built: install a C compiler, then faultlens again")
    try:
        agent = ctypes.CDLL(str(LIBRARY))
        agent.faultlens_set_handlers.restype = agent.faultlens_start_helper.restype = ctypes.c_bool
        area = _start_helper(agent)
    except (OSError, AttributeError) as error:
        raise InstallError(str(error)) from error
    if not agent.faultlens_set_handlers(os.fsencode(area)):
        raise InstallError("the memory of the helper process could not be shared")
    _stay_in_front(agent)


def _stay_in_front(agent: ctypes.CDLL) -> None:
    """A handler that Python sets later would take the place of ours; servers set theirs when a worker starts."""

    def front(_: object, arguments: tuple[int, ...]) -> None:
        agent.faultlens_set_handler(arguments[0])

    tools = ctypes.PyDLL(str(LIBRARY)).faultlens_tools
    tools.restype = ctypes.py_object
    module: Any = import_module("_signal")  # what signal.signal() calls
    module.signal = tools()["chain"](module.signal, None, front)


def _start_helper(agent: ctypes.CDLL) -> str:
    """Returns where its shared memory is."""
    command = [_interpreter(), "-s", "-S", "-c", _START, str(os.getpid()), *_places()]
    reader, writer = os.pipe()
    try:
        try:
            if not agent.faultlens_start_helper(_strings(command), _strings(_environment(os.environ)), writer):
                raise InstallError("no helper process could be started")
        finally:
            os.close(writer)
        return _answer(reader)
    finally:
        os.close(reader)


def _answer(reader: int) -> str:
    poll = select.poll()  # select() knows no descriptors above 1023
    poll.register(reader, select.POLLIN)
    answer = os.read(reader, 4096).decode() if poll.poll(START_S * 1000) else ""
    if not answer.startswith("/proc/"):
        raise InstallError(answer or "the helper process did not start")
    return answer


def _interpreter() -> str:
    """Where Python is embedded, sys.executable is another program, another Python that is first on PATH, or nothing."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = (f"{sys.exec_prefix}/bin", f"{sys.base_exec_prefix}/bin", sysconfig.get_config_var("BINDIR"))
    for path in (*(f"{folder}/{name}" for folder in folders), sys.executable):
        if path and re.fullmatch(r"python[\d.]*t?", Path(path).name) and os.access(path, os.X_OK):
            return path
    raise InstallError(f"there is no {name} to run the helper process")


def _places() -> list[str]:
    """Where faultlens and what it needs are found. The program's own folders may hide modules of Python's."""
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return list(dict.fromkeys([str(_PACKAGES), *map(os.path.abspath, installed)]))


def _environment(variables: Mapping[str, str]) -> list[str]:
    """What others preload into the program, or ask of its Python, is not for the helper."""
    kept = {name: text for name, text in variables.items() if not name.startswith("PYTHON") and name != "LD_PRELOAD"}
    kept |= {name: variables[name] for name in ("PYTHONHOME",) if name in variables}
    with contextlib.suppress(RuntimeError):  # nobody knows the user's home
        kept["FAULTLENS_HOME"] = str(home().absolute())
    return [f"{name}={text}" for name, text in kept.items()]


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)
