"""Models and checkpoints that lie among the data: `.keras`, `.tflite`, `.index`, SavedModel. The readers of saves know
them."""

from __future__ import annotations

from pathlib import Path

from faultlens.data.formats.base import Format
from faultlens.data.look import Look
from faultlens.data.source import Source, is_remote
from faultlens.model_files import reader, sstable
from faultlens.records.scan import Kind, Piece
from faultlens.text.file_names import to_name

INDEX = ".index"
# The first words that fit decide.
KINDS: tuple[tuple[str, Kind], ...] = (
    ("is empty", "empty"),
    ("checksum", "checksum"),
    ("cut off", "truncated"),
    ("ends at byte", "truncated"),
    ("leads to byte", "truncated"),
    ("does not end", "truncated"),
    ("is missing", "short"),
    ("is no ", "magic"),
)


class SavedModel(Format):
    name = "saved model"
    suffixes = (".keras", ".tflite", INDEX, "saved_model.pb")
    by_name_only = True  # what begins so may be any archive

    def begins(self, head: bytes) -> bool:
        """Not at all: the reader looks at the contents, and an index has its mark at its end."""
        return bool(head)

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        if is_remote(piece.path):
            look.flaw("unsupported", "it is a model that is not on this machine: not looked at")
            return
        path = Path(to_name(piece.path))
        saved = reader.read(path, deep=True)
        if saved is None or (saved.files == 1 and not _is_model(source, piece)):
            look.unchecked(f"files that end in {INDEX}", "they are no checkpoints")
            return
        look.records = 1
        for damage in saved.damages:
            member = damage.file.name if damage.file != path else ""
            look.flaw(_kind(damage.what), damage.said(path), member=member)
        unread = saved.kind == "Keras archive" and not saved.checked and not saved.damages
        for note in saved.notes:
            if unread:
                look.flaw("unsupported", note)
            else:
                look.note(note)


def _is_model(source: Source, piece: Piece) -> bool:
    """Many programs call a file an index. One of a checkpoint ends like a table, or has its data beside it."""
    mark = source.read(max(piece.identity.size - 8, 0), 8)
    return not piece.path.lower().endswith(INDEX) or int.from_bytes(mark, "little") == sstable.MAGIC


def _kind(what: str) -> Kind:
    return next((kind for words, kind in KINDS if words in what), "structure")
