"""What the user's code was doing when it failed, and on which line: for the sentence that tells of it."""

from __future__ import annotations

import contextlib
import os
import sysconfig
import traceback
from collections.abc import Iterator

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")
INSTALLED = ("/site-packages/", "/dist-packages/", "/__autograph_generated_file")


@contextlib.contextmanager
def during(what: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if not hasattr(error, "during"):
            error.during = what  # type: ignore[attr-defined]
        raise


def what_failed(error: BaseException) -> str:
    return str(getattr(error, "during", ""))


def line_of(error: BaseException) -> str:
    """The innermost of the user's own: "train.py, line 12"."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = os.path.abspath(frame.filename)
        own = not path.startswith((HERE, STANDARD)) and not any(part in path for part in INSTALLED)
        if own and os.path.isfile(path):
            return f"{os.path.basename(path)}, line {frame.lineno}"
    return ""
