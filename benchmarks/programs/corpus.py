"""Files with one wound each, and healthy ones, of all formats: `python corpus.py MUTATED HEALTHY_RECORDS FOLDER`.

Prints how many of each kind `faultlens scan` finds, with and without `--pixels`, and every false alarm."""

import gzip
import io
import json
import random
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from faultlens.data.engine.pool import Job
from faultlens.data.look import Wanted
from faultlens.data.scanning import LocalEngine, Options, scan

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "data"))
from tfrecords import example, file_of, sequence_example

CHANCE = random.Random(20)
NUMBERS = np.random.default_rng(20)
RECORDS = 40  # of a small file


def main():
    mutated, healthy, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    results = {"found": wounded(mutated, folder / "wounded"), "false": false_alarms(healthy, folder / "healthy")}
    print(json.dumps(results), file=sys.stderr)


# ------------------------------------------------------------------------------------------ healthy files


def picture():
    """Smooth, with some noise, as photographs are."""
    height, width = CHANCE.randint(24, 90), CHANCE.randint(24, 90)
    small = Image.fromarray(NUMBERS.integers(0, 255, (6, 6, 3), dtype=np.uint8)).resize((width, height))
    noisy = np.asarray(small, dtype=np.int16) + NUMBERS.normal(0, 6, (height, width, 3)).astype(np.int16)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def encoded(form, **options):
    out = io.BytesIO()
    picture().save(out, form, **options)
    return out.getvalue()


def records(count=RECORDS):
    for number in range(count):
        image = encoded("JPEG", quality=80)
        yield example(image=image, label=[number % 10], box=NUMBERS.random(4).astype(float).tolist())


def sequences():
    steps = [[float(each)] for each in NUMBERS.random(5)]
    return file_of(sequence_example({"id": b"%d" % number}, {"steps": steps}) for number in range(RECORDS))


def array():
    out = io.BytesIO()
    np.save(out, NUMBERS.random((CHANCE.randint(20, 60), 8)).astype(np.float32))
    return out.getvalue()


def arrays():
    out = io.BytesIO()
    np.savez_compressed(out, x=NUMBERS.random((30, 8)), y=NUMBERS.integers(0, 9, 30))
    return out.getvalue()


def hdf5():
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file.create_dataset("x", data=NUMBERS.random((60, 8)), chunks=(20, 8), compression="gzip", fletcher32=True)
        file.create_dataset("y", data=NUMBERS.integers(0, 9, 60), chunks=(20,), fletcher32=True)
    return out.getvalue()


def table(count=60):
    return pa.table({"x": NUMBERS.random(count), "label": NUMBERS.integers(0, 9, count), "name": ["a row"] * count})


def parquet():
    out = io.BytesIO()
    pq.write_table(table(), out, write_page_checksum=True)
    return out.getvalue()


def arrow():
    out = io.BytesIO()
    with pa.ipc.new_file(out, table().schema) as writer:
        writer.write_table(table())
    return out.getvalue()


def csv(rows=60):
    lines = [f"{a:.6f},{b:.6f},{CHANCE.randrange(10)}" for a, b in NUMBERS.random((rows, 2))]
    return "\n".join(["x,y,label", *lines, ""]).encode()


def members():
    for number in range(6):
        yield f"{number:04}.jpg", encoded("JPEG")
        yield f"{number:04}.cls", str(number).encode()


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def packed():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members():
            archive.writestr(name, data)
    return out.getvalue()


FORMATS = {
    "TFRecord": (".tfrecord", lambda: file_of(records())),
    "TFRecord, sequences": (".tfrecord", sequences),
    "TFRecord, GZIP": (".tfrecord.gz", lambda: gzip.compress(file_of(records(8)))),
    "TFRecord, ZLIB": (".tfrecord.zlib", lambda: zlib.compress(file_of(records(8)))),
    "JPEG": (".jpg", lambda: encoded("JPEG", quality=85)),
    "JPEG, progressive": (".jpg", lambda: encoded("JPEG", progressive=True)),
    "JPEG, restart markers": (".jpg", lambda: encoded("JPEG", restart_marker_rows=1)),
    "PNG": (".png", lambda: encoded("PNG")),
    "GIF": (".gif", lambda: encoded("GIF")),
    "BMP": (".bmp", lambda: encoded("BMP")),
    "WebP": (".webp", lambda: encoded("WEBP", quality=80)),
    "npy": (".npy", array),
    "npz": (".npz", arrays),
    "HDF5, checksums": (".h5", hdf5),
    "Parquet, checksums": (".parquet", parquet),
    "Arrow": (".arrow", arrow),
    "CSV": (".csv", csv),
    "tar": (".tar", tar),
    "zip": (".zip", packed),
}


# ----------------------------------------------------------------------------------------------- wounds


def flipped(data):
    damaged = bytearray(data)
    damaged[CHANCE.randrange(len(data))] ^= 1 << CHANCE.randrange(8)
    return bytes(damaged)


def zeroed(data):
    while True:
        damaged = bytearray(data)
        size = CHANCE.randint(16, 64)
        at = CHANCE.randrange(max(len(data) - size, 1))
        damaged[at : at + size] = bytes(len(damaged[at : at + size]))
        if damaged != data:
            return bytes(damaged)


def cut(data):
    return data[: CHANCE.randrange(1, len(data))]


def deleted(data):
    at = CHANCE.randrange(len(data))
    return data[:at] + data[at + CHANCE.randint(1, 64) :]


def inserted(data):
    at = CHANCE.randrange(len(data))
    return data[:at] + CHANCE.randbytes(CHANCE.randint(1, 64)) + data[at:]


def appended(data):
    return data + CHANCE.randbytes(CHANCE.randint(1, 64))


WOUNDS = {
    "one bit flipped": flipped,
    "a block of zeros": zeroed,
    "cut off": cut,
    "bytes deleted": deleted,
    "bytes inserted": inserted,
    "bytes behind it": appended,
    "empty": lambda _: b"",
}


def leaves_a_whole_file(data, form, wound):
    """A TFRecord file cut between two records, a CSV file cut behind a line or inside of its last cell."""
    if form.startswith("TFRecord") and "," not in form.replace(", sequences", ""):
        at, whole = 0, {0}
        while at + 16 <= len(data):
            at += 16 + int.from_bytes(data[at : at + 8], "little")
            whole.add(at)
        return wound == "cut off" and len(data) in whole
    if form == "CSV":
        return wound == "cut off" and data.count(b"\n") > 0 and data.rpartition(b"\n")[2].count(b",") in (0, 2)
    return False


def wounded(total, folder):
    folder.mkdir(parents=True)
    each = total // (len(FORMATS) * (len(WOUNDS) - 1))
    cells = {}
    for form, (suffix, make) in FORMATS.items():
        for wound, hurt in WOUNDS.items():
            for number in range(each if wound != "empty" else 2):
                data = hurt(make())
                while leaves_a_whole_file(data, form, wound):
                    data = hurt(make())
                path = folder / f"{form} {wound}".replace(" ", "_") / f"{number:04}{suffix}"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
                cells[str(path)] = form, wound
    counts = {}
    for way, pixels in (("walk", False), ("pixels", True)):
        found = scan([str(folder)], options(folder, pixels), LocalEngine())
        bad = {flaw.place.path for flaw in found.flaws if flaw.kind != "duplicate" and flaw.severity != "note"}
        for path, (form, wound) in cells.items():
            cell = counts.setdefault(form, {}).setdefault(wound, {"files": 0, "walk": 0, "pixels": 0})
            cell["files"] += way == "walk"
            cell[way] += path in bad
    return counts


def options(folder, pixels):
    return Options(job=Job(wanted=Wanted(pixels=pixels)), journal=folder.with_name(f"journal-{pixels}"))


def false_alarms(total, folder):
    """Healthy files of all formats, most of the records in large TFRecord files."""
    folder.mkdir(parents=True)
    for form, (suffix, make) in FORMATS.items():
        for number in range(40):
            path = folder / form.replace(" ", "_") / f"{number:04}{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(make())
    images = [encoded("JPEG", quality=CHANCE.randint(60, 95)) for _ in range(500)]
    for shard in range(20):
        inside = []
        for number in range(total // 20):
            features = {
                "image": CHANCE.choice(images),
                "label": [number % 10],
                "words": [CHANCE.randrange(1000) for _ in range(CHANCE.randint(0, 30))],
                "scores": NUMBERS.random(10).astype(float).tolist(),
                "text": CHANCE.randbytes(CHANCE.randint(0, 200)).hex().encode(),
            }
            inside.append(example(**features))
        (folder / f"train-{shard:05}-of-00020.tfrecord").write_bytes(file_of(inside))
    told = {}
    for pixels in (False, True):
        found = scan([str(folder)], options(folder, pixels), LocalEngine())
        told["records"], told["files"] = found.records, found.files_checked
        told.setdefault("flaws", []).extend(f"{flaw.place.path}: {flaw.reason}" for flaw in found.flaws)
    return told


if __name__ == "__main__":
    main()
