"""The installed package whose code died, and what somebody can do who only calls it."""

from __future__ import annotations

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.native_code import on_started_thread
from faultlens.inspection.frames import is_main, package_of
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Crash, Frame
from faultlens.records.diagnosis import Fix

# Packages that are installed under another name than they are imported by.
_DISTRIBUTIONS = {
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "google": ("protobuf",),
    "grpc": ("grpcio",),
    "PIL": ("pillow",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "yaml": ("PyYAML",),
}


def distribution(crash: Crash, frame: Frame) -> tuple[str, str | None]:
    """The name under which a package is installed, and its version where that is known."""
    package = package_of(frame)
    wanted = {_plain(name) for name in (package, *_DISTRIBUTIONS.get(package, ()))}
    python = crash.program.python
    for installed in python.packages if python else ():
        if _plain(installed.name) in wanted:
            return installed.name, installed.version
    return package, None


def fixes_for_caller(case: Case, frame: Frame) -> tuple[Fix, ...]:
    """For whoever calls the package: its code is not theirs to mend."""
    name, version = distribution(case.crash, frame)
    where = f" at {case.location.file.rpartition('/')[2]}:{case.location.line}" if case.location else ""
    one_by_one = Fix(
        title=f"call {name} from one thread at a time",
        detail=f"a threading.Lock around the calls{where}, or a process for each worker",
        grade="safe",
    )
    known = f" ({version} is installed)" if version else ""
    update = Fix(
        title=f"update {name}{known}, or report the crash to its authors",
        detail=f"python -m pip install --upgrade {name}; the native stack in this report is what they need",
    )
    check = Fix(
        title=f"check what is handed to {name}{where}",
        detail="files that are closed or damaged, arrays of another dtype, shape or layout, objects that are gone",
    )
    return (one_by_one, update) if _on_several_threads(case, frame) else (update, check)


def _on_several_threads(case: Case, frame: Frame) -> bool:
    crashed, package = case.crash.crashed_thread, package_of(frame)
    if on_started_thread(case):
        return True
    if crashed is not None and not is_main(crashed, case.crash) and any(f.kind == "python" for f in crashed.frames):
        return True
    others = (each for thread in case.crash.threads if not thread.crashed for each in thread.frames)
    return any(owner_of(each) == "package" and package_of(each) == package for each in others)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
