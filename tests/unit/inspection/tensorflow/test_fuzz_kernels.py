"""Damaged memory: whatever stands in it, the search for ops ends soon and without harm, and invents nothing."""

from __future__ import annotations

import random
import re

import msgspec
import pytest

import kernel_images
from faultlens.inspection.tensorflow.kernels import MAX_KERNELS, Scan, kernels_or_gap
from faultlens.inspection.tensorflow.pages import MAX_READS
from faultlens.inspection.tensorflow.tensors import MAX_ALL_CONTENTS, MAX_CONTENTS, TYPES
from faultlens.records.crash import Kernel, Tensor, encode_address
from kernel_images import Image, ImageMemory, image_memory, load, scan

ROUNDS = 160  # per recorded image
MOST_CHANGES = 12

OP = re.compile(r"[A-Za-z_][\w.<>:~-]*", re.ASCII)
NODE = re.compile(r"[\w./>\\<:~^-]+", re.ASCII)
SIZES = (0, 1, 2, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


class Damage:
    """Changes to what was recorded, one kind after the other."""

    def __init__(self, image: Image, whole: ImageMemory, rng: random.Random) -> None:
        self.memory = whole.copy()
        self._rng = rng
        self._places = [(int(start, 16), len(data)) for start, data in image.memory.items()]

    def do(self) -> None:
        self._rng.choice((self._flip, self._word, self._size, self._redirect, self._circle, self._lose, self._copy))()

    def _place(self) -> int:
        start, size = self._rng.choice(self._places)
        return start + self._rng.randrange(size) & -8

    def _write(self, address: int, word: int) -> None:
        self.memory.write(address, word.to_bytes(8, "little"))

    def _flip(self) -> None:
        start, size = self._rng.choice(self._places)
        address = start + self._rng.randrange(size)
        old = self.memory.read(address, 1) or b"\0"
        self.memory.write(address, bytes([old[0] ^ 1 << self._rng.randrange(8)]))

    def _word(self) -> None:
        self._write(self._place(), self._rng.getrandbits(64))

    def _size(self) -> None:
        self._write(self._place(), self._rng.choice(SIZES))

    def _redirect(self) -> None:
        self._write(self._place(), self._place() + self._rng.choice((0, 0, 0, 1, -8)))

    def _circle(self) -> None:
        address = self._place()
        self._write(address, address - self._rng.choice((0, 8, 16, 24, 64)))

    def _lose(self) -> None:
        self.memory.pages.pop(self._place() & -ImageMemory.PAGE, None)

    def _copy(self) -> None:
        self.memory.write(self._place(), self.memory.read(self._place(), 8 * self._rng.randrange(1, 32)))


@pytest.mark.parametrize("name", kernel_images.names())
def test_damaged_memory_does_no_harm(name: str) -> None:
    image = load(name)
    whole = image_memory(image)
    answers = []
    for number in range(ROUNDS):
        rng = random.Random(f"{name} {number}")
        damage = Damage(image, whole, rng)
        for _ in range(rng.randrange(1, MOST_CHANGES)):
            damage.do()
        damage.memory.reads = 0
        scanned = scan(image, damage.memory)
        assert damage.memory.reads <= MAX_READS
        _check(scanned)
        answers.append(scanned.kernels == image.kernels)
    assert any(answers) and not all(answers), "the changes should neither spare nor break everything"


def test_damaged_registers_and_stack_pointers_do_no_harm() -> None:
    for name in kernel_images.names():
        image = load(name)
        for number in range(20):
            rng = random.Random(f"{name} {number}")
            registers = {
                thread: {**known, "rsp": rng.choice((*SIZES, rng.getrandbits(64), known["rsp"] + rng.randrange(9999)))}
                for thread, known in image.registers.items()
            }
            _check(scan(msgspec.structs.replace(image, registers=registers)))


def _check(scanned: Scan) -> None:
    assert len(scanned.kernels) <= MAX_KERNELS
    assert sum(kernel.at_fault for kernel in scanned.kernels) <= 1
    tensors = {tensor for kernel in scanned.kernels for tensor in kernel.inputs if tensor}
    assert sum(len(tensor.contents or b"") for tensor in tensors) <= MAX_ALL_CONTENTS
    for kernel in scanned.kernels:
        _check_kernel(kernel)
    for tensor in tensors:
        _check_tensor(tensor)


def _check_kernel(kernel: Kernel) -> None:
    assert OP.fullmatch(kernel.op)
    assert NODE.fullmatch(kernel.node)
    assert kernel.kernel_class is None or kernel.kernel_class.isprintable()
    assert all(name.isidentifier() and not name.startswith("_") for name in kernel.attributes)
    assert msgspec.json.decode(msgspec.json.encode(kernel, enc_hook=encode_address))


def _check_tensor(tensor: Tensor) -> None:
    sizes = {kind.name: kind.size for kind in TYPES.values()}
    assert tensor.dtype in sizes
    assert len(tensor.shape) <= 254
    assert all(0 <= size < 1 << 63 for size in tensor.shape)
    assert tensor.contents is None or len(tensor.contents) == tensor.size <= MAX_CONTENTS
    assert sum(map(len, tensor.strings or ())) <= MAX_CONTENTS


def test_a_failure_of_the_search_is_told_and_not_raised() -> None:
    image = load("eager_2.21")
    found = kernels_or_gap(None, image.mappings, image.threads, image.registers)  # no memory to read from
    assert found.kernels == ()
    assert "failed" in found.gaps[0]
