"""Which format a path is in, and what its reader says. The content decides, and where it is damaged the name."""

from __future__ import annotations

from pathlib import Path

from faultlens.model_files import checkpoint, hdf5, keras_archive, pickled, saved_model, tflite
from faultlens.model_files.record import Saved
from faultlens.model_files.regular import opened

_ARCHIVES, _HDF5, _LITE = (".keras",), (".h5", ".hdf5", ".hdf", ".he5"), (".tflite", ".lite")


def read(path: Path, deep: bool = False) -> Saved | None:
    """None where there is no saved model in a format that is known. Raises OSError where it may not be read."""
    if path.is_dir():
        if any((path / name).exists() for name in (saved_model.GRAPH, saved_model.GRAPH_AS_TEXT, "variables")):
            return saved_model.read(path, deep)
    else:
        if path.name == saved_model.GRAPH:
            return saved_model.read(path.parent, deep)
        name = path.name.lower()
        begin = _begin(path)
        if begin[:2] == b"PK" or (name.endswith(_ARCHIVES) and begin != hdf5.SIGNATURE):
            return keras_archive.read(path, deep)
        if name.endswith(_HDF5) or begin == hdf5.SIGNATURE:
            return hdf5.read(path)
        if name.endswith(_LITE) or begin[4:] == tflite.IDENTIFIER:
            return tflite.read(path)
        if pickled.is_pickle(begin, name):
            return pickled.read(path)
    prefix = checkpoint.prefix_of(path)
    return checkpoint.read(path, prefix, deep) if prefix is not None else None


def _begin(path: Path) -> bytes:
    """A checkpoint is named by a prefix that is no file."""
    try:
        with opened(path) as file:
            return file.read(8)
    except FileNotFoundError:
        return b""
