"""What an item is tried with: TensorFlow's decoder of images, or a function of the user.

Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any, Callable, Optional

from faultlens_sandbox.fork_server import MAX_NAME, words

Refusal = tuple[str, str, str]  # kind of flaw, feature of the Example, words
Try = Callable[[str, bytes, Callable[[], None]], Optional[Refusal]]

BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)
UNKNOWN_FORMAT = "Unknown image file format"  # one that other versions of TensorFlow know
NO_MEMORY = ("MemoryError", "ResourceExhaustedError")
ONE_PIXEL = b"BM" + bytes.fromhex("3a000000000000003600000028000000010000000100000001001800" + "00" * 28)


def chosen(using: str | None, folder: str) -> Try:
    """Imports what is needed, and runs a first op: what that takes is not the first item's fault."""
    import tensorflow as tf

    tf.io.decode_image(ONE_PIXEL, expand_animations=False)
    if using is None:
        return lambda kind, data, begin: built_in(tf, kind, data, begin)
    sys.path.insert(0, folder)
    module, _, names = using.partition(":")
    function: Any = importlib.import_module(module)
    for name in names.split("."):
        function = getattr(function, name)
    if not callable(function):
        raise TypeError(f"{names} is not a function")

    def call(_: str, data: bytes, begin: Callable[[], None]) -> Refusal | None:
        begin()
        return refusal(lambda: function(tf.constant(data)))

    return call


def built_in(tf: Any, kind: str, data: bytes, begin: Callable[[], None]) -> Refusal | None:
    """The first refusal. What is no image that TensorFlow decodes is no fault here."""
    begun = False
    for name, image in images(tf, kind, data):
        if not begun:
            begin()
            begun = True
        refused = refusal(lambda image=image: tf.io.decode_image(image, expand_animations=False), name)  # type: ignore[misc]
        if refused and UNKNOWN_FORMAT not in refused[2]:
            return refused
    return None


def images(tf: Any, kind: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if kind == "image" and begins_like_image(data):
        yield "", data
    elif kind == "record":
        for name, value in bytes_features(tf, data):
            if begins_like_image(value):
                yield name, value


def bytes_features(tf: Any, data: bytes) -> Iterator[tuple[str, bytes]]:
    """A SequenceExample begins as an Example does, so that one type reads both."""
    try:
        example = tf.train.SequenceExample.FromString(data)
    except Exception:
        return
    named = list(example.context.feature.items())
    for name, features in example.feature_lists.feature_list.items():
        named += [(name, feature) for feature in features.feature]
    for name, feature in named:
        for value in feature.bytes_list.value:
            yield name, value


def begins_like_image(data: bytes) -> bool:
    """Texts may begin with BM, so that more is asked of a BMP."""
    if data[:3] == b"\xff\xd8\xff":
        return len(data) > 3 and 0xC0 <= data[3] < 0xFF
    if data[:2] == b"BM":
        return data[6:10] == bytes(4) and int.from_bytes(data[14:18], "little") in BMP_HEADERS
    return data[:8] == b"\x89PNG\r\n\x1a\n" or data[:6] in (b"GIF87a", b"GIF89a") or is_webp(data)


def is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def refusal(decode: Callable[[], object], name: str = "") -> Refusal | None:
    try:
        decode()
        return None
    except BaseException as error:  # SystemExit and KeyboardInterrupt as well: nothing of it may end the work
        kind = "greedy" if type(error).__name__ in NO_MEMORY else "decode"
        return kind, name[:MAX_NAME], words(error)
