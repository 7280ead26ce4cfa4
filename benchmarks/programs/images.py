"""Looks at images in three ways, in turns, and prints what each took and found: python images.py ROUNDS DAMAGES."""

import io
import json
import random
import sys
import time
from collections.abc import Callable

import numpy as np
import simplejpeg
import tensorflow as tf
from PIL import Image

from faultlens.data.images import walk
from faultlens.data.images.pixels import decode

tf.config.threading.set_intra_op_parallelism_threads(1)
PHOTOS, TIMES = 12, 5  # of each sort, all of other sizes; each is looked at so often in a round
BLOCK = 4096  # of file systems
Damage = Callable[[bytes, int, random.Random], bytes]


def main(rounds: int, damages: int) -> None:
    results = {"speed": speed(rounds), "found": found(damages)}
    print(json.dumps(results), file=sys.stderr)


def photo(width: int, height: int, seed: int) -> Image.Image:
    """Noise with the spectrum of photos, and some edges."""
    chance = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = 1
    waves = chance.standard_normal((2, 4, *frequency.shape)) / frequency**1.2
    planes = np.fft.irfft2(waves[0] + 1j * waves[1], (height, width))
    planes /= planes.std((1, 2), keepdims=True)
    pixels = np.stack([120 + 40 * planes[0] + 10 * each for each in planes[1:]], -1)
    for _ in range(12):
        left, top = chance.integers(0, width), chance.integers(0, height)
        pixels[top : top + height // 4, left : left + width // 4] += chance.normal(0, 30, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, form: str = "JPEG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


# --------------------------------------------------------------------------------------------- speed


def speed(rounds: int) -> dict[str, dict[str, object]]:
    small, large = ([photo(width - 8 * n, width * 3 // 4, n) for n in range(PHOTOS)] for width in (640, 1500))
    sorts = {
        "baseline, small": [encoded(each, quality=85) for each in small],
        "tables of its own, small": [encoded(each, quality=85, optimize=True) for each in small],
        "restart markers, small": [encoded(each, quality=85, restart_marker_rows=1) for each in small],
        "progressive, small": [encoded(each, quality=85, progressive=True) for each in small],
        "baseline, large": [encoded(each, quality=85) for each in large],
    }
    return {
        name: {"bytes": sum(map(len, photos)) / len(photos), "seconds": taken(photos, rounds)}
        for name, photos in sorts.items()
    }


def taken(photos: list[bytes], rounds: int) -> dict[str, list[float]]:
    """CPU seconds for one photo."""
    ways = {"plain": tf.io.decode_jpeg, "plain again": tf.io.decode_jpeg, "walk": walk, "pixels": walked_and_decoded}
    ways["full"] = lambda data: simplejpeg.decode_jpeg(data, "RGB", strict=True)
    order, seconds = random.Random(0), {way: [] for way in ways}
    for number in range(rounds + 1):  # the first one warms up
        for way in order.sample(list(ways), len(ways)):
            start = time.process_time()
            for each in photos * TIMES:
                ways[way](each)
            if number:
                seconds[way].append((time.process_time() - start) / len(photos) / TIMES)
    return seconds


def walked_and_decoded(data: bytes) -> bool:
    """Whether something was found."""
    walked = walk(data)
    return seen_by_walk(data) or any(problem.severity != "note" for problem in decode(data, walked))


# --------------------------------------------------------------------------------------------- found


def found(count: int) -> dict[str, dict[str, dict[str, int]]]:
    damages: dict[str, Damage] = {"cut": cut, "a bit": flipped, "zeros": zeroed, "another file": mixed}
    ways = {"walk": seen_by_walk, "pixels": walked_and_decoded, "tensorflow": refused_by_tensorflow}
    results = {}
    for kind, data in images().items():
        healthy = {way: look(data) for way, look in ways.items()}
        assert not healthy["walk"] and not healthy["pixels"], f"a false alarm: {kind}"
        results[kind] = {}
        for name, damage in damages.items():
            chance = random.Random(f"{kind} {name}")
            damaged = [damage(data, data_of(data), chance) for _ in range(count)]
            results[kind][name] = {
                way: -1 if healthy[way] else sum(map(look, damaged)) / count for way, look in ways.items()
            }
    return results


def images() -> dict[str, bytes]:
    image = photo(480, 360, 99)
    return {
        "JPEG": encoded(image, quality=85),
        "JPEG with restart markers": encoded(image, quality=85, restart_marker_rows=1),
        "JPEG, progressive": encoded(image, quality=85, progressive=True),
        "PNG": encoded(image, "PNG"),
        "GIF": encoded(image, "GIF"),
        "BMP": encoded(image, "BMP"),
        "WebP": encoded(image, "WEBP"),
        "WebP, lossless": encoded(image, "WEBP", lossless=True, method=0),
    }


def data_of(image: bytes) -> int:
    """Where headers have ended."""
    return image.index(b"\xff\xda") + 14 if image.startswith(b"\xff\xd8") else 1024


def cut(data: bytes, start: int, chance: random.Random) -> bytes:
    return data[: chance.randrange(start, len(data))]


def flipped(data: bytes, start: int, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    damaged[chance.randrange(start, len(data) - 2)] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def zeroed(data: bytes, start: int, chance: random.Random) -> bytes:
    return replaced(data, start, chance, bytes(BLOCK))


def mixed(data: bytes, start: int, chance: random.Random) -> bytes:
    return replaced(data, start, chance, chance.randbytes(BLOCK))


def replaced(data: bytes, start: int, chance: random.Random, block: bytes) -> bytes:
    at = chance.randrange(-(-start // BLOCK), len(data) // BLOCK) * BLOCK
    return data[:at] + block + data[at + BLOCK :]


def seen_by_walk(data: bytes) -> bool:
    walked = walk(data)
    return walked is None or any(problem.severity != "note" for problem in walked.problems)


def refused_by_tensorflow(data: bytes) -> bool:
    try:
        tf.io.decode_image(data)
    except tf.errors.InvalidArgumentError:
        return True
    return False


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
