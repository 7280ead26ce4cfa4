"""What is odd about a data set as a whole: in the features of its Examples, in its files, beside its indexes."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest

from faultlens.data.aggregate import schema
from faultlens.data.aggregate.duplicates import duplicates
from faultlens.data.aggregate.indexes import against_indexes
from faultlens.data.aggregate.merge import Merged
from faultlens.data.aggregate.outliers import outliers
from faultlens.data.native import LIBRARY
from faultlens.errors import FaultlensError
from faultlens.records.scan import Flaw
from tfrecords import example, file_of, scanned, sequence_example

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="without its C library, the scan does not read Examples")
CHANCE = random.Random(9)
USUAL = {"label": [3], "x": [0.5, 1.5, 2.5]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.tfrecord"


def odd(path: Path, records: list[bytes], rules: schema.Schema | None = None) -> list[Flaw]:
    merged = scanned(path, file_of(records))
    return [*merged.flaws, *outliers(merged, rules)]


def usual(count: int) -> list[bytes]:
    return [example(**USUAL) for _ in range(count)]


@pytest.mark.parametrize(
    ("record", "kind", "words"),
    [
        (example(label=[3, 4], x=[0.5, 1.5, 2.5]), "differs", "number of values of the feature label is 2"),
        (example(label=[3.0], x=[0.5, 1.5, 2.5]), "differs", "type of the feature label is float"),
        (example(x=[0.5, 1.5, 2.5]), "differs", "feature label is missing"),
        (example(label=[3], x=[0.5, float("nan"), float("inf")]), "not-finite", "2 numbers are NaN or infinite"),
        (b"no Example at all, but a record", "structure", "kind of record is something else"),
    ],
)
def test_the_one_record_that_is_not_like_the_others(path: Path, record: bytes, kind: str, words: str) -> None:
    records = usual(150)
    records[77] = record
    flaws = odd(path, records)
    assert {flaw.place.record for flaw in flaws} == {77}
    assert any(flaw.kind == kind and words in flaw.reason for flaw in flaws), flaws
    assert all(flaw.place.offset == len(file_of(records[:77])) for flaw in flaws)


def test_what_varies_is_no_oddity(path: Path) -> None:
    records = [
        example(
            words=[1] * CHANCE.randint(0, 40),
            text=bytes(CHANCE.randint(0, 99)),
            label=[1],
            **({"optional": [1]} if CHANCE.random() < 0.4 else {}),
        )
        for _ in range(2000)
    ]
    assert not odd(path, records)


def test_a_second_kind_of_record_is_no_mistake(path: Path) -> None:
    records = [example(label=[1]) if number % 50 else example(label=[1, 2]) for number in range(2000)]
    assert not odd(path, records)


def test_an_additional_feature_harms_nobody(path: Path) -> None:
    records = usual(200)
    records[3] = example(**USUAL, more=[1])
    assert not odd(path, records)


def test_few_records_make_no_rule(path: Path) -> None:
    assert not odd(path, [*usual(20), example(label=[1, 2, 3], x=[1.0])])


def test_sequences(path: Path) -> None:
    records = [
        sequence_example({"id": b"a"}, {"steps": [[float(each)] for each in range(CHANCE.randint(0, 9))]})
        for _ in range(200)
    ]
    assert not odd(path, records)
    records[5] = sequence_example({"id": b"a"}, {"steps": [[1.0], [float("nan")]]})
    (flaw,) = odd(path, records)
    assert (flaw.kind, flaw.place.record, flaw.place.member) == ("not-finite", 5, "steps")


def test_records_that_are_no_examples_are_left_in_peace(path: Path) -> None:
    assert not odd(path, [CHANCE.randbytes(CHANCE.randint(0, 3000)) for _ in range(3000)])


def test_pieces_agree_with_the_whole(path: Path) -> None:
    records = usual(3000)
    records[2222] = example(label=[3], x=[1.0])
    whole = odd(path, records)
    merged = scanned(path, piece_size=9000)
    assert [*merged.flaws, *outliers(merged, None)] == whole
    assert [flaw.place.record for flaw in whole] == [2222]


def test_a_label_that_does_not_follow_its_image(path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    records = []
    for number in range(120):
        width, height = CHANCE.randint(8, 40), CHANCE.randint(8, 40)
        out = io.BytesIO()
        pillow.new("RGB", (width, height), (number, 1, 1)).save(out, "JPEG")
        tall, mask = (height + 1 if number == 50 else height), bytes(width * height + (number == 60))
        records.append(example(image=out.getvalue(), height=[tall], width=[width], mask=mask, label=[height]))
    flaws = odd(path, records)
    assert {(flaw.kind, flaw.place.record, flaw.place.member) for flaw in flaws} == {
        ("label", 50, "height"),
        ("label", 60, "mask"),
    }


def test_a_mask_that_has_not_the_size_of_its_image(path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")

    def png(width: int, height: int) -> bytes:
        out = io.BytesIO()
        pillow.new("L", (width, height)).save(out, "PNG")
        return out.getvalue()

    sizes = [(CHANCE.randint(8, 40), CHANCE.randint(8, 40)) for _ in range(150)]
    records = [example(mask=png(*size), image=png(*size), logo=png(9, 9)) for size in sizes]
    assert not odd(path, records)
    records[20] = example(image=png(20, 20), mask=png(20, 21), logo=png(9, 9))
    (flaw,) = odd(path, records)
    assert (flaw.kind, flaw.place.record) == ("label", 20)
    assert flaw.reason.startswith("image and mask are not of one size")


def test_a_damaged_image_in_a_whole_record(path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    pillow.effect_noise((90, 90), 50).save(out, "JPEG")
    records = [example(image=out.getvalue()) for _ in range(5)]
    records[2] = example(image=out.getvalue()[:-200])
    (flaw,) = odd(path, records)
    assert (flaw.kind, flaw.place.record, flaw.place.member) == ("truncated", 2, "image")
    assert flaw.place.offset == len(file_of(records[:2]))


def test_records_far_larger_than_the_rest(path: Path) -> None:
    records = [bytes(CHANCE.randint(500, 2000)) for _ in range(300)]
    records[123] = bytes(2 << 20)
    (flaw,) = odd(path, records)
    assert (flaw.kind, flaw.place.record) == ("oversized", 123)
    assert not odd(path, [bytes(10 ** CHANCE.randint(1, 6)) for _ in range(300)])


# ------------------------------------------------------------------------------------------- schema


def rules(path: Path, text: str) -> schema.Schema:
    path.write_text(text)
    return schema.read(path)


def test_a_schema_is_exact(path: Path, tmp_path: Path) -> None:
    expected = rules(tmp_path / "schema.json", '{"features": {"label": "int64[1]", "x": "float[4]", "mask": "bytes"}}')
    flaws = odd(path, [*usual(3), example(label=[1.0], x=[1.0] * 4)], expected)
    assert {(flaw.place.record, flaw.reason) for flaw in flaws} == {
        (0, "the number of values of the feature x is 3, and not 4 as the schema says"),
        (1, "the number of values of the feature x is 3, and not 4 as the schema says"),
        (2, "the number of values of the feature x is 3, and not 4 as the schema says"),
        (3, "the type of the feature label is float, and not int64 as the schema says"),
        (None, "no record has the feature mask, which the schema asks for"),
    }
    assert all(flaw.severity == "error" for flaw in flaws)


@pytest.mark.parametrize("text", ["", "[]", '{"features": {"x": "double"}}', '{"feature": {}}', "\xff"])
def test_what_is_no_schema(tmp_path: Path, text: str) -> None:
    with pytest.raises(FaultlensError):
        rules(tmp_path / "schema.json", text)


# -------------------------------------------------------------------------------- files and indexes


def files(folder: Path, **contents: bytes) -> Merged:
    merged = Merged()
    for name, data in contents.items():
        merged.files.update(scanned(folder / f"{name}.tfrecord", data).files)
    return merged


def test_duplicates_and_links(tmp_path: Path) -> None:
    one, other = file_of([b"a" * 90]), file_of([b"b" * 90])
    merged = files(tmp_path, a=one, b=other, c=one, d=file_of([b"a"]))
    (tmp_path / "e.tfrecord").hardlink_to(tmp_path / "b.tfrecord")
    merged.files.update(scanned(tmp_path / "e.tfrecord").files)
    (flaw,) = duplicates(merged.files)
    assert flaw.place.path.endswith("c.tfrecord")
    assert flaw.reason.endswith("a.tfrecord")


def test_shards_shorter_than_the_information_of_the_data_set(tmp_path: Path) -> None:
    for number, count in enumerate((5, 4)):
        path = tmp_path / f"mnist-train.tfrecord-{number:05}-of-00002"
        path.write_bytes(file_of(usual(count)))
    (tmp_path / "dataset_info.json").write_text(json.dumps({"splits": [{"name": "train", "shardLengths": ["5", "5"]}]}))
    merged = Merged()
    for path in tmp_path.glob("mnist*"):
        merged.files.update(scanned(path).files)
    (flaw,) = against_indexes(merged.files)
    assert (flaw.kind, Path(flaw.place.path).name) == ("short", "mnist-train.tfrecord-00001-of-00002")
    (tmp_path / "dataset_info.json").write_text('{"splits": [')
    (flaw,) = against_indexes(merged.files)
    assert (flaw.kind, Path(flaw.place.path).name) == ("structure", "dataset_info.json")
    (tmp_path / "dataset_info.json").write_text('{"splits": {"train": {}}}')  # of another program
    assert not list(against_indexes(merged.files))


def test_a_file_shorter_than_its_index(tmp_path: Path) -> None:
    data = file_of(usual(4))
    each = len(data) // 4
    index = tmp_path / "a.idx"
    index.write_text("".join(f"{number * each} {each}\n" for number in range(4)))
    assert not list(against_indexes(files(tmp_path, a=data).files))
    assert [flaw.kind for flaw in against_indexes(files(tmp_path, a=data[:-each]).files)] == ["short"]
    index.write_text("rubbish\n")
    assert not list(against_indexes(files(tmp_path, a=data).files))
