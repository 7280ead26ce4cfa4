"""Writes the skeleton of a new op: a whole one that works, under the name that was asked for."""

from __future__ import annotations

import re
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.target_env.target import TargetEnvironment

FILES = Path(__file__).with_name("files")
OWN = "scaled_rows", "ScaledRows", "SCALED_ROWS"  # the op that the files are about
LONGEST = 60
KEYWORDS = frozenset(
    "and auto bool break case catch char class const continue default delete do double else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new not operator or private protected "
    "public register return short signed sizeof static struct switch template this throw true try typedef typename "
    "union unsigned using virtual void volatile while xor std tensorflow "
    "as assert async await def del elif except finally from global import in is lambda none nonlocal pass raise with "
    "yield op test".split()
)


def names_of(name: str) -> tuple[str, str, str]:
    """fast_norm, FastNorm and FAST_NORM, from any of the first two or fast-norm."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).replace("-", "_").lower()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", spaced) or len(spaced) > LONGEST:
        raise FaultlensError(f"{name!r} is not a name for an op.", "Use letters, digits and _, as in fast_norm.")
    if spaced in KEYWORDS:
        raise FaultlensError(f"{spaced} means something else to C++ or Python.", "Choose a longer name.")
    return spaced, "".join(part.capitalize() for part in spaced.split("_")), spaced.upper()


def check_name_is_free(op: str, target: TargetEnvironment) -> None:
    """A library that registers an op of TensorFlow's own cannot be loaded."""
    if target.tensorflow is None:
        return
    for path in sorted(target.tensorflow.folder.glob("python/ops/gen_*.py")):
        if f'b"{op}"' in path.read_text(errors="replace"):
            raise FaultlensError(f"TensorFlow has an op {op} itself.", "Choose another name.")


def write(name: str, folder: Path) -> list[Path]:
    """Writes all files into `folder`, which may exist if nothing of ours is in it."""
    names = names_of(name)
    new = {folder / _renamed(file.name, names): file for file in sorted(FILES.iterdir()) if file.is_file()}
    if there := [path for path in new if path.exists()]:
        raise FaultlensError(f"{there[0]} is there already.", "Name another folder with --to; nothing was written.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, file in new.items():
            path.write_text(_renamed(file.read_text(), names))
    except OSError as error:
        raise FaultlensError(f"Cannot write to {folder}: {error.strerror}.", "Name another folder: --to.") from error
    return list(new)


def _renamed(text: str, names: tuple[str, str, str]) -> str:
    for old, new in zip(OWN, names, strict=True):
        text = text.replace(old, new)
    return text
