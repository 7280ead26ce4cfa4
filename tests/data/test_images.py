"""Images: what is healthy passes, what is cut, changed, swapped or misnamed does not. Nothing is decoded, except on
demand."""

from __future__ import annotations

import random
import struct

import pytest

from checked_bytes import checked, flaws, items, kinds, unnoticed_cuts, unnoticed_flips
from faultlens.data.formats.image_file import ImageFile
from faultlens.data.images import WALKS, entropy, kind_of, walk
from faultlens.data.images.checking import check_image
from faultlens.data.images.pixels import decode
from faultlens.data.look import Look, Wanted
from faultlens.records.scan import Identity, Piece
from healthy_images import HEIGHT, WIDTH, all_of_them, bitmap, encoded, frames, picture, png

FILE = ImageFile()
IMAGES = all_of_them()
PHOTO = encoded(picture(width=320, height=240), "JPEG", quality=90)
WITH_RESTARTS = encoded(picture(width=320, height=240), "JPEG", restart_marker_rows=1)


def looked_at(data: bytes, *, pixels: bool = False, path: str = "records", member: str = "") -> list[str]:
    piece = Piece(path=path, format="", start=0, end=len(data), identity=Identity(size=len(data)))
    look = Look(piece, Wanted(pixels=pixels))
    check_image(data, look, record=3, member=member)
    return [f"{flaw.severity} {flaw.kind}" for flaw in look.checked().flaws]


def data_of(jpeg: bytes) -> int:
    """Where the entropy-coded data of its last scan begin."""
    start = jpeg.rindex(b"\xff\xda")
    return start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big")


@pytest.mark.parametrize("name", IMAGES)
class TestHealthy:
    def test_passes(self, name: str) -> None:
        suffix, data = IMAGES[name]
        assert flaws(FILE, data, f"folder/image{suffix}") == ()
        walked = walk(data)
        assert walked is not None
        assert {problem.kind for problem in decode(data, walked)} <= {"unsupported"}
        if "one pixel" not in name and "black" not in name and "old" not in name and "rows" not in name:
            assert (walked.width, walked.height) == (WIDTH, HEIGHT)

    def test_cut_anywhere(self, name: str) -> None:
        suffix, data = IMAGES[name]
        assert unnoticed_cuts(FILE, data, f"folder/image{suffix}", step=1 + len(data) // 1500) == []
        last = [
            size for size in range(max(len(data) - 300, 0), len(data)) if not flaws(FILE, data[:size], "a" + suffix)
        ]
        assert last == []

    def test_padded(self, name: str) -> None:
        suffix, data = IMAGES[name]
        for padding in (b"\0", b"\n", bytes(3), bytes(512), b"\r\n\x1a"):
            assert flaws(FILE, data + padding, f"image{suffix}") == ()

    def test_with_something_behind_it(self, name: str) -> None:
        suffix, data = IMAGES[name]
        assert [flaw.kind for flaw in flaws(FILE, data + b"rubbish", f"image{suffix}")] == ["trailing"]
        if suffix == ".jpg":
            for more in (b"\0\0\0\x18ftypmp42 a film", b"data of a phone, SEFT", data):
                assert not flaws(FILE, data + more, f"image{suffix}")

    def test_cut_and_filled_with_zeros(self, name: str) -> None:
        """As after a crash of the machine: the length is right, the end was never written."""
        suffix, data = IMAGES[name]
        if suffix in (".bmp", ".webp") or len(data) < 200:
            return  # in which zeros are pixels
        half = data[: len(data) // 2].ljust(len(data), b"\0")
        assert flaws(FILE, half, f"image{suffix}") != ()


def test_two_pictures_in_one_file() -> None:
    two = PHOTO + encoded(picture(), "JPEG")
    assert looked_at(two) == []
    assert looked_at(two[:-100]) == ["warning truncated"]


def test_what_no_image_is() -> None:
    for data in (b"", b"BM", b"BM is how this text begins, with many words behind it", b"\x89PNG", b"RIFF\0\0\0\0WAVE"):
        assert kind_of(data) is None
        assert looked_at(data) == []
        assert looked_at(data, member="image.png") in (["error magic"], ["error empty"])


def test_names_that_promise_another_kind() -> None:
    assert looked_at(PHOTO, path="a.png") == ["warning magic"]
    assert looked_at(PHOTO, path="a.JPEG") == []
    assert looked_at(b"<html>not found</html>", path="a.jpg") == ["error magic"]
    assert "zeros" in flaws(FILE, bytes(5000), "a.jpg")[0].reason


def test_an_image_that_is_a_feature() -> None:
    piece = Piece(path="train.tfrecord", format="", start=0, end=9, identity=Identity(size=9))
    look = Look(piece, Wanted())
    check_image(PHOTO[:-500], look, record=7, offset=900, size=80, member="image/encoded")
    check_image(PHOTO, look, record=8, member="image/encoded")
    (flaw,), (trait,) = look.checked().flaws, look.checked().traits
    assert (flaw.kind, flaw.place.record, flaw.place.offset, flaw.place.member) == (
        "truncated",
        7,
        900,
        "image/encoded",
    )
    assert trait.name == "number of channels of image/encoded"
    assert list(trait.values) == ["3"]


def test_decoders_are_given_the_whole_image() -> None:
    (item,) = items(FILE, PHOTO, "a.jpg")
    assert (item.what, item.data, item.place.path) == ("image", PHOTO, "a.jpg")


class TestJpeg:
    def test_markers_in_the_data(self) -> None:
        for code in (0x01, 0xC0, 0xC4, 0xD8, 0xE0, 0xFE, 0x42):
            at = data_of(PHOTO) + 2000
            assert kinds(FILE, PHOTO[:at] + bytes((0xFF, code)) + PHOTO[at + 2 :], "a.jpg") != [], hex(code)

    def test_the_reason_says_where(self) -> None:
        at = data_of(PHOTO) + 2000
        (flaw,) = flaws(FILE, PHOTO[:at] + bytes(4096) + PHOTO[at + 4096 :], "a.jpg")
        assert f"(byte {at:,} of the image)" in flaw.reason
        (flaw,) = flaws(FILE, PHOTO[:at], "a.jpg")
        assert flaw.reason == f"it ends after {at} bytes, within its image data"

    def test_an_end_in_the_middle(self) -> None:
        at = data_of(PHOTO) + 2000
        assert looked_at(PHOTO[:at] + b"\xff\xd9" + PHOTO[at + 2 :]) == ["warning garbage"]

    def test_zeros_in_the_data(self) -> None:
        at = data_of(PHOTO) + 2000
        assert looked_at(PHOTO[:at] + bytes(4096) + PHOTO[at + 4096 :]) == ["warning garbage"]

    def test_erased_memory_in_the_data(self) -> None:
        at = data_of(PHOTO) + 2000
        assert looked_at(PHOTO[:at] + b"\xff" * 4096 + PHOTO[at + 4096 :])[0] == "warning garbage"

    def test_restart_markers(self) -> None:
        start = data_of(WITH_RESTARTS)
        second, third, fourth = (WITH_RESTARTS.index(bytes((0xFF, code)), start) for code in (0xD1, 0xD2, 0xD3))
        lost = WITH_RESTARTS[:second] + WITH_RESTARTS[third:]
        swapped = (
            WITH_RESTARTS[:second] + WITH_RESTARTS[third:fourth] + WITH_RESTARTS[second:third] + WITH_RESTARTS[fourth:]
        )
        assert looked_at(WITH_RESTARTS) == []
        assert looked_at(lost) == looked_at(swapped) == ["warning garbage"]

    def test_too_little_for_its_size(self) -> None:
        at = PHOTO.index(b"\xff\xc0") + 5
        assert looked_at(PHOTO[:at] + struct.pack(">HH", 60000, 8000) + PHOTO[at + 4 :]) == ["error short"]

    def test_damaged_headers_and_tables(self) -> None:
        for marker, distance in ((0xC0, 5), (0xC0, 9), (0xC4, 5), (0xDB, 4), (0xDA, 4), (0xDA, 6)):
            damaged = bytearray(PHOTO)
            damaged[PHOTO.index(bytes((0xFF, marker))) + distance] ^= 0xF0
            assert "error" in " ".join(looked_at(bytes(damaged))), (hex(marker), distance)

    def test_tables_without_end(self) -> None:
        start = PHOTO.index(b"\xff\xdb")
        tables = PHOTO[start : start + 2 + int.from_bytes(PHOTO[start + 2 : start + 4], "big")]
        assert looked_at(PHOTO[:start] + tables * 5000 + PHOTO[start:]) == []

    @pytest.mark.skipif(not entropy.LIBRARY.exists(), reason="there was no C compiler at the installation")
    def test_c_says_what_python_says(self) -> None:
        """Whatever the bytes are, wherever they begin and end."""
        chance = random.Random(5)
        for _ in range(3000):
            size = chance.choice((0, 1, 2, 60, 300, 1000))
            data = bytearray(chance.choices((0, 1, 0xD0, 0xD1, 0xFF), (6, 90, 1, 1, 2), k=size))
            for _ in range(chance.randrange(4)):
                at, long = chance.randrange(size + 1), chance.randrange(100)
                data[at : at + long] = bytes((chance.choice((0, 0xFF)),)) * long
            if size and chance.random() < 0.5:
                data[chance.randrange(size) :] = chance.choice((b"\xff\xd9", b"\xff", bytes(80), b"\xff\xff"))
            start, zeros = chance.randrange(len(data) + 1), chance.choice((0, 1, 7, 64))
            seen = [look(bytes(data), start, zeros) for look in (entropy.entropy, entropy.in_python)]
            told = [(end, *(getattr(found, name) for name, _ in found._fields_[1:])) for end, found in seen]
            assert told[0] == told[1], (bytes(data), start, zeros)


class TestPng:
    def test_every_byte_counts(self) -> None:
        data = IMAGES["png RGB"][1]
        assert unnoticed_flips(FILE, data, 0, len(data), "a.png") == []

    def test_order_of_chunks(self) -> None:
        end = IMAGES["png P"][1].index(b"IDAT") - 4
        start = IMAGES["png P"][1].index(b"PLTE") - 4
        without_palette = IMAGES["png P"][1][:start] + IMAGES["png P"][1][end:]
        assert looked_at(without_palette) == ["error structure"]

    def test_data_that_do_not_unpack(self) -> None:
        data = png(9, 9, b"no zlib stream")
        assert looked_at(data) == []
        assert looked_at(data, pixels=True) == ["error decode"]


def test_gif_whose_blocks_do_not_follow_each_other() -> None:
    data = IMAGES["gif animated"][1]
    at = data.rindex(b"\x21\xf9\x04")
    assert looked_at(data[:at] + b"\x77" + data[at + 1 :]) == ["error structure"]


def test_bmp_that_lies_about_its_size() -> None:
    lying = bytearray(bitmap(24))
    lying[2:6] = struct.pack("<I", 1 << 30)
    assert looked_at(bytes(lying)) == ["note short"]
    lying[18:22] = struct.pack("<i", 5000)
    assert looked_at(bytes(lying)) == ["error truncated"]


def test_webp_whose_chunks_do_not_fit() -> None:
    data = bytearray(frames("WEBP"))
    at = data.index(b"ANMF") + 4
    data[at : at + 4] = struct.pack("<I", 1 << 20)
    assert looked_at(bytes(data)) == ["error structure"]


def test_more_pixels_than_can_be_decoded() -> None:
    assert looked_at(png(30000, 20000, b"")) == ["warning oversized"]


class TestPixels:
    @pytest.mark.parametrize("photo", (PHOTO, WITH_RESTARTS), ids=("plain", "restarts"))
    def test_what_the_walk_cannot_see(self, photo: bytes) -> None:
        at = data_of(photo) + 3000
        damaged = photo[:at] + photo[at + 200 :]
        assert looked_at(damaged, pixels=True)[-1] == "warning garbage"

    def test_what_is_known_to_be_broken_is_not_decoded(self) -> None:
        assert looked_at(PHOTO[:-300], pixels=True) == ["error truncated"]


def test_nothing_raises() -> None:
    """Damage of all sorts, to images of all sorts."""
    chance = random.Random(3)
    found = 0
    for _, data in list(IMAGES.values()) * 25:
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(min(len(damaged), 700))
            damaged[at] = chance.choice((0, 0xFF, 0x80, 1, chance.randrange(256)))
        for each in WALKS.values():
            each(bytes(damaged))
        found += bool(checked(FILE, bytes(damaged), "a").flaws)
    assert found
