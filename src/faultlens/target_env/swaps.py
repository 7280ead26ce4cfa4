"""What LD_LIBRARY_PATH and LD_PRELOAD change: libraries that take the place of others, and what that breaks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.system.linkage import exported_of, imports, lacking, same_content, undefined_symbols
from faultlens.system.loader import Library
from faultlens.system.loader_variables import preload_entries, search_entries
from faultlens.target_env.loading import REQUIRED, Loading, Refusal
from faultlens.target_env.target import TargetEnvironment

LIBC = "libc.so.6"
SHOWN = 4


class Swap(NamedTuple):
    """A library that another file took the place of."""

    taken: Library
    instead: Library  # what the loader would have taken without the variable
    user: str | None = None  # a file that lacks symbols because of it
    symbols: tuple[str, ...] = ()  # those it lacks

    @property
    def evidence(self) -> Iterator[tuple[str, str]]:
        place = os.path.normpath(self.instead.path)
        yield f"{self.taken.path} is taken instead of {place}", "search order of the loader"
        if self.user:
            names = ", ".join(self.symbols[:SHOWN])
            yield f"{os.path.normpath(self.user)} does not find {names}", "symbol tables"


def consequence(swap: Swap, target: TargetEnvironment) -> tuple[bool, str]:
    """Whether TensorFlow cannot be imported because of it, and what fails."""
    if swap.user is None:
        return False, ""
    if swap.taken.name == LIBC:
        return True, "Python does not start"
    folders = [str(folder) for package in REQUIRED for folder in target.packages_named(package)]
    if any(swap.user.startswith(f"{folder}/") for folder in folders):
        return True, "import tensorflow fails"
    return False, f"import {Path(swap.user).name.partition('.')[0]} fails"


def only_with_variables(loading: Loading, undisturbed: Loading) -> list[Refusal]:
    """What LD_LIBRARY_PATH and LD_PRELOAD break."""
    in_any_case = {refusal.fault for refusal in undisturbed.refusals}
    return [refusal for refusal in loading.refusals if refusal.fault not in in_any_case]


def swapped(loading: Loading, undisturbed: Loading, libraries: Iterable[Library]) -> Iterator[Swap]:
    """Those of other content than the libraries which would be there without the variables. Of a folder from which
    one library breaks something, no more are looked at."""
    broken: set[Path] = set()
    for taken in libraries:
        instead, folder = undisturbed.process.find(taken.name), Path(taken.path).parent
        if instead is None or instead.path == taken.path or folder in broken or same_content(taken.path, instead.path):
            continue
        # Where both have versions, these were compared, and say all about those who use it.
        versioned = taken.dynamic.offers_versions and instead.dynamic.offers_versions
        swap = (_unfit if versioned else _lost)(loading, taken, instead)
        if swap.user:
            broken.add(folder)
        yield swap


def _unfit(loading: Loading, taken: Library, instead: Library) -> Swap:
    """What the file itself imports and does not find: another glibc's libc.so.6 is not for this loader. Symbols of
    other libraries that are there from the start are looked for only when they are called."""
    process = loading.process
    if taken in process.at_start and taken.name != LIBC:
        return Swap(taken, instead)
    lost = undefined_symbols(process, taken)
    modules = (process.find(str(module.path)) for module in loading.modules)
    needing = next((module.path for module in modules if module and taken in module.closure), taken.path)
    return Swap(taken, instead, needing, lost) if lost else Swap(taken, instead)


def _lost(loading: Loading, taken: Library, instead: Library) -> Swap:
    """Who imports symbols from `instead` that `taken` and all others do not have. The smallest files are asked first,
    and the first that lacks something is enough: TensorFlow's largest library takes a second."""
    process = loading.process
    everywhere = taken in process.at_start
    modules = {str(module.path) for module in loading.modules}
    users = [
        library
        for library in process.libraries
        if taken in library.needs.values() or (everywhere and library.path in modules)
    ]
    there: set[str] = set()
    for user in sorted(users, key=lambda library: _size(library.path)):
        names = [name for name in imports(user.path) if name not in there]
        gone = tuple(lacking(exported_of(instead.path, names), [taken.path]))
        there.update(name for name in names if name not in gone)
        if lost := tuple(lacking(gone, (each.path for each in (*user.closure, *process.at_start)))):
            return Swap(taken, instead, user.path, lost)
    return Swap(taken, instead)


def without(variable: str, value: str, path: str | None, directory: Path) -> str:
    """The command that takes one entry out of a variable: the file itself, or the folder it lies in."""
    entries = (preload_entries if variable == "LD_PRELOAD" else search_entries)(value)
    kept = [entry for entry in entries if path is None or not _leads_to(entry, Path(path), directory)]
    rest = list(filter(None, kept))
    if path is None or not rest or len(kept) == len(entries):
        return f"unset {variable}"
    return f"export {variable}={shlex.quote(':'.join(rest))}"


def _leads_to(entry: str, path: Path, directory: Path) -> bool:
    folder = path.parents[2] if path.parent.parent.name == "glibc-hwcaps" else path.parent
    # A library that is preloaded by its name is looked for.
    return entry == path.name or os.path.abspath(directory / entry) in (os.path.abspath(path), os.path.abspath(folder))


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
