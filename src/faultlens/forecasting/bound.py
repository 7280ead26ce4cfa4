"""What a training must not exceed: the memory that is left here, a number, or the memory of a GPU."""

from __future__ import annotations

import os
import re

from faultlens.errors import FaultlensError
from faultlens.records.forecast import Bound
from faultlens.system.cgroup import cgroup_of
from faultlens.system.memory_limit import MACHINE, tightest_room
from faultlens.system.nvidia_smi import survey
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.text.sizes import MIB, from_words

# MiB, as nvidia-smi shows them. Where a card was sold in two sizes, the name without a size means the smaller one.
GPUS = {
    "T4": 15_360, "P100": 16_280, "V100": 16_160, "V100-32GB": 32_510, "L4": 23_034, "A10": 23_028, "L40S": 46_068,
    "A100": 40_960, "A100-80GB": 81_920, "H100": 81_559, "H200": 143_771, "RTX3090": 24_576, "RTX4090": 24_564,
}  # fmt: skip
DRIVER_KEEPS = 640  # of them, for itself: 616 on an H200
_HOW = f"Say auto, a size as 8GiB, gpu, or one of {', '.join(GPUS)}."


def bound_of(text: str) -> Bound:
    """`auto`, `8GiB`, `gpu`, `gpu:1`, `A100-80GB`."""
    wanted = text.strip()
    if wanted.lower() == "auto":
        return here()
    number = re.fullmatch(r"gpu(?::(\d{1,3}))?", wanted, re.IGNORECASE)
    if number:
        return _own_gpu(int(number[1] or 0))
    named = {name.lower(): name for name in GPUS}.get(re.sub(r"[ _]|nvidia", "", wanted.lower()))
    if named:
        return Bound(limit=(GPUS[named] - DRIVER_KEEPS) * MIB, what=f"NVIDIA {named}", gpu=True)
    size = from_words(wanted)
    if not size:
        raise FaultlensError(f"{one_line(text, 60)!r} is not a limit.", _HOW)
    return Bound(limit=size, what="as given")


def here() -> Bound:
    """What a program that is started now can get before the kernel kills it."""
    room = tightest_room(cgroup_of())
    if room is None:
        raise FaultlensError("The memory of this machine cannot be read.", "Say it with --limit 8GiB.")
    what = "left on this machine" if room.where == MACHINE else "left in the control group"
    return Bound(limit=max(room.left, 0), what=what)


def _own_gpu(index: int) -> Bound:
    found = survey(dict(os.environ))
    if found is None:
        raise FaultlensError("No GPU is known here: there is no nvidia-smi.", _HOW)
    if not found.gpus:
        why = f": {one_line(found.problem, 200)}" if found.problem else ""
        raise FaultlensError(f"nvidia-smi shows no GPU{why}.", _HOW)
    if index >= len(found.gpus):
        raise FaultlensError(f"There is no GPU {index}: nvidia-smi shows {count(len(found.gpus), 'GPU')}.", _HOW)
    gpu = found.gpus[index]
    if gpu.memory is None:
        raise FaultlensError(f"nvidia-smi does not say how much memory GPU {index} has.", _HOW)
    return Bound(limit=gpu.memory, what=gpu.name, gpu=True)
