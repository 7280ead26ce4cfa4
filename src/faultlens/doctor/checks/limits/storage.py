from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.doctor.raising import raise_rlimit
from faultlens.knowledge.needs import SAVED, SAVED_FILES, SHARED_BY_ONE_WORKER, SHARED_BY_TWO_WORKERS
from faultlens.records.crash import Limit
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding, Repair
from faultlens.system.storage import Folder, look_at, would_be
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.sizes import GIB, KIB, in_words

SHM = "/dev/shm"
# Where Python's tempfile looks, in this order, and in the working folder after these.
TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")
TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/usr/tmp")


class Storage(Check):
    """
    Room in the working folder, in the folders that the program saves to, for temporary files, and in `/dev/shm`.

    Importing TensorFlow asks Python for a folder for temporary files, and fails where none can be written to. A model
    of a million parameters takes 11.4 MiB with the state of Adam. On a full disk most writes raise, but `np.memmap`
    dies by SIGBUS and HDF5 by SIGSEGV at exit. TensorFlow does not use `/dev/shm`; programs that share arrays between
    processes do, and die by SIGBUS when it is full: a torch DataLoader with batches of 32 pictures (224 x 224, float32)
    died in 48 MiB with one worker and lived in 56; with two it died in 80 and lived in 96. Containers have 64 MiB
    unless told otherwise. Quotas cannot be seen. Into a folder that is not there, checkpoints and SavedModels are saved
    all the same, `.keras` and `.h5` files are not.

    `ulimit -f` (RLIMIT_FSIZE) cuts every file, in any folder: Python ignores the signal (SIGXFSZ), so saving raises.
    Measured with 8 MB: OSError "File too large" (.keras, NumPy), RuntimeError (HDF5), OutOfRangeError (checkpoints,
    SavedModel, TFRecord).
    """

    name = "storage"
    looks_at = "/dev/shm, disk space and inodes of the working, temporary and save folders, ulimit -f"
    position = 78
    causes = ("disk-full", "shared-memory-full")

    def examine(self, target: TargetEnvironment) -> Examination:
        return self.judge(
            shared=look_at(SHM),
            working=look_at(target.directory),
            temporary=[look_at(path) for path in _temporary(target.variables)],
            saving=[would_be(target.directory / path) for path in target.options.folders],
            may_mount=target.allowance.may_mount,
            file_size=target.limits.get("RLIMIT_FSIZE"),
        )

    def judge(
        self,
        shared: Folder,
        working: Folder,
        temporary: Sequence[Folder],
        saving: Sequence[Folder] = (),
        may_mount: bool = False,
        file_size: Limit | None = None,
    ) -> Examination:
        usable = next((folder for folder in (*temporary, working) if _is_usable(folder)), None)
        findings = [
            *self._saving(saving),
            *self._temporary(temporary, usable),
            *self._shared(shared, may_mount),
            *self._file_size(file_size),
        ]
        if _is_usable(working, files=0) and not working.has_room(SAVED, SAVED_FILES) and working not in saving:
            title = f"the working folder {_has(working)}: a small model that is saved there takes {in_words(SAVED)}"
            findings.append(self.warning(title, _left(working), _make_room(working), causes=("disk-full",)))
        places = [f"{_short(working)} in the working folder", f"{_short(shared)} in {SHM}"]
        if usable is not None and usable is not working:
            places.insert(1, f"{_short(usable)} in {usable.path}")
        summary = "free: " + ", ".join(places)
        return self.judged(findings, summary, _details([working, *saving, *temporary, shared], shared, file_size))

    def _saving(self, folders: Iterable[Folder]) -> Iterator[Finding]:
        for folder in folders:
            if folder.read_only or not folder.writable:
                why = "is on a read-only file system" if folder.read_only else "may not be written to"
                why = why if folder.exists else "is not there, and cannot be made"
                writable = fix(
                    "save somewhere else, or make it writable", f"ls -ld {shlex.quote(folder.path)}", safe=False
                )
                yield self.error(f"the save folder {folder.path} {why}", _left(folder), [writable], causes=())
            elif not folder.has_room(SAVED, SAVED_FILES):
                title = f"the save folder {folder.path} {_has(folder)}: a small model takes {in_words(SAVED)}"
                yield self.error(title, _left(folder), _make_room(folder), causes=("disk-full",))
            elif not folder.exists:
                make = ("mkdir", "-p", folder.path)
                yield self.warning(
                    f"the save folder {folder.path} is not there: .keras and .h5 files cannot be saved to it",
                    [("FileNotFoundError, unless the program makes the folder first", "measured"), *_left(folder)],
                    [fix("make it", shlex.join(make))],
                    causes=(),
                    repair=Repair(commands=(make,), undo=(("rmdir", folder.path),)),
                )

    def _temporary(self, folders: Sequence[Folder], usable: Folder | None) -> Iterator[Finding]:
        if usable is not None:
            return
        yield self.error(
            "no folder for temporary files can be written to: importing TensorFlow fails",
            [(f"{folder.path} {_trouble(folder)}", "statvfs") for folder in folders],
            [
                fix("name a folder that can be written to", 'mkdir -p "$HOME/tmp" && export TMPDIR="$HOME/tmp"'),
                fix("see what fills it", "df -h /tmp; df -i /tmp"),
            ],
            causes=("disk-full",),
        )

    def _shared(self, shared: Folder, may_mount: bool) -> Iterator[Finding]:
        if not shared.exists or not shared.writable or shared.read_only:
            why = "is missing" if not shared.exists else "cannot be written to"
            title = f"{SHM} {why}: locks and queues of multiprocessing cannot be made"
            yield self.warning(title, _left(shared), [_container("1g"), fix("look at it", f"ls -ld {SHM}")], causes=())
        elif shared.free is not None and shared.free < SHARED_BY_ONE_WORKER:
            size = f"{in_words(shared.free)} free"
            full = f" of {in_words(shared.size)}" if shared.size else ""
            title = f"{SHM} has {size}{full}: programs that share arrays between processes die by SIGBUS"
            worker = f"one worker process with batches of 32 pictures takes {in_words(SHARED_BY_ONE_WORKER)}"
            evidence = [*_left(shared), (worker, "measured")]
            yield self.warning(
                title,
                evidence,
                [fix("make it larger", f"sudo mount -o remount,size=1G {SHM}"), _container("1g")],
                causes=("shared-memory-full",),
                repair=_remount(shared) if may_mount and shared.size else None,
            )

    def _file_size(self, limit: Limit | None) -> Iterator[Finding]:
        if limit is None or limit.soft is None or limit.soft >= SAVED:
            return
        has = f"RLIMIT_FSIZE (ulimit -f) is {in_words(limit.soft)}"
        yield self.warning(
            f"{has}: saving a model of a million parameters, {in_words(SAVED)}, fails",
            [(f"{has}: no file may be larger, in any folder", "getrlimit")],
            [raise_rlimit(limit, "f", "fsize", None, KIB)],
            causes=(),
        )


def _temporary(variables: Mapping[str, str]) -> Iterator[Path]:
    for path in [*(variables.get(name) for name in TEMPORARY_VARIABLES), *TEMPORARY_FOLDERS]:
        if path:
            yield Path(path)


def _is_usable(folder: Folder, files: int = 1) -> bool:
    """Python tries to write a short file."""
    return folder.exists and folder.writable and not folder.read_only and folder.has_room(min(files, 1), files)


def _remount(shared: Folder) -> Repair:
    size = max(GIB, (shared.size or 0) * 2)
    return Repair(
        commands=(("mount", "-o", f"remount,size={size}", SHM),),
        undo=(("mount", "-o", f"remount,size={shared.size}", SHM),),
    )


def _container(size: str) -> Fix:
    return fix("give the container a larger one", f"docker run --shm-size={size} …")


def _make_room(folder: Folder) -> list[Fix]:
    option = "--inodes" if folder.free is None or folder.free >= SAVED else "-h"
    return [
        fix(
            "make room: see what fills it",
            f"du -x {option} -d 1 {shlex.quote(folder.path)} | sort -h | tail",
            safe=False,
        )
    ]


def _has(folder: Folder) -> str:
    if folder.free is not None and folder.free < SAVED:
        return f"has {in_words(folder.free)} left"
    return f"has no room for more files ({folder.files_free} inodes left)"


def _trouble(folder: Folder) -> str:
    if not folder.exists:
        return "is missing"
    if folder.read_only:
        return "is on a read-only file system"
    return "may not be written to" if not folder.writable else "is full"


def _left(folder: Folder) -> list[tuple[str, str]]:
    inodes = f", {folder.files_free:,} inodes" if folder.files_free is not None else ""
    size = "unknown space" if folder.free is None else in_words(folder.free)
    return [(f"{folder.path}: {size} free{inodes} ({folder.file_system or 'unknown file system'})", "statvfs")]


def _short(folder: Folder) -> str:
    return in_words(folder.free) if folder.free is not None else "unknown"


def _details(folders: Iterable[Folder], shared: Folder, file_size: Limit | None) -> Iterator[str]:
    for folder in {folder.path: folder for folder in folders}.values():
        if not folder.exists:
            continue
        marks = [
            *(["on the network"] if folder.is_network else []),
            *(["read-only"] if folder.read_only else [] if folder.writable else ["not writable"]),
        ]
        yield "; ".join([_left(folder)[0][0], *marks])
    if shared.free is not None and SHARED_BY_ONE_WORKER <= shared.free < SHARED_BY_TWO_WORKERS:
        yield f"two worker processes that share batches of 32 pictures take {in_words(SHARED_BY_TWO_WORKERS)} of {SHM}"
    if file_size is not None and file_size.soft is not None:
        yield f"RLIMIT_FSIZE: no file may be larger than {in_words(file_size.soft)}"
