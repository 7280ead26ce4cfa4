"""Megabytes per CPU second of everything that reads TFRecord files: `python records.py ROUNDS MEGABYTES FOLDER`.

All in one process, in turns; CPU seconds of all its threads. The files are in the page cache."""

import json
import os
import random
import sys
import time
from functools import partial
from pathlib import Path

import google_crc32c
import tensorflow as tf
from tfrecords_of import write

from faultlens.data.formats.tfrecord import TFRecord
from faultlens.data.look import Look, Wanted
from faultlens.data.native import walker
from faultlens.data.native.layout import StateC
from faultlens.data.source import opened
from faultlens.data.tfrecord.feed import WINDOW
from faultlens.records.scan import Identity, Piece

SIZES = (100_000, 1_000)
BLOCK = 1 << 16  # below what malloc takes from the kernel each time


def main():
    rounds, megabytes, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    results = {}
    for size in SIZES:
        path = folder / f"{size}.tfrecord"
        write(path, size, megabytes * 1_000_000)
        data = path.read_bytes()
        variants = {
            "read": partial(read, path),
            "crc": lambda data=data: google_crc32c.value(data),
            "read and crc": partial(read_and_sum, path),
            "memory": partial(in_memory, bytearray(data)),
            "file": partial(in_file, path),
            "tf.data": partial(consume, path),
            "tf_record_iterator": partial(iterate, path),
        }
        order = random.Random(size)
        samples = {name: [] for name in variants}
        for _ in range(rounds):
            for name in order.sample(list(variants), len(variants)):
                samples[name].append(len(data) / 1e6 / seconds(variants[name]))
        results[size] = samples
        path.unlink()
    print(json.dumps(results), file=sys.stderr)


def seconds(variant):
    start = time.process_time()
    variant()
    return time.process_time() - start


def read(path):
    buffer = memoryview(bytearray(WINDOW))
    descriptor = os.open(path, os.O_RDONLY)
    at = 0
    while count := os.preadv(descriptor, [buffer], at):
        at += count
    os.close(descriptor)


def read_and_sum(path):
    descriptor = os.open(path, os.O_RDONLY)
    crc = 0
    while part := os.read(descriptor, BLOCK):  # the library wants bytes
        crc = google_crc32c.extend(crc, part)
    os.close(descriptor)


def in_memory(data):
    state = StateC()
    state.limit = 1 << 62
    assert walker().walk(data, len(data), 0, state) == len(data)


def in_file(path):
    with opened(str(path)) as source:
        size = path.stat().st_size
        seen = look(str(path), size)
        TFRecord().check(source, seen.piece, seen)
        checked = seen.checked()
    assert not checked.flaws and checked.left == size


def look(path, size):
    return Look(Piece(path=path, format="TFRecord", start=0, end=size, identity=Identity(size=size)), Wanted())


def consume(path):
    for _ in tf.data.TFRecordDataset(str(path)):
        pass


def iterate(path):
    for _ in tf.compat.v1.io.tf_record_iterator(str(path)):
        pass


main()
