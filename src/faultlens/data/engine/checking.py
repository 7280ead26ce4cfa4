"""Checks one piece of one file: the same code in a local worker and on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from faultlens.data import formats, source
from faultlens.data.decode import Decoder
from faultlens.data.decode.decoder import MAX_ITEM
from faultlens.data.look import MAX_FLAWS, Look, Wanted, severity_of
from faultlens.data.missing import EXTRA, not_there
from faultlens.data.source import Source
from faultlens.errors import FaultlensError
from faultlens.records.scan import Checked, Flaw, Identity, Piece, Place, Unchecked
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words


class Signs(NamedTuple):
    """Signs of life."""

    at: Callable[[str], None]  # what is looked at next
    tick: Callable[[], None]  # bytes were read


def check(piece: Piece, wanted: Wanted, signs: Signs, decoder: Decoder | None = None) -> Checked:
    look = Look(piece, wanted, signs.at)
    try:
        with source.opened(piece.path) as opened:
            before = opened.identity()
            if before != piece.identity:
                look.flaw("changed", _change(piece.identity, before))
                return look.checked()
            read = _Ticking(opened, signs.tick)
            _check(read, piece, look)
            checked = look.checked()
            if decoder is not None:
                signs.at("")
                checked = _decoded(read, checked, decoder)
            after = opened.identity()
    except OSError as error:
        look.flaw("unreadable", error.strerror or str(error) or type(error).__name__)
        return look.checked()
    if after != before:
        return replace(checked, flaws=(*checked.flaws, _flaw(piece, _change(before, after))))
    return checked


def _check(opened: Source, piece: Piece, look: Look) -> None:
    if not piece.identity.size:
        look.flaw("empty", "it has no bytes")
        return
    kind = formats.named(piece.format)
    try:
        kind.check(opened, piece, look)
    except ImportError as error:
        reason = not_there(error)
        look.flaw("unsupported", f"it was not looked into: {reason}")
        look.unchecked(f"what is in {kind.name} files", reason, EXTRA)
    except (OSError, FaultlensError):
        raise
    except MemoryError:
        look.flaw("unsupported", "there was not enough memory to read it")
    except Exception as error:  # a fault of ours must not end the scan, nor pass for health
        look.flaw("unsupported", f"faultlens could not check it: {type(error).__name__}: {error}", severity="error")


def _decoded(opened: Source, checked: Checked, decoder: Decoder) -> Checked:
    """Only what was found whole is decoded."""
    piece = checked.piece
    kind = formats.named(piece.format)
    if not piece.identity.size or not all(map(find_spec, kind.needs)):
        return checked
    bad = {flaw.place.record for flaw in checked.flaws if flaw.severity == "error" and flaw.place.record is not None}
    items = kind.items(opened, piece)
    flaws, untold, before = list(checked.flaws), 0, decoder.count
    for verdict in decoder.tried(item for item in items if item.place.record not in bad):
        if len(flaws) < MAX_FLAWS:
            flaws.append(
                Flaw(
                    kind=verdict.kind,
                    severity=severity_of(verdict.kind),
                    place=replace(verdict.place, member=one_line(verdict.place.member, 200)),
                    reason=one_line(verdict.reason, 300),
                    report=verdict.report,
                )
            )
        else:
            untold += 1  # all of them are errors
    notes, unchecked = (*checked.notes, *decoder.notes), checked.unchecked
    decoder.notes.clear()
    if decoder.count == before and not decoder.too_large and not bad:
        reason = "there is nothing in them for a decoder"
        unchecked += (Unchecked(check=f"decoding of {kind.name} files", reason=reason, first=piece.path),)
    if decoder.too_large:
        reason = f"they have more than {in_words(MAX_ITEM)}"
        unchecked += (Unchecked(check="whether some items can be decoded", reason=reason, first=piece.path),)
        decoder.too_large = 0
    return replace(
        checked,
        flaws=tuple(flaws),
        flaws_untold=checked.flaws_untold + untold,
        decoded=decoder.count - before,
        notes=notes,
        unchecked=unchecked,
    )


def _flaw(piece: Piece, reason: str) -> Flaw:
    return Flaw(kind="changed", severity="error", place=Place(path=piece.path), reason=reason)


def _change(before: Identity, after: Identity) -> str:
    if before.inode != after.inode:
        return "another file took its name while it was read"
    if before.size != after.size:
        return f"its size changed from {before.size:,} to {after.size:,} bytes while it was read"
    return "it was written to while it was read"


class _Ticking:
    """Tells with every read that it is going on."""

    def __init__(self, opened: Source, tick: Callable[[], None]) -> None:
        self._opened, self._tick = opened, tick
        self.path = opened.path

    def identity(self) -> Identity:
        return self._opened.identity()

    def read(self, offset: int, size: int) -> bytes:
        self._tick()
        return self._opened.read(offset, size)

    def read_into(self, offset: int, buffer: memoryview) -> int:
        self._tick()
        return self._opened.read_into(offset, buffer)

    def file(self) -> BinaryIO:
        return self._opened.file()
