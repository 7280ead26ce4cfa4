"""How one installed package is replaced by another release of it, and how that is taken back."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from faultlens.doctor.check import fix
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Repair
from faultlens.target_env.distributions import Distribution, installed
from faultlens.target_env.requirements import admits
from faultlens.target_env.target import ASIDE, TargetEnvironment

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
Command = tuple[str, ...]


class Replacement(NamedTuple):
    fix: Fix
    repair: Repair | None


def replacement(target: TargetEnvironment, name: str, wanted: str, because: str = "") -> Replacement:
    """`wanted`: "<2,>=1.26"."""
    requirement = f"{name}{wanted}"
    present = target.distribution(name)
    own = own_folder(target)
    if present is not None and own is not None and _comes_before(target, present.folder, own):
        return _copy_in_front(target, present, own, requirement, because)
    install, undo = _installed(target, requirement, present if present and present.folder == own else None)
    return Replacement(
        fix(f"install {requirement}", shlex.join(install), because), Repair(commands=(install,), undo=(undo,))
    )


def reinstalled(target: TargetEnvironment, package: Distribution, damaged: tuple[Path, ...] = ()) -> Replacement:
    """The same release once more; damaged files are kept aside."""
    install = pip(target, "install", "--no-deps", "--force-reinstall", f"{package.key}=={package.version}")
    kept = set_aside(damaged)
    return Replacement(
        fix(f"install {package.key} {package.version} once more", shlex.join(install)),
        Repair(commands=(*kept.commands, install), undo=kept.undo or (install,)),
    )


def set_aside(places: tuple[Path, ...]) -> Repair:
    """Files and folders that are in the way; nothing is deleted, what was put aside before is kept."""
    commands: dict[Command, None] = {}
    undo: list[Command] = []
    for place in places:
        aside = place.parent / ASIDE
        commands[("mkdir", "-p", str(aside))] = None
        commands[("mv", "-T", "--backup=numbered", str(place), str(aside / place.name))] = None
        undo.append(("mv", "-T", str(aside / place.name), str(place)))
    return Repair(commands=tuple(commands), undo=tuple(undo))


def pip(target: TargetEnvironment, *words: str) -> Command:
    return (target.interpreter.executable, "-m", "pip", *words)


def own_folder(target: TargetEnvironment) -> Path | None:
    """Where pip installs."""
    prefix = Path(target.interpreter.prefix)
    entries = map(Path, target.interpreter.path)
    return next((entry for entry in entries if entry.name in PACKAGE_FOLDERS and prefix in entry.parents), None)


def without(target: TargetEnvironment, folder: Path) -> str | None:
    """The command that takes the folder off PYTHONPATH; None where it is not there."""
    entries = [entry for entry in target.variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    kept = [entry for entry in entries if Path(entry).absolute() != folder.absolute()]
    if len(kept) == len(entries):
        return None
    return f"export PYTHONPATH={shlex.quote(os.pathsep.join(kept))}" if kept else "unset PYTHONPATH"


def _copy_in_front(
    target: TargetEnvironment, package: Distribution, own: Path, requirement: str, because: str
) -> Replacement:
    """What pip installs would stay hidden behind it: the copy is moved aside, unless the folder is an environment."""
    if ".local" in package.folder.parts:
        change = pip(target, "install", "--user", "--no-deps", requirement)
        undo = pip(target, "install", "--user", "--no-deps", f"{package.key}=={package.version}")
        return Replacement(
            fix(f"install {requirement}", shlex.join(change), because), Repair(commands=(change,), undo=(undo,))
        )
    path = [Path(entry) for entry in target.interpreter.path]
    behind = installed(map(str, path[path.index(package.folder) + 1 :]))
    hidden = next((each for each in behind if each.key == package.key), None)
    fits = hidden is not None and admits(Requirement(requirement), hidden.version)
    install, uninstall = _installed(target, requirement, hidden if hidden and hidden.folder == own else None)
    moved = set_aside((*_roots(package), package.metadata))
    commands = moved.commands if fits else (install, *moved.commands)
    undo_all = moved.undo if fits else (*moved.undo, uninstall)
    command = without(target, package.folder) or " && ".join(map(shlex.join, moved.commands))
    return Replacement(
        fix(
            f"take {package.folder} off the search path: its {package.key} {package.version} comes first",
            command if fits else f"{command} && {shlex.join(install)}",
            because,
        ),
        None if package.folder.name in PACKAGE_FOLDERS else Repair(commands=commands, undo=undo_all),
    )


def _installed(target: TargetEnvironment, requirement: str, before: Distribution | None) -> tuple[Command, Command]:
    """Without an earlier release in pip's own folder, one that it hid elsewhere is seen again after removal."""
    install = pip(target, "install", "--no-deps", requirement)
    if before is None:
        return install, pip(target, "uninstall", "--yes", Requirement(requirement).name)
    return install, pip(target, "install", "--no-deps", f"{before.key}=={before.version}")


def _comes_before(target: TargetEnvironment, first: Path, second: Path) -> bool:
    path = [Path(entry) for entry in target.interpreter.path]
    return first in path and second in path and path.index(first) < path.index(second)


def _roots(package: Distribution) -> tuple[Path, ...]:
    """Its topmost folders and files that it shares with no other package."""
    found: dict[Path, None] = {}
    for file in package.files:
        parts = Path(file).parts
        if not parts or parts[0] in ("..", "/", "bin", "__pycache__", package.metadata.name):
            continue
        root = package.folder / parts[0]
        if len(parts) > 1 and not (root / "__init__.py").exists():  # a namespace: "google"
            root = root / parts[1]
        if root.exists():
            found[root] = None
    return tuple(found)
