"""The folder a reproducer is handed over in: the script, its arrays, and a README that says what it is."""

from __future__ import annotations

import re
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.op_model.files import SCRIPT
from faultlens.records.crash import Crash
from faultlens.repro.reduce_script import count_lines
from faultlens.repro.task import Found
from faultlens.sandbox.trial.trial import write_files
from faultlens.target_env.distributions import normal
from faultlens.text.quantities import count
from faultlens.text.safe import one_line

_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "keras", "numpy")


def write_folder(found: Found, identity: str, chosen: Path | None) -> Path:
    """A new folder, or the empty one that was chosen: no file that is there already is ever touched."""
    folder = chosen or _free(Path(f"faultlens-repro-{_plain(found.name)}-{_plain(identity)}"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FaultlensError(f"{folder} is not empty.", "Name a new folder with --out.")
        write_files(folder, {**found.files, "README.md": readme(found).encode()})
    except OSError as error:
        raise FaultlensError(
            f"Cannot write to {folder}: {error.strerror}.", "Name another folder with --out."
        ) from error
    return folder


def readme(found: Found) -> str:
    script = found.files[SCRIPT].decode()
    what = f"a call of the op {_quoted(found.name)}" if found.kind == "op" else f"{_quoted(found.name)}, reduced"
    length = count(count_lines(script), "line")
    lines = [
        f"# Reproducer: {_quoted(str(found.signature))}",
        "",
        f"{length}, {what}. Started {found.runs} times, it died this way {found.same} times.",
        "",
        "    cd THIS_FOLDER",
        f"    python {SCRIPT}",
        "",
        "It should end like this:",
        "",
        f"    {one_line(str(found.signature), 300)}",
        "",
        "## Seen with",
        "",
        *(f"- {line}" for line in (_versions(found.proof) if found.proof else ())),
        "",
        "Written by faultlens from the report of a crash.",
    ]
    return "\n".join(lines) + "\n"


def _versions(crash: Crash) -> list[str]:
    python = crash.program.python
    found = [f"Python {one_line(python.version, 40)}"] if python and python.version else []
    packages = python.packages if python else ()
    found += [
        f"{one_line(each.name, 40)} {one_line(each.version, 40)}" for each in packages if normal(each.name) in _PACKAGES
    ]
    machine = crash.machine
    for fact in (machine.distribution, machine.kernel, machine.cpu_model) if machine else ():
        found += [_quoted(fact)] if fact else []
    return found


def _quoted(text: str) -> str:
    """Foreign text that Markdown takes as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", one_line(text, 300))


def _free(folder: Path) -> Path:
    names = [folder, *(folder.with_name(f"{folder.name}-{number}") for number in range(2, 1000))]
    return next((each for each in names if not each.exists()), folder)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:60].strip(".") or "program"
