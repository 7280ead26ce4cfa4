"""C++ objects in the memory of a stopped process: strings, vectors, and the class an object says it is of."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.inspection.symbols import demangle
from faultlens.inspection.tensorflow.layout import Layout
from faultlens.inspection.tensorflow.pages import Pages

WORD = 8
MAX_CLASSES = 32  # of one object: itself and its bases
MAX_CLASS_NAME = 4096
MAX_STRING = 4096

# What the typeinfo of a class is itself of, by the number of its bases (Itanium C++ ABI, 2.9.5).
_ONE_BASE = b"N10__cxxabiv120__si_class_type_infoE"
_MANY_BASES = b"N10__cxxabiv121__vmi_class_type_infoE"
_NAME, _BASE, _BASE_COUNT, _BASES, _SIZEOF_BASE = 8, 16, 20, 24, 16


class Objects:
    """Reads objects as one layout has them."""

    def __init__(self, pages: Pages, layout: Layout) -> None:
        self.pages = pages
        self.layout = layout
        self._classes: dict[int, tuple[bytes, ...] | None] = {}

    # ---------------------------------------------------------------------------------------- strings

    def string(self, address: int, limit: int = MAX_STRING) -> bytes | None:
        """The text of a std::string."""
        length = self.pages.word(address + self.layout.string_length)
        return self.text(self.string_data(address), length, limit)

    def string_data(self, address: int) -> int:
        return self.pages.word(address + self.layout.string_pointer)

    def arena_string(self, address: int) -> int:
        """The address of the std::string that a field of a protobuf message points to."""
        return self.pages.word(address) & ~self.layout.arena_string_mask

    def view(self, address: int) -> tuple[int, int]:
        """Where a string_view begins, and its length."""
        layout = self.layout
        return self.pages.word(address + layout.view_pointer), self.pages.word(address + layout.view_length)

    def text(self, data: int, length: int, limit: int = MAX_STRING) -> bytes | None:
        if length > limit:
            return None
        return b"" if length == 0 else self.pages.read(data, length) or None

    # ---------------------------------------------------------------------------------------- vectors

    def span(self, address: int) -> tuple[int, int]:
        """Where the elements of an absl::Span are, and how many."""
        layout = self.layout
        return self.pages.word(address + layout.span_pointer), self.pages.word(address + layout.span_length)

    def inlined_vector(self, address: int) -> tuple[int, int]:
        """Where the elements of an absl::InlinedVector are, and how many."""
        size = self.pages.word(address + self.layout.inlined_size)
        data = address + self.layout.inlined_data
        return (self.pages.word(data) if size & 1 else data), size >> 1

    # ---------------------------------------------------------------------------------------- classes

    def classes(self, address: int) -> tuple[bytes, ...] | None:
        """The mangled names of an object's class and its bases; empty where its code has no RTTI, None if it is none.

        Each object of a class with virtual functions begins with a pointer into a table of the library that defines
        the class; before the place it points to stands the pointer to the typeinfo.
        """
        table = self.pages.word(address)
        if table not in self._classes:
            self._classes[table] = self._classes_of(table)
        return self._classes[table]

    def _classes_of(self, table: int) -> tuple[bytes, ...] | None:
        pages = self.pages
        if table % WORD or not pages.is_library(table) or not pages.is_code(pages.word(table)):
            return None
        typeinfo = pages.word(table - WORD)
        if typeinfo == 0:
            return ()
        names: dict[bytes, None] = {}
        waiting = [typeinfo]
        while waiting and len(names) < MAX_CLASSES:
            typeinfo = waiting.pop(0)
            name = self._type_name(typeinfo)
            if name is None:
                return None
            if name not in names:
                names[name] = None
                waiting += self._bases(typeinfo)
        return tuple(names)

    def _type_name(self, typeinfo: int) -> bytes | None:
        if typeinfo % WORD or not self.pages.is_library(typeinfo):
            return None
        start = self.pages.word(typeinfo + _NAME)
        if not self.pages.is_library(start):
            return None
        name = _until_zero(self.pages, start, MAX_CLASS_NAME)
        if name is None or not name or not name.isascii() or not name.decode("ascii").isprintable():
            return None
        return name.removeprefix(b"*")  # a class that only one library knows

    def _bases(self, typeinfo: int) -> Iterator[int]:
        pages = self.pages
        kind = self._type_name(pages.word(pages.word(typeinfo) - WORD))
        if kind == _ONE_BASE:
            yield pages.word(typeinfo + _BASE)
        elif kind == _MANY_BASES:
            count = pages.number(typeinfo + _BASE_COUNT, 4) or 0
            for index in range(min(count, MAX_CLASSES)):
                yield pages.word(typeinfo + _BASES + index * _SIZEOF_BASE)


def class_name(mangled: bytes) -> str:
    """ "tensorflow::BlockLSTMOp<Eigen::ThreadPoolDevice, float>"."""
    return demangle("_ZTS" + mangled.decode("ascii", "replace")).removeprefix("typeinfo name for ")


def _until_zero(pages: Pages, address: int, limit: int) -> bytes | None:
    name = b""
    while len(name) < limit:
        part = pages.read(address + len(name), 64) or pages.read(address + len(name), 1)
        if not part:
            return None
        text, found, _ = part.partition(b"\0")
        name += text
        if found:
            return name
    return None
