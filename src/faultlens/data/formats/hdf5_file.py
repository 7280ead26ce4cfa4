"""HDF5: can every dataset be read, and is every number in it finite? Also weights that Keras saved (`.h5`).

libhdf5 can die of a damaged file, or never come back. So everything that it is about to touch is announced first."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import Any

from faultlens.data.formats.base import Format
from faultlens.data.formats.hdf5_values import check_values
from faultlens.data.formats.members import escapes
from faultlens.data.formats.numpy_array import ROW
from faultlens.data.formats.pairs import check_pairs
from faultlens.data.formats.reading import SourceFile, Spot
from faultlens.data.groups import group_of
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.model_files.hdf5 import SIGNATURE, damage
from faultlens.records.scan import Kind, Piece
from faultlens.text.file_names import to_text

MAX_OBJECTS = 1_000_000
MAX_PATH = 4096  # characters
MAX_ATTRIBUTES = 10_000  # of one object
MAX_ALIKE = 1000  # datasets that are compared with those of other files
CONTENTS = "the list of its contents"


class Hdf5File(Format):
    name = "HDF5"
    suffixes = (".h5", ".hdf5", ".hdf", ".he5")
    needs = ("h5py",)

    def begins(self, head: bytes) -> bool:
        return head.startswith(SIGNATURE)

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        size = piece.identity.size
        if what := damage(source.read, size):
            look.flaw(_kind(what), f"it {what}")
            return
        os.environ.setdefault("HDF5_PLUGIN_PRELOAD", "::")  # no code is loaded because a file asks for it
        import h5py

        for _ in range(h5py.h5pl.size()):  # the same, where h5py was there before
            h5py.h5pl.remove(0)
        file = SourceFile(source, size)
        if not look.at(CONTENTS):
            return
        try:
            with h5py.File(file, "r") as opened:
                _check_objects(opened, look)
        except MemoryError:
            raise
        except Exception as error:
            file.raise_failure()
            look.flaw("structure", f"it cannot be opened: {_words(error)}")


def _check_objects(root: Any, look: Look) -> None:
    """Every group and dataset once. What one of them is damaged by does not keep others from being read."""
    import h5py

    seen: set[int] = set()
    pending = [("/", root.ref)]  # an open group takes two kilobytes
    while pending and len(seen) < MAX_OBJECTS:
        name, reference = pending.pop()
        group = root[reference]
        address = h5py.h5o.get_info(group.id).addr
        if address in seen:  # groups may contain each other
            continue
        seen.add(address)
        _check_attributes(name, group, look)
        lengths: dict[str, int] = {}
        for child, found in _children(name, group, look):
            path = posixpath.join(name, child)
            if isinstance(found, h5py.Group) and len(path) > MAX_PATH:
                look.flaw("unsupported", f"it lies {path.count('/')} groups deep: not looked into", member=path)
            elif isinstance(found, h5py.Group):
                pending.append((path, found.ref))
            elif isinstance(found, h5py.Dataset):
                address = h5py.h5o.get_info(found.id).addr
                if address not in seen:
                    seen.add(address)
                    _check_dataset(path, found, look, lengths)
        check_pairs(lengths, look, "" if name == "/" else f"{name}/")
    if pending:
        look.flaw("unsupported", f"it has more than {MAX_OBJECTS:,} groups and datasets: the others were not looked at")


def _children(name: str, group: Any, look: Look) -> Iterator[tuple[str, Any]]:
    """What hard links lead to, with its name as text. Links to elsewhere in the file lead to nothing new, those out of
    it are not followed."""
    import h5py

    if not look.at(name):
        return
    try:
        if len(group) > MAX_OBJECTS:
            look.flaw("unsupported", f"it has {len(group):,} members: not looked into", member=name)
            return
        names = list(group)
    except Exception as error:
        look.flaw("structure", f"its contents cannot be listed: {_words(error)}", member=name)
        return
    for child in names:
        text = to_text(os.fsdecode(child))  # h5py gives bytes where a name is not UTF-8
        path = posixpath.join(name, text)
        if not look.at(path):
            continue
        try:
            links, raw = group.id.links, os.fsencode(child)  # h5py's own way in takes no such names
            kind = links.get_info(raw).type
            if kind == h5py.h5l.TYPE_EXTERNAL:
                _tell_external(os.fsdecode(links.get_val(raw)[0]), "it is a link to another file", look, path)
            elif kind != h5py.h5l.TYPE_SOFT:
                yield text, group[child]
        except Exception as error:
            look.flaw("structure", f"it cannot be opened: {_words(error)}", member=path)


def _check_dataset(path: str, dataset: Any, look: Look, lengths: dict[str, int]) -> None:
    if not look.at(path):
        return
    look.records += 1
    try:
        external = dataset.external
        if external:
            _tell_external(str(external[0][0]), "its values lie in another file", look, path)
            return
        if dataset.is_virtual:
            look.flaw("unsupported", "it is put together from other datasets, which are not looked for", member=path)
            return
        if dataset.shape:
            lengths[posixpath.basename(path)] = int(dataset.shape[0])
        if look.records <= MAX_ALIKE:
            # Under its full name: numbered neighbours need not be alike (variables of an optimizer are not).
            group = f"{group_of(look.piece.path)} {path}"
            look.trait("dtype", str(dataset.dtype), member=path, group=group, share=0.5)
            if dataset.shape:
                look.trait(ROW, str(dataset.shape[1:]), member=path, group=group, share=0.9)
        check_values(dataset, look, Spot(member=path))
        _check_attributes(path, dataset, look)
    except MemoryError:
        raise
    except Exception as error:
        _tell_unreadable(error, bool(dataset.fletcher32), look, path)


def _check_attributes(path: str, found: Any, look: Look) -> None:
    """Keras keeps the configuration of a model in them."""
    try:
        for number, name in enumerate(found.attrs):
            if number >= MAX_ATTRIBUTES:
                look.unchecked("some attributes in HDF5 files", f"one object has more than {MAX_ATTRIBUTES:,}")
                break
            found.attrs[name]
    except Exception as error:
        if not _is_unknown_type(error):
            look.flaw("structure", f"its attributes cannot be read: {_words(error)}", member=path)


def _tell_external(target: str, what: str, look: Look, path: str) -> None:
    outside = escapes(target)
    where = "outside of its folder" if outside else "beside it"
    look.flaw("hostile", f"{what} {where}: not followed", member=path, severity="error" if outside else "warning")


def _is_unknown_type(error: Exception) -> bool:
    """Types that h5py has no name for are no damage."""
    return isinstance(error, (TypeError, NotImplementedError))


def _kind(what: str) -> Kind:
    if what.startswith("is empty"):
        return "empty"
    if what.startswith(("ends", "begins with zeros", "has a header without", "has no list")):
        return "truncated"
    return "magic" if "no signature" in what else "structure"


def _tell_unreadable(error: Exception, with_checksums: bool, look: Look, path: str) -> None:
    words = _words(error)
    if with_checksums and "filter returned failure" in words:
        look.flaw("checksum", "the checksum of its data does not fit", member=path)
    elif "required filter" in words or _is_unknown_type(error):
        look.flaw("unsupported", f"it cannot be read: {words}", member=path)
    else:
        look.flaw("structure", f"it cannot be read: {words}", member=path)


def _words(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
