"""Items per second of TensorFlow's decoder of images, plain and in processes that may die: `python decode.py ROUNDS N`.

And the seconds that a death costs, beside those of a fresh Python with TensorFlow."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from faultlens.data.decode import Decoder, Decoding
from faultlens.data.formats.base import Item
from faultlens.records.scan import Place

SIZES = {"small": (64, 64), "photo": (375, 500)}
SHARE = {"small": 1, "photo": 8}  # of the items: photos take longer
AROUND = 20
DEATHS = 3
FRESH = "import tensorflow as tf; tf.io.decode_image(tf.io.encode_png(tf.zeros([1, 1, 3], tf.uint8)))"


def main():
    rounds, count = int(sys.argv[1]), int(sys.argv[2])
    results = {name: speeds(images(name, count // SHARE[name]), rounds) for name in SIZES}
    print(json.dumps({**results, "seconds": deaths(rounds)}), file=sys.stderr)


def images(name, count):
    """As many different ones as matter for the caches, again and again."""
    height, width = SIZES[name]
    chance = np.random.default_rng(0)
    coarse = [chance.integers(0, 256, (height // 8, width // 8, 3)) for _ in range(50)]
    made = [
        tf.io.encode_jpeg(tf.cast(tf.image.resize(each, (height, width)), tf.uint8), quality=90).numpy()
        for each in coarse
    ]
    return [made[number % len(made)] for number in range(count)]


def items(data):
    return (Item(Place(path="", record=number), "image", each) for number, each in enumerate(data))


def speeds(data, rounds):
    samples = {"plain": [], "plain again": [], "sandbox": []}
    with Decoder(Decoding(python=sys.executable)) as decoder:
        list(decoder.tried(items(data[:AROUND])))
        variants = {"plain": plain, "plain again": plain, "sandbox": lambda data: list(decoder.tried(items(data)))}
        plain(data[:AROUND])
        before = resident()
        order = random.Random(0)
        for _ in range(rounds):
            for name in order.sample(list(variants), len(variants)):
                start = time.perf_counter()
                assert not variants[name](data)
                samples[name].append(len(data) / (time.perf_counter() - start))
        return {**samples, "bytes": len(data[0]), "grown": resident() - before}


def plain(data):
    for each in data:
        tf.io.decode_image(each, expand_animations=False)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def deaths(rounds):
    """What an item takes that kills the decoder, among others that do not."""
    samples = {"first": [], "again": [], "fresh": []}
    good = [b"good"] * AROUND
    for _ in range(rounds):
        here = str(Path(__file__).parent)
        with Decoder(Decoding(python=sys.executable, using="deadly:decode", folder=here)) as decoder:
            list(decoder.tried(items(good)))
            for number in range(DEATHS):
                start = time.perf_counter()
                (verdict,) = decoder.tried(items([*good, b"die", *good]))
                assert verdict.kind == "deadly" and verdict.place.record == AROUND
                samples["again" if number else "first"].append(time.perf_counter() - start)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", FRESH], check=True, stderr=subprocess.DEVNULL)
        samples["fresh"].append(time.perf_counter() - start)
    return samples


main()
