"""Saved models of every format: whole ones are green, and what is wrong with the others is said."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path

import pytest

from faultlens.model_files import checkpoint, protobuf, saved_model
from faultlens.model_files.crc32c import crc32c
from faultlens.model_files.reader import read
from faultlens.model_files.record import Saved
from saved_files import WEIGHTS, field, hdf5, keras_archive, tflite, write_checkpoint, write_saved_model


def looked_at(path: Path, deep: bool = False) -> Saved:
    saved = read(path, deep)
    assert saved is not None
    return saved


def damage(path: Path, deep: bool = False) -> str:
    damages = looked_at(path, deep).damages
    return f"{damages[0].file.name} {damages[0].what}" if damages else ""


# --------------------------------------------------------------------------------------------------- checksums


def test_crc32c_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_crc32c_of_long_data_is_that_of_its_pieces() -> None:
    data = random.Random(5).randbytes(300_001)
    bit_by_bit = 0xFFFFFFFF
    for byte in data[:5000]:
        bit_by_bit ^= byte
        for _ in range(8):
            bit_by_bit = (bit_by_bit >> 1) ^ (0x82F63B78 if bit_by_bit & 1 else 0)
    assert crc32c(data[:5000]) == bit_by_bit ^ 0xFFFFFFFF
    for cut in (0, 1, 3, 64, 65, 100_000, 299_999):
        assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


# ------------------------------------------------------------------------------------------------ .keras archives


def test_a_whole_archive(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(keras_archive())
    saved = looked_at(path)
    assert (saved.kind, saved.damages, saved.checked) == ("Keras archive", (), True)
    assert saved.weights == len(hdf5())
    assert saved.writers == (("Keras", "3.15.1 on 2026-11-16 at 18:12:11"),)


@pytest.mark.parametrize("size", [1, 40, 1000, 4000])
def test_a_cut_archive_has_no_directory(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(keras_archive()[:size])
    assert damage(path) == "model.keras is cut off: the directory at the end of the archive is missing" or size == 1


def test_an_archive_whose_save_was_killed_at_its_start(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.touch()
    assert damage(path) == "model.keras is empty: a save began and did not end"


def test_a_flipped_bit_in_the_weights_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    raw = bytearray(keras_archive())
    raw[raw.find(WEIGHTS) + 100] ^= 4
    path.write_bytes(raw)
    assert damage(path) == "model.keras its model.weights.h5 has a wrong checksum"


def test_an_archive_with_half_written_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(keras_archive(weights=hdf5()[:500]))
    assert damage(path) == f"model.keras its model.weights.h5 ends at byte 500, its header says {len(hdf5())}"


def test_an_archive_without_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{not json")
    said = [each.what for each in looked_at(path).damages]
    assert said == ["has no metadata.json", "has no weights (model.weights.h5)", "its config.json is no JSON"]


def test_an_archive_that_grows_without_end_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", "{}")
        with archive.open("model.weights.h5", "w", force_zip64=True) as member:
            member.write(hdf5())
        archive.getinfo("model.weights.h5").file_size = 1 << 50  # as a bomb would say
    saved = looked_at(path, deep=True)
    assert not saved.checked
    assert "not unpacked" in saved.notes[0]


# ---------------------------------------------------------------------------------------------------- HDF5 files


def test_hdf5_files(tmp_path: Path) -> None:
    whole, cut, no, empty = (tmp_path / f"{name}.weights.h5" for name in ("whole", "cut", "no", "empty"))
    whole.write_bytes(hdf5() + b"more")
    cut.write_bytes(hdf5()[:-1])
    no.write_bytes(b"not at all" * 100)
    empty.touch()
    assert damage(whole) == ""
    assert damage(cut) == f"cut.weights.h5 ends at byte {len(hdf5()) - 1}, its header says {len(hdf5())}"
    assert damage(no) == "no.weights.h5 is no HDF5 file: it has no signature"
    assert "is empty" in damage(empty)


def test_an_hdf5_file_whose_save_was_killed(tmp_path: Path) -> None:
    """Data is written at once, what tells where it lies only at the end: recorded from a killed save."""
    path = tmp_path / "model.h5"
    raw = bytearray(hdf5())
    raw[96:100] = bytes(4)
    path.write_bytes(raw)
    assert damage(path) == "model.h5 has no list of its contents: the save did not end"


def test_the_newer_header_of_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "new.h5"
    head = b"\x89HDF\r\n\x1a\n" + bytes([3, 8, 8, 0]) + (0).to_bytes(8, "little") + b"\xff" * 8
    path.write_bytes(head + (2048).to_bytes(8, "little") + (48).to_bytes(8, "little") + bytes(4) + b"OHDR" + bytes(99))
    assert damage(path) == f"new.h5 ends at byte {path.stat().st_size}, its header says 2048"
    path.write_bytes(path.read_bytes().ljust(2048, b"\0"))
    assert damage(path) == ""


def test_what_wrote_an_hdf5_file(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    config = '{"class_name": "Sequential", "config": {"layers": [{"config": {"batch_shape": [null, 8]}}]}}'
    path.write_bytes(hdf5(keras_version="3.15.1", backend="tensorflow", model_config=config))
    saved = looked_at(path)
    assert (saved.writers, saved.new_in_keras_3, saved.damages) == ((("Keras", "3.15.1"),), "batch_shape", ())
    path.write_bytes(hdf5(keras_version="2.12.0", model_config=config.replace("batch_shape", "batch_input_shape")))
    saved = looked_at(path)
    assert (saved.writers, saved.new_in_keras_3) == ((("Keras", "2.12.0"),), "")
    path.write_bytes(hdf5())
    assert looked_at(path).writers == ()


@pytest.mark.parametrize("offset", [0, 2**62])
def test_an_attribute_that_leads_nowhere(tmp_path: Path, offset: int) -> None:
    raw = hdf5(keras_version="3.15.1")
    heap = raw.index(b"GCOL").to_bytes(8, "little")
    path = tmp_path / "model.h5"
    path.write_bytes(raw.replace(heap, offset.to_bytes(8, "little")))
    assert looked_at(path).writers == ()


def test_the_content_tells_the_format_not_the_name(tmp_path: Path) -> None:
    """Keras 2.12 wrote HDF5 files under the name `.keras`."""
    (tmp_path / "old.keras").write_bytes(hdf5(keras_version="2.12.0"))
    (tmp_path / "renamed.h5").write_bytes(keras_archive())
    (tmp_path / "damaged.keras").write_bytes(b"<html>")
    (tmp_path / "damaged.h5").write_bytes(b"<html>")
    assert (looked_at(tmp_path / "old.keras").kind, damage(tmp_path / "old.keras")) == ("HDF5 file", "")
    assert (looked_at(tmp_path / "renamed.h5").kind, damage(tmp_path / "renamed.h5")) == ("Keras archive", "")
    assert damage(tmp_path / "damaged.keras") == "damaged.keras is not a zip archive"
    assert damage(tmp_path / "damaged.h5") == "damaged.h5 is no HDF5 file: it has no signature"


# ----------------------------------------------------------------------------------------------------- checkpoints


def test_a_whole_checkpoint_by_all_of_its_names(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck-1")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ck-1"\nall_model_checkpoint_paths: "ck-1"\n')
    for path in (tmp_path, tmp_path / "ck-1", tmp_path / "ck-1.index", tmp_path / "ck-1.data-00000-of-00001"):
        saved = looked_at(path, deep=True)
        assert (saved.kind, saved.damages, saved.checked) == ("checkpoint", (), True)
        assert saved.largest == len(WEIGHTS)


def test_a_checkpoint_with_short_or_missing_data(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck")
    data = tmp_path / "ck.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    assert damage(tmp_path / "ck") == f"{data.name} ends at byte 100, the variable word at {len(WEIGHTS) + 10}"
    data.unlink()
    assert damage(tmp_path / "ck") == f"{data.name} is missing"


def test_a_flipped_bit_in_a_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck")
    for name, place, said in (
        ("ck.data-00000-of-00001", 100, "the checksum of the variable Variableö does not match"),
        ("ck.data-00000-of-00001", len(WEIGHTS) + 7, "the checksum of the variable word does not match"),
        ("ck.index", 10, "is damaged: the checksum of its block at byte 0 does not match"),
        ("ck.index", -3, "is damaged: it does not end as a table does"),
    ):
        file = tmp_path / name
        whole = file.read_bytes()
        raw = bytearray(whole)
        raw[place] ^= 1
        file.write_bytes(raw)
        assert damage(tmp_path / "ck", deep=True) == f"{name} {said}"
        file.write_bytes(whole)


def test_large_checkpoints_are_summed_up_only_on_demand(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck", bytes(checkpoint.QUICK))
    assert not looked_at(tmp_path / "ck").checked
    assert looked_at(tmp_path / "ck", deep=True).checked


def test_a_checkpoint_that_is_named_and_gone(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ck-7"\n')
    assert damage(tmp_path) == "ck-7.index is missing"


def test_an_interrupted_save_is_noted(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "ck")
    (tmp_path / "ck_temp").mkdir()
    assert looked_at(tmp_path / "ck").notes == ("a save beside it was interrupted: ck_temp is left",)


# ----------------------------------------------------------------------------------------------------- SavedModels


def test_a_whole_saved_model(tmp_path: Path) -> None:
    write_saved_model(tmp_path / "m", "2.15.1", 12)
    saved = looked_at(tmp_path / "m")
    assert (saved.kind, saved.damages, saved.writers) == ("SavedModel", (), (("TensorFlow", "2.15.1"),))
    assert (saved.min_consumer, saved.files) == (12, 3)
    assert looked_at(tmp_path / "m" / "saved_model.pb").path == tmp_path / "m"


def test_damaged_saved_models(tmp_path: Path) -> None:
    write_saved_model(tmp_path)
    graph = tmp_path / "saved_model.pb"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-10])
    assert damage(tmp_path) == "saved_model.pb is damaged: it ends 10 bytes too early"
    graph.write_bytes(b"")
    assert damage(tmp_path) == "saved_model.pb is empty"
    graph.unlink()
    assert damage(tmp_path) == "saved_model.pb is missing"
    graph.write_bytes(whole)
    for file in (tmp_path / "variables").iterdir():
        file.unlink()
    assert damage(tmp_path) == "variables.index is missing"


def test_assets_that_are_missing(tmp_path: Path) -> None:
    """Loading reads what fills a table, and nothing else."""
    write_saved_model(tmp_path, table="words.txt", asset="notes.txt")
    (tmp_path / "assets").mkdir()
    for name in ("words.txt", "notes.txt"):
        (tmp_path / "assets" / name).write_text("a")
    saved = looked_at(tmp_path)
    assert (saved.damages, saved.lacks) == ((), ())
    (tmp_path / "assets/notes.txt").unlink()
    saved = looked_at(tmp_path)
    assert (saved.damages, saved.lacks) == ((), (tmp_path / "assets/notes.txt",))
    (tmp_path / "assets/words.txt").unlink()
    assert damage(tmp_path) == "words.txt is missing"


def test_a_graph_without_variables_needs_none(tmp_path: Path) -> None:
    graph = field(2, field(4, field(2, 3)))
    (tmp_path / saved_model.GRAPH).write_bytes(field(2, graph))
    assert looked_at(tmp_path).damages == ()


def test_messages_with_too_many_fields_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_saved_model(tmp_path)
    monkeypatch.setattr(protobuf, "MAX_FIELDS", 1)
    with pytest.raises(OSError, match="more than 1 fields"):
        read(tmp_path)


# ---------------------------------------------------------------------------------------------------------- tflite


def test_tflite_models(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite())
    saved = looked_at(path)
    assert (saved.kind, saved.damages, saved.weights) == ("TensorFlow Lite model", (), len(WEIGHTS))
    path.write_bytes(tflite()[:-1])
    assert damage(path) == f"model.tflite ends at byte {len(tflite()) - 1}, its weights at {len(tflite())}"
    path.write_bytes(tflite()[:60])
    assert "is damaged: it leads to byte" in damage(path)
    path.write_bytes(b"TFL3" * 10)
    assert damage(path) != ""


# ---------------------------------------------------------------------------------------------------------- others


def test_what_is_no_saved_model(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "nothing"):
        assert read(path) is None


def test_pipes_loops_and_devices_do_not_hold_us_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.keras")
    (tmp_path / "loop.h5").symlink_to("loop.h5")
    for path in (tmp_path / "pipe.keras", tmp_path / "loop.h5", Path("/dev/zero")):
        with pytest.raises(OSError, match=r"regular|symbolic"):
            read(path)
