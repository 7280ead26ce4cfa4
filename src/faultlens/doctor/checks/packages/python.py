from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.imports import would_import
from faultlens.target_env.target import TargetEnvironment

# What `import tensorflow` takes from the standard library (2.12, 2.15 and 2.21 agree on these), as sys.modules told.
TAKEN = frozenset(
    """
    argparse array ast asyncio base64 bdb binascii bisect bz2 calendar cmd code codeop collections concurrent contextlib
    contextvars copy copyreg csv ctypes dataclasses datetime decimal difflib dis email enum fcntl fnmatch fractions
    functools getpass gettext glob grp gzip hashlib heapq hmac http importlib inspect ipaddress json keyword linecache
    locale logging lzma math mimetypes multiprocessing numbers opcode operator pathlib pdb pickle pkgutil platform
    pprint queue quopri random re reprlib select selectors shlex shutil signal socket ssl string stringprep struct
    subprocess sysconfig tarfile tempfile termios textwrap threading timeit token tokenize traceback types typing
    unicodedata unittest urllib uuid warnings weakref xml zipfile zlib
""".split()
)


class Python(Check):
    """
    Whether the interpreter starts at all, and whether files beside the program hide modules of the standard library
    that TensorFlow imports: a `random.py` or `types.py` of one's own in the folder of the program is found first.
    """

    name = "python"
    looks_at = "whether Python starts, and files that hide its standard library"
    position = 15
    causes = ("python-exception",)

    def examine(self, target: TargetEnvironment) -> Examination:
        interpreter = target.interpreter
        version = ".".join(map(str, interpreter.version or ())) or "of unknown version"
        findings = [*self._does_not_start(target), *self._hidden(target)]
        if not findings and not interpreter.was_asked:
            return self.skipped(f"not asked: {interpreter.problem}")
        return self.judged(
            findings,
            f"Python {version} starts, and finds its own modules",
            [f"{interpreter.executable}, prefix {interpreter.prefix}", *interpreter.path],
        )

    def _does_not_start(self, target: TargetEnvironment) -> Iterator[Finding]:
        interpreter = target.interpreter
        if interpreter.problem and interpreter.was_asked:
            command = f"{shlex.quote(interpreter.executable)} -c pass"
            yield self.error(
                f"Python itself does not start: {interpreter.problem}",
                [(interpreter.problem, command)],
                [
                    fix("see what it says", command),
                    fix(
                        "make the environment anew",
                        f"python3 -m venv {shlex.quote(interpreter.prefix)}",
                        "where its base Python was removed or replaced",
                        safe=False,
                    ),
                ],
            )

    def _hidden(self, target: TargetEnvironment) -> Iterator[Finding]:
        """One finding for all: they are renamed in one go."""
        beside = sorted(TAKEN & {name.partition(".")[0] for name in _names_in(target.directory)})
        found = [would_import(name, [target.directory]) for name in beside]
        hiding = [module.place for module in found if module and module.kind != "namespace"]
        if not hiding:
            return
        names = ", ".join(place.name for place in hiding[:3])
        command = " && ".join(shlex.join(["mv", place.name, f"my_{place.name}"]) for place in hiding)
        yield self.warning(
            f"a program in {target.directory} imports {names} there instead of the standard library's",
            [
                (f"{place} is beside the program, and TensorFlow imports {place.stem}", "working folder")
                for place in hiding
            ],
            [fix("rename it", f"cd {shlex.quote(str(target.directory))} && {command}")],
        )


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
