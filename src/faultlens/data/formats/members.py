"""What is in a member of an archive, and is it in order? Arrays, images, JSON, class numbers, archives."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable
from functools import lru_cache

from faultlens.data.formats.numpy_array import check_array
from faultlens.data.formats.reading import Read, Spot
from faultlens.data.groups import group_of
from faultlens.data.look import Look
from faultlens.text.sizes import MIB

WHOLE = 64 * MIB  # members up to here are looked at in one piece
MAX_JSON = 16 * MIB
IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")
ARRAY, JSON = ".npy", ".json"
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".npz")
_DRIVE = re.compile(r"^[A-Za-z]:")

CheckArchive = Callable[[bytes, Look, Spot], None]


def escapes(name: str, folder: str = "") -> bool:
    """Whether a member, or a link in `folder`, would lead out of the place where an archive is unpacked."""
    name = name.replace("\\", "/")
    if name.startswith("/") or _DRIVE.match(name):
        return True
    path = posixpath.normpath(posixpath.join(folder, name))
    return path == ".." or path.startswith("../")


def is_companion(name: str) -> bool:
    """What macOS puts beside files, under names like theirs."""
    return posixpath.basename(name).startswith("._") or name.startswith("__MACOSX/")


def check_member(read: Read, size: int, look: Look, spot: Spot, check_archive: CheckArchive) -> None:
    """Reads as much as it needs to. `check_archive` is told of an archive in the archive."""
    name = spot.member.lower()
    if is_companion(spot.member):
        return
    archive = group_of(look.piece.path)
    if name.endswith(ARRAY):
        # Arrays in one `.npz` are called arr_0, arr_1 and need not be alike; in other archives each is a sample.
        alike = name if ".npz" in f"{archive} {name}".lower() else group_of(name)
        check_array(read, look, spot, f"{archive} {alike}")
        return
    if size > WHOLE and name.endswith((*ARCHIVES, *IMAGES, JSON)):
        look.unchecked("what is in large members of archives", f"they have more than {WHOLE // MIB} MiB")
    if other := _of_other_format(name):
        look.unchecked(f"what is in {other} files in archives", "they are looked into only where they are unpacked")
    if size > WHOLE:
        return
    data = read(size)
    if len(data) < size:
        return  # told by whoever unpacks it
    if name.endswith(ARCHIVES):
        check_archive(data, look, spot)
    elif is_image(name, data):
        check_image(data, look, spot, f"{archive} {posixpath.splitext(name)[1]}")
    elif name.endswith(JSON) and size > MAX_JSON:
        look.unchecked("JSON in archives", f"it has more than {MAX_JSON // MIB} MiB")
    elif name.endswith(JSON) and not _is_json(data):
        look.flaw("structure", "it is no JSON", **spot.keywords())


def _of_other_format(name: str) -> str:
    """The format that a file of this name would be looked at in, where a member is not."""
    return next((format for suffixes, format in _other_formats() if name.endswith(suffixes)), "")


@lru_cache(maxsize=1)
def _other_formats() -> list[tuple[tuple[str, ...], str]]:
    from faultlens.data.formats import formats  # which know of archives

    looked_into = (*ARCHIVES, *IMAGES, ARRAY)
    return [(each.suffixes, each.name) for each in formats() if not set(looked_into).intersection(each.suffixes)]


def check_class(data: bytes, look: Look, spot: Spot) -> None:
    """The number of a class, as webdataset writes it."""
    try:
        int(data)
    except ValueError:
        look.flaw("label", "it is not the number of a class", **spot.keywords())


def is_image(name: str, data: bytes) -> bool:
    from faultlens.data.images import kind_of

    return name.lower().endswith(IMAGES) or bool(kind_of(data[:64]))


def check_image(data: bytes, look: Look, spot: Spot, group: str = "") -> None:
    from faultlens.data.images.checking import check_image as check

    check(data, look, group=group, **spot.keywords())


def _is_json(data: bytes) -> bool:
    """One value, or one per line."""
    try:
        json.loads(data)
        return True
    except RecursionError:
        return True  # deeper than can be said anything about
    except ValueError:
        pass
    try:
        lines = [line for line in data.splitlines() if line.strip()]
        for line in lines:
            json.loads(line)
    except (ValueError, RecursionError):
        return False
    return len(lines) > 1
