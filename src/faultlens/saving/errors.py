"""Why a save failed: one sentence, and what to do. The program goes on, and what was saved before is untouched."""

from __future__ import annotations

import errno
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.text.sizes import in_words


class SaveError(FaultlensError):
    """Nothing that was saved before is lost. `problem` and `advice` say why and what to try."""


def cannot_write(path: Path, error: OSError, needed: int = 0) -> SaveError:
    """What the operating system said, in words that fit a save."""
    size = f" of about {in_words(needed)}" if needed else ""
    where = path.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        full = "the disk is full" if error.errno == errno.ENOSPC else "the quota is used up"
        return SaveError(f"{path} was not saved: {full} ({where}).", f"Make room for a save{size}, or save elsewhere.")
    if error.errno == errno.EFBIG:
        return SaveError(f"{path} was not saved: files may not become so large (ulimit -f).", "Raise the limit.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return SaveError(
            f"{path} was not saved: {where} may not be written to.", "Change its permissions, or save elsewhere."
        )
    if error.errno == errno.EROFS:
        return SaveError(f"{path} was not saved: {where} is on a read-only file system.", "Save elsewhere.")
    if error.errno == errno.ENOENT:
        return SaveError(f"{path} was not saved: {where} is gone.", "Make the folder again, or save elsewhere.")
    if error.errno == errno.ENAMETOOLONG:
        return SaveError(
            f"{path.name[:40]}… was not saved: its name of {len(path.name)} characters is too long.",
            "Save under a shorter name.",
        )
    if error.errno in (errno.EIO, errno.ESTALE):
        return SaveError(
            f"{path} was not saved: the disk reports an error ({error.strerror}).",
            "Look at the kernel log (dmesg); save elsewhere.",
        )
    return SaveError(f"{path} was not saved: {error.strerror or error}.", "Save elsewhere.")
