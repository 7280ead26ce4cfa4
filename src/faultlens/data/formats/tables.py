"""What is wrong with the values of one column of a table? For Parquet and Arrow, batch by batch."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from faultlens.data.formats.reading import SourceFile, numbers_are
from faultlens.data.images import kind_of
from faultlens.data.images.checking import check_image
from faultlens.data.look import Look
from faultlens.records.scan import Kind

ENOUGH = 1000  # values without an image: it is no column of images
MAX_COLUMNS = 50_000  # of a file
MAX_SCHEMA = 200  # characters
AN_IMAGE, NO_IMAGE = "an image", "no image"


class Column:
    """Collects over all batches, which come in order. `name`: as it is told; of the parts of a struct, one each."""

    def __init__(self, name: str, look: Look, group: str) -> None:
        self._name, self._look, self._group = name, look, group
        self._bad = self._first_bad = 0
        self._images = self._others = 0

    def add(self, values: Any, start: int) -> None:
        """Rows of the column from this one on. Raises what pyarrow does where they cannot be understood."""
        values.validate(full=True)  # before anything follows what is in it
        for leaf, rows in leaves(values):
            if is_float(leaf.type):
                self._look_for_numbers(leaf, rows, start)
            elif is_binary(leaf.type):
                self._look_for_images(leaf, rows, start)
            elif is_nested(leaf.type):
                self._look.unchecked("NaN and infinity in some columns", "maps, unions and views are not taken apart")

    def tell(self) -> None:
        """When all have been seen."""
        if self._bad:
            told = numbers_are(self._bad)
            reason = f"{told} NaN or infinite, the first in row {self._first_bad:,}"
            self._look.flaw("not-finite", reason, record=self._first_bad, member=self._name)

    def _look_for_numbers(self, leaf: Any, rows: Any, start: int) -> None:
        import numpy

        values = (leaf.dictionary_decode() if hasattr(leaf, "dictionary") else leaf).to_numpy(zero_copy_only=False)
        bad = ~numpy.isfinite(values)
        if leaf.null_count:
            bad &= leaf.is_valid().to_numpy(zero_copy_only=False)
        count = int(numpy.count_nonzero(bad))
        if count and not self._bad:
            self._first_bad = start + _row(rows, int(numpy.argmax(bad)))
        self._bad += count

    def _look_for_images(self, leaf: Any, rows: Any, start: int) -> None:
        if self._others > ENOUGH and not self._images:
            return
        for index, value in _binaries(leaf):
            row, size = start + _row(rows, index), value.size
            if not _is_image(value):
                self._others += 1
                self._tell_contents(NO_IMAGE, row, size)
            elif self._images >= self._others:  # otherwise it begins so by chance
                self._images += 1
                self._tell_contents(AN_IMAGE, row, size)
                data = value.to_pybytes()
                check_image(data, self._look, record=row, size=size, member=self._name, group=self._group)

    def _tell_contents(self, value: str, row: int, size: int) -> None:
        self._look.trait(
            f"content of the column {self._name}",
            value,
            record=row,
            size=size,
            member=self._name,
            group=self._group,
            usual=AN_IMAGE,
            kind="structure",
        )


def leaves(values: Any, rows: Any = None) -> Iterator[tuple[Any, Any]]:
    """The plain values in lists and structs, and the row of each; None: they are the rows. Maps are left alone."""
    import pyarrow
    import pyarrow.compute

    kind = values.type
    if isinstance(values, pyarrow.ExtensionArray):
        yield from leaves(values.storage, rows)
    elif pyarrow.types.is_struct(kind):
        for field in values.flatten():
            yield from leaves(field, rows)
    elif pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind):
        parents = pyarrow.compute.list_parent_indices(values)
        yield from leaves(values.flatten(), parents if rows is None else rows.take(parents))
    else:
        yield values, rows


def images_in(values: Any, start: int) -> Iterator[tuple[int, bytes]]:
    """Row and contents of each value that begins like an image."""
    for leaf, rows in leaves(values):
        for index, value in _binaries(leaf) if is_binary(leaf.type) else ():
            if _is_image(value):
                yield start + _row(rows, index), value.to_pybytes()


def _binaries(leaf: Any) -> Iterator[tuple[int, Any]]:
    """Those that are there, as buffers: nothing is copied."""
    for index, value in enumerate(leaf):
        if value.is_valid:
            yield index, (value.value if hasattr(value, "dictionary") else value).as_buffer()


def _is_image(value: Any) -> bool:
    return kind_of(bytes(memoryview(value)[:64])) is not None


def is_float(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(_plain(kind)))


def is_binary(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_binary(_plain(kind)) or pyarrow.types.is_large_binary(_plain(kind)))


def is_nested(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_nested(_plain(kind)) or pyarrow.types.is_run_end_encoded(kind))


def _plain(kind: Any) -> Any:
    """Of values that stand in a dictionary, theirs."""
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _row(rows: Any, index: int) -> int:
    return index if rows is None else int(rows[index].as_py())


def tell_schema(columns: Iterable[tuple[str, str]], look: Look, group: str) -> None:
    """Files that belong together have the same columns, of the same types."""
    text = ", ".join(f"{name}: {kind}" for name, kind in columns)
    if len(text) > MAX_SCHEMA:
        text = f"{text[:MAX_SCHEMA]}… ({zlib.crc32(text.encode()):08x})"
    look.trait("schema", text, group=group, share=0.5)


def columns_to_check(count: int, look: Look) -> int:
    """How many of so many columns are looked at."""
    if count > MAX_COLUMNS:
        reason = f"it has {count:,} columns: what is in those behind the first {MAX_COLUMNS:,} was not looked at"
        look.flaw("unsupported", reason)
    return min(count, MAX_COLUMNS)


def tell_error(error: Exception, file: SourceFile, look: Look, record: int | None = None, member: str = "") -> None:
    """What pyarrow cannot read. Trouble of the disk is raised again: pyarrow says both in one way."""
    file.raise_failure()
    words = " ".join(str(error).split())[:200] or type(error).__name__
    kind: Kind = "structure"
    if isinstance(error, MemoryError):
        kind, words = "greedy", "it takes more memory than there is"
    elif isinstance(error, NotImplementedError):
        kind = "unsupported"
    elif "checksum" in words.lower():
        look.flaw("checksum", "the checksum of its data does not fit", record=record, member=member)
        return
    elif isinstance(error, UnicodeDecodeError) or "UTF8" in words:
        look.flaw("structure", "one of its texts is no UTF-8", record=record, member=member)
        return
    elif file.at_end:
        kind = "truncated"
    look.flaw(kind, f"it cannot be read: {words}", record=record, member=member)
