"""Which format a file is in. A format is one class in a module of this folder; this list is all that knows of it.

Other packages add theirs as entry points of the group "faultlens.formats"."""

from __future__ import annotations

import importlib
import re
from functools import lru_cache
from typing import NamedTuple

from faultlens.data.formats.base import HEAD, Format
from faultlens.plugins import plugged

GROUP = "faultlens.formats"
# In this order they are asked.
_CLASSES = (
    "tfrecord:TFRecord",
    "tfrecord:GzipTFRecord",
    "tfrecord:ZlibTFRecord",
    "image_file:ImageFile",
    "numpy_file:NumpyFile",
    "numpy_file:NumpyArchive",
    "hdf5_file:Hdf5File",
    "parquet_file:ParquetFile",
    "arrow_file:ArrowFile",
    "csv_file:CsvFile",
    "tar_file:TarFile",
    "tar_file:GzipTarFile",
    "saved_model:SavedModel",
    "zip_file:ZipFile",
)


class Known(NamedTuple):
    format: Format
    misnamed: str = ""  # the format that its name claims, and its content denies


@lru_cache(maxsize=1)
def formats() -> tuple[Format, ...]:
    found = []
    for each in _CLASSES:
        module, _, name = each.partition(":")
        found.append(getattr(importlib.import_module(f"{__name__}.{module}"), name)())
    return (*found, *plugged(GROUP, Format))  # type: ignore[type-abstract]


def named(name: str) -> Format:
    return next(each for each in formats() if each.name == name)


def format_of(path: str, head: bytes) -> Known | None:
    """By its content if that is plain, otherwise by its name. None: it is no file that is looked at."""
    lower = path.lower()
    claimed = [each for each in formats() if lower.endswith(each.suffixes)]
    for each in claimed:
        if each.begins(head):
            return Known(each)
    for each in formats():
        if each.begins(head) and not each.by_name_only:
            same = any(type(each).__module__ == type(other).__module__ for other in claimed)
            return Known(each, claimed[0].name if claimed and not same else "")
    return Known(claimed[0]) if claimed else _by_pattern(lower)


def _by_pattern(lower: str) -> Known | None:
    """Shards of TFRecord files often have no other name than "train-00003-of-00010"."""
    return Known(named("TFRecord")) if re.search(r"-\d{5}-of-\d{5}$", lower) else None


__all__ = ["HEAD", "Format", "Known", "format_of", "formats", "named"]
