"""Which saves of one model there are: the current one under its own name, and those that were kept before it.

Beside `model.keras` lies a folder `.faultlens/model.keras`. It holds a manifest for each generation (`00000007.json`),
and earlier generations themselves (`00000007.keras`). A checkpoint keeps all its generations under their own names, as
TensorFlow does: `ckpt-7.index`, `ckpt-7.data-00000-of-00001`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faultlens.model_files import checkpoint, reader
from faultlens.model_files.manifest import Format, Manifest, differences, looks_like, read_manifest
from faultlens.model_files.naming import misnamed
from faultlens.model_files.record import Damage

FOLDER = ".faultlens"
UNFINISHED = "unfinished-"  # how the names begin under which a save is written
LOCK = "lock"
_NUMBER = re.compile(r"(\d{8})(?:\.|$)")


@dataclass(frozen=True)
class Generation:
    """One save that is there, whole or not."""

    path: Path  # what is loaded: a file, a folder, or the prefix of a checkpoint
    number: int | None = None  # None: something else than `faultlens.save` wrote it
    manifest: Manifest | None = field(default=None, repr=False)
    current: bool = False  # it bears the name that it was saved to

    @property
    def time(self) -> float:
        """When it was saved, in seconds since 1970."""
        if self.manifest is not None:
            return self.manifest.time
        try:
            return self.path.stat().st_mtime
        except OSError:
            return 0.0

    def damages(self, deep: bool = True) -> list[Damage]:
        """Why it cannot be trusted; empty for a save that is whole. Raises OSError where it may not be read."""
        if self.manifest is not None:
            return differences(self.manifest, self.path, deep)
        saved = reader.read(self.path, deep)
        if saved is None:
            return [Damage(self.path, "is not a saved model")]
        wrong = misnamed(saved)
        return [*saved.damages, *([Damage(self.path, wrong.what)] if wrong else ())]


def folder_of(target: Path) -> Path:
    return target.parent / FOLDER / target.name


def entries_of(folder: Path) -> list[Path]:
    """What is kept there, as far as this user may see it: of a model that is open to all, the folder need not be."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def suffix_of(target: Path) -> str:
    """Keras looks at the end of a name."""
    known = (".weights.h5", ".keras", ".hdf5", ".h5")
    return next((suffix for suffix in known if target.name.endswith(suffix)), "")


def generations(target: Path) -> list[Generation]:
    """The newest first."""
    manifests = dict(_manifests(folder_of(target)))
    if is_checkpoint(target, manifests):
        return _checkpoints(target, manifests)
    kept = dict(_kept(target))
    found = []
    if target.exists():
        number = _number_of(target, manifests)
        found.append(Generation(target, number, manifests.get(number) if number else None, current=True))
        if number is not None:
            kept.pop(number, None)  # a save that ended between two steps: one file under two names
    found += [Generation(kept[number], number, manifests.get(number)) for number in sorted(kept, reverse=True)]
    return found


def newest_whole(target: Path) -> tuple[Generation | None, list[tuple[Generation, list[Damage]]]]:
    """The newest save that is as it was written, and those before which it had to be preferred."""
    passed_over: list[tuple[Generation, list[Damage]]] = []
    for generation in generations(target):
        damages = generation.damages()
        if not damages:
            return generation, passed_over
        passed_over.append((generation, damages))
    return None, passed_over


def targets_in(folder: Path) -> list[Path]:
    """What has been saved in a folder through `faultlens.save`."""
    try:
        names = sorted(entry.name for entry in (folder / FOLDER).iterdir() if entry.is_dir())
    except OSError:
        return []
    return [folder / name for name in names]


def is_checkpoint(target: Path, manifests: dict[int, Manifest] | None = None) -> bool:
    formats: set[Format] = {manifest.format for manifest in (manifests or dict(_manifests(folder_of(target)))).values()}
    return "checkpoint" in formats or not (formats or target.exists() or next(_numbered(target), None) is None)


def next_number(target: Path) -> int:
    """One that nothing of this name has ever borne, as far as can be seen."""
    names = [entry.name for entry in entries_of(folder_of(target))]
    numbers = [int(match[1]) for match in map(_NUMBER.match, names) if match]
    return max([*numbers, *(number for number, _ in _numbered(target))], default=0) + 1


def _manifests(folder: Path) -> Iterator[tuple[int, Manifest]]:
    for path in entries_of(folder):
        manifest = read_manifest(path) if path.suffix == ".json" else None
        if manifest is not None and path.name == f"{manifest.generation:08d}.json":
            yield manifest.generation, manifest


def _kept(target: Path) -> Iterator[tuple[int, Path]]:
    suffix = suffix_of(target)
    for path in entries_of(folder_of(target)):
        if re.fullmatch(r"\d{8}" + re.escape(suffix), path.name):
            yield int(path.name[:8]), path


def _number_of(target: Path, manifests: dict[int, Manifest]) -> int | None:
    """Which generation bears the name. A copied file has another time, and is known by its content."""
    newest_first = sorted(manifests, reverse=True)
    for number in newest_first:
        if looks_like(manifests[number], target):
            return number
    of_this_size = [number for number in newest_first if not differences(manifests[number], target, deep=False)]
    for number in of_this_size:
        if not differences(manifests[number], target):
            return number
    # HDF5 has no checksums. Keras' own files of the same weights have another size: this is ours, and was changed.
    return next((number for number in of_this_size if _is_own_hdf5(manifests[number])), None)


def _is_own_hdf5(manifest: Manifest) -> bool:
    return manifest.format == "weights" and bool(manifest.variables)


def _checkpoints(target: Path, manifests: dict[int, Manifest]) -> list[Generation]:
    found = dict(_numbered(target))
    current = checkpoint.prefix_of(target.parent)
    return [
        Generation(found[number], number, manifests.get(number), current=found[number] == current)
        for number in sorted(found, reverse=True)
    ]


def _numbered(target: Path) -> Iterator[tuple[int, Path]]:
    """The checkpoints that begin with this prefix."""
    pattern = re.compile(re.escape(target.name) + r"-(\d{1,9})\.index")
    try:
        names = [entry.name for entry in target.parent.iterdir()]
    except OSError:
        return
    for match in filter(None, map(pattern.fullmatch, names)):
        yield int(match[1]), target.with_name(match[0].removesuffix(".index"))
