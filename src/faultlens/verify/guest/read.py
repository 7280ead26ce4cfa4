"""Runs in the Python of the user's programs, confined: reads every value of a save, or loads it for real.

Needs nothing but the standard library, from Python 3.9 on, and what reads the format (h5py and NumPy, or TensorFlow).
The request is a JSON file, the only argument. Answers go to what was stdout, one JSON object a line: {"at": …} before
every variable, so that one that never ends is known, and at last {"done": …}."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

from faultlens_sandbox import confinement, guard, limits

MAX_WRITTEN = 64 << 20  # bytes of any file: messages of libraries
BLOCK = 8 << 20
MAX_PIECE = 256 << 20  # of what can only be read at once: a chunk, texts, a packed member of an archive
MAX_OBJECTS = 1_000_000
MAX_RATIO = 2000  # values hardly shrink: what claims more than this times its file is not believed
MAX_TOLD = 20
BFLOAT16, EXPONENT = "bfloat16", 0x7F80  # all bits set: infinite or not a number
Answer = dict[str, Any]


class Report:
    """What is told at the end."""

    def __init__(self, answers: int, with_places: bool) -> None:
        self._answers = answers
        self.with_places = with_places
        self.damages: list[str] = []
        self.notes: list[str] = []
        self.not_finite: list[tuple[str, int]] = []
        self.places: dict[str, tuple[int, int]] = {}  # of variables in the file: offset and size
        self.variables = self.size = 0
        self.weights_only = False

    def at(self, name: str, size: int = 0) -> None:
        """What comes next, and how many bytes it has."""
        self._say({"at": name[:400], "size": size})

    def done(self, **more: Any) -> None:
        told = {
            "damages": self.damages[:MAX_TOLD],
            "notes": self.notes[:MAX_TOLD],
            "not_finite": self.not_finite[:MAX_TOLD],
            "not_finite_variables": len(self.not_finite),
            "places": self.places,
            "variables": self.variables,
            "size": self.size,
            "weights_only": self.weights_only,
        }
        self._say({"done": {**told, **more}})

    def _say(self, what: Answer) -> None:
        view = memoryview(json.dumps(what).encode() + b"\n")
        while view:
            view = view[os.write(self._answers, view) :]

    def saw(self, name: str, size: int, not_finite: int) -> None:
        self.variables += 1
        self.size += size
        if not_finite:
            self.not_finite.append((name[:200], not_finite))


# --------------------------------------------------------------------------------------------- values


def read_spans(spans: list[tuple[str, str, int, int, str]], report: Report) -> None:
    """The variables of a checkpoint, whose checksums were compared already."""
    import numpy  # noqa: F401 (where it cannot be imported, nothing begins)

    for name, path, offset, size, dtype in spans:
        report.at(name, size)
        with open(path, "rb") as file:
            report.saw(name, size, not_finite_in(file, offset, size, dtype))


def read_archive(path: str, report: Report) -> None:
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for member in archive.infolist():
            if not member.filename.endswith(".h5"):
                continue
            if member.compress_type == zipfile.ZIP_STORED:
                start = start_of(file, member)
                read_hdf5(Part(file, start, member.file_size), report, start)
            elif member.file_size <= MAX_PIECE:
                with archive.open(member) as packed:
                    read_hdf5(io.BytesIO(packed.read(MAX_PIECE)), report, None)
            else:
                report.notes.append(f"the values in {member.filename} were not read: they are packed")


def start_of(file: Any, member: zipfile.ZipInfo) -> int:
    """Behind its header, whose length is that of the name and of the extra field that it carries itself."""
    file.seek(member.header_offset)
    header = file.read(30)
    return member.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


class Part(io.RawIOBase):
    """A part of a file that behaves like a whole one."""

    def __init__(self, file: Any, start: int, size: int) -> None:
        self._file, self._start, self._size, self._position = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(self._size - self._position, 0)]
        self._file.seek(self._start + self._position)
        count = self._file.readinto(view) if view else 0
        self._position += count
        return int(count)


def read_hdf5(source: Any, report: Report, start: int | None = 0) -> None:
    """Every dataset and attribute of it. `start`: where in the file that was named it begins; None: nowhere in it."""
    import h5py

    report.at("")
    source.seek(0, os.SEEK_END)
    total = source.tell()
    try:
        file = h5py.File(source, "r")
    except Exception as error:
        report.damages.append(f"h5py cannot open it: {words(error)}")
        return
    with file:
        for name, item in objects(file, report):
            read_attributes(name, item, report)
            if isinstance(item, h5py.Dataset):
                size = int(item.size or 0) * item.dtype.itemsize
                report.at(name, min(size, total))
                if item.external or item.is_virtual:
                    report.notes.append(f"{name} lies in another file, which was not read")
                elif size > total * MAX_RATIO:
                    report.damages.append(f"{name} says that it has {size} bytes, the file has {total}")
                else:
                    with noting(name, report):
                        read_dataset(name, item, source, report, start)


def objects(file: Any, report: Report) -> Iterator[tuple[str, Any]]:
    """Each once, whatever circles its links make; links to other files are not followed."""
    import h5py

    waiting: list[tuple[str, Any]] = [("/", file["/"])]
    seen: set[int] = set()
    while waiting and len(seen) < MAX_OBJECTS:
        name, item = waiting.pop()
        place = None
        with noting(name, report):
            place = h5py.h5o.get_info(item.id).addr
        if place is None or place in seen:
            continue
        seen.add(place)
        yield name, item
        if not isinstance(item, h5py.Group):
            continue
        report.at(name)
        with noting(name, report):
            for key in list(item):
                child = f"{name.rstrip('/')}/{key}"
                with noting(child, report):
                    if isinstance(item.get(key, getlink=True), h5py.HardLink):
                        waiting.append((child, item[key]))


def read_attributes(name: str, item: Any, report: Report) -> None:
    with noting(name, report):
        for key in item.attrs:
            item.attrs[key]


def read_dataset(name: str, dataset: Any, source: Any, report: Report, start: int | None) -> None:
    size = dataset.id.get_storage_size()
    offset = dataset.id.get_offset()
    bfloat16 = dataset.attrs.get("dtype") == BFLOAT16 and dataset.dtype.itemsize == 2
    dtype = BFLOAT16 if bfloat16 else dataset.dtype.str
    if offset is not None and not dataset.dtype.hasobject:  # in one piece
        bad = not_finite_in(source, offset, size, dtype)
        if start is not None and report.with_places:
            report.places[name] = start + offset, size
    elif dataset.chunks is not None:
        piece = dataset.dtype.itemsize
        for length in dataset.chunks:
            piece *= int(length)
        if piece > MAX_PIECE:
            report.notes.append(f"{name} was not read: its chunks have {piece} bytes")
            return
        bad = sum(not_finite(dataset[piece], dtype) for piece in dataset.iter_chunks())
    elif int(dataset.size or 0) * dataset.dtype.itemsize > MAX_PIECE:
        report.notes.append(f"{name} was not read: it is too large to be read at once")
        return
    else:
        bad = not_finite(dataset[()], dtype)
    report.saw(name, size, bad)


def not_finite_in(file: Any, offset: int, size: int, dtype: str) -> int:
    """How many values are NaN or infinite. Raises EOFError where the file ends before them."""
    import numpy

    kind = numpy.dtype("<u2" if dtype == BFLOAT16 else dtype)
    wrong = 0
    while size > 0:
        file.seek(offset)
        data = file.read(min(size, BLOCK))
        if not data:
            raise EOFError("the file ends before its values")
        offset, size = offset + len(data), size - len(data)
        whole = len(data) // kind.itemsize * kind.itemsize if kind.itemsize else 0
        wrong += not_finite(numpy.frombuffer(data[:whole], kind), dtype)
    return wrong


def not_finite(array: Any, dtype: str) -> int:
    import numpy

    array = numpy.asarray(array)
    if dtype == BFLOAT16:
        return int(numpy.count_nonzero((array.view("<u2") & EXPONENT) == EXPONENT))
    if array.dtype.kind not in "fc":
        return 0
    return int(array.size - numpy.count_nonzero(numpy.isfinite(array)))


@contextlib.contextmanager
def noting(name: str, report: Report) -> Iterator[None]:
    """What cannot be read is told, and the rest is read all the same."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        report.damages.append(f"{name} cannot be read: {words(error)}")


def words(error: BaseException) -> str:
    """Keras puts the reason behind the whole configuration of the model."""
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = " ".join(said.rpartition("Exception encountered: ")[2].split())
    return (text or type(error).__name__)[:300]


# -------------------------------------------------------------------------------------------- loading


def load(kind: str, path: str, report: Report) -> None:
    """As a program would do it."""
    if kind in ("Keras archive", "HDF5 file"):
        load_keras(kind, path, report)
        return
    import tensorflow as tf

    report.at("")
    if kind == "checkpoint":
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
            report.saw(name, 0, 0)
    elif kind == "SavedModel":
        report.variables = len(getattr(tf.saved_model.load(path), "variables", ()))
    else:
        interpreter = tf.lite.Interpreter(model_path=path)
        interpreter.allocate_tensors()


def load_keras(kind: str, path: str, report: Report) -> None:
    if kind == "HDF5 file" and not describes_a_model(path):
        report.weights_only = True
        return
    import keras

    report.at("")
    try:
        model = keras.models.load_model(path)
    except Exception as error:
        model = keras.models.load_model(path, compile=False)
        report.notes.append(f"it loads without its optimizer and loss only: {type(error).__name__}: {words(error)}")
    report.variables = len(model.variables)


def describes_a_model(path: str) -> bool:
    import h5py

    with h5py.File(path, "r") as file:
        return "model_config" in file.attrs


# ------------------------------------------------------------------------------------------ the start


def protect(request: Answer) -> None:
    """Nothing of what is read may harm the machine."""
    limits.die_with(request["parent"])
    limits.killed_first()
    means = confinement.Means(*request["means"])
    guard.enter(means, [request["folder"]])
    limits.no_core_file()
    limits.at_most_written(MAX_WRITTEN)
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    confinement.confine(means, [request["folder"]])


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        request: Answer = json.load(file)
    answers = os.dup(1)
    os.dup2(2, 1)
    protect(request)
    report = Report(answers, bool(request.get("places")))
    try:
        if request["do"] == "load":
            load(request["kind"], request["path"], report)
        elif request["kind"] == "spans":
            read_spans(request["spans"], report)
        elif request["kind"] == "Keras archive":
            read_archive(request["path"], report)
        else:
            with open(request["path"], "rb") as file:
                read_hdf5(file, report)
        report.done()
    except BaseException as error:
        report.done(raised=type(error).__name__, message=words(error), errno=getattr(error, "errno", None))
    os._exit(0)
