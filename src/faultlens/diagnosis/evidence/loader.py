"""What the dynamic loader was made to load: preloaded libraries, search paths, copies of one library."""

from __future__ import annotations

import re
from collections import defaultdict

from faultlens.diagnosis.evidence.case import Case
from faultlens.inspection.owners import is_runtime
from faultlens.records.crash import Crash
from faultlens.system.loader_variables import is_ours, preload_entries, search_entries

_VERSION = re.compile(r"\.so(?:\.[\d.]+)?$|\.cpython-[^.]*\.so$|\.abi3\.so$")
# Preloaded on purpose, and built for that.
_MEANT_TO_BE_PRELOADED = re.compile(
    r"malloc|asan|tsan|ubsan|lsan|scudo|snoopy|libeatmydata|libSegFault|faketime|libhugetlb|nccl|profiler|cupti", re.I
)
_ALLOCATOR = re.compile(r"/lib(?:tcmalloc|jemalloc|mimalloc|tbbmalloc|hoard|scudo|snmalloc|rpmalloc)[^/]*\.so", re.I)
_OWN_ALLOCATOR = re.compile(r"alloc|malloc|pool|heap|arena", re.I)
_OPENMP = re.compile(r"/lib(?:omp\d*|iomp5|gomp|iompstubs5)(?:[-_.][^/]*)?\.so", re.I)
_SYSTEM_FOLDER = re.compile(r"^/(?:usr/)?(?:local/)?lib(?:64|32)?/")


def preloaded(crash: Crash) -> tuple[str, ...]:
    """Libraries that LD_PRELOAD forces in front of all others, without those that are made for it."""
    value = crash.program.environment.get("LD_PRELOAD", "")
    ignored = "cannot be preloaded" in (crash.output.stderr or "")
    paths = [path for path in preload_entries(value) if not is_ours(path) and not ignored]
    return tuple(path for path in paths if not _MEANT_TO_BE_PRELOADED.search(path) and not is_runtime(path))


def search_path(crash: Crash) -> tuple[str, ...]:
    return tuple(filter(None, search_entries(crash.program.environment.get("LD_LIBRARY_PATH", ""))))


def copies(crash: Crash) -> dict[str, tuple[str, ...]]:
    """Libraries of which several copies are loaded: soname without version -> paths."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for library in crash.libraries:
        name = short(library.path)
        if ".so" in name and not is_ours(name) and ".cpython-" not in name and ".abi3." not in name:
            found[_VERSION.sub("", name)][library.path] = None
    return {name: tuple(paths) for name, paths in found.items() if len(paths) > 1}


def taken_from_search_path(case: Case) -> str | None:
    """A loaded library that lies in a folder of LD_LIBRARY_PATH."""
    folders = tuple(f"{folder.rstrip('/')}/" for folder in search_path(case.crash) if not _SYSTEM_FOLDER.match(folder))
    return (
        next((library.path for library in case.crash.libraries if library.path.startswith(folders)), None)
        if folders
        else None
    )


def tensorflow_from_search_path(case: Case) -> bool:
    """TensorFlow's own libraries came from there, and not from its package."""
    folders = tuple(f"{folder.rstrip('/')}/" for folder in search_path(case.crash))
    return any(
        short(library.path).startswith("libtensorflow") and library.path.startswith(folders)
        for library in case.crash.libraries
        if folders
    )


def allocators(crash: Crash) -> tuple[str, ...]:
    """Allocators besides glibc's: known ones, and what is preloaded under a name that says so."""
    own = [path for path in preload_entries(crash.program.environment.get("LD_PRELOAD", "")) if not is_ours(path)]
    named = {path for path in own if _OWN_ALLOCATOR.search(short(path))}
    return tuple(
        library.path for library in crash.libraries if _ALLOCATOR.search(library.path) or library.path in named
    )


def openmp_runtimes(crash: Crash) -> tuple[str, ...]:
    return tuple(library.path for library in crash.libraries if _OPENMP.search(library.path))


def short(path: str) -> str:
    return path.rpartition("/")[2]
