"""How far a program had come, and what became of the model that it was saving."""

from __future__ import annotations

from faultlens.records.base import Record


class ProgressMark(Record, frozen=True):
    seconds: float  # since the start of the program
    kind: str  # "epoch", "train", "evaluate", "predict", "save", "saved", "trace", "end"
    text: str = ""  # "epoch 3", the file saved to


class Progress(Record, frozen=True):
    """How far the program had come: the last marks it left. Epochs and steps are counted from 1."""

    phase: str | None = None  # "train", "evaluate", "predict", "save", "data", "trace"
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None  # of the epoch
    steps: int | None = None
    seconds_before: float | None = None  # from the last mark to the end
    detail: str | None = None  # the file being saved
    marks: tuple[ProgressMark, ...] = ()  # oldest first


class SaveState(Record, frozen=True):
    """A save of a model, as it was on the disk."""

    path: str  # what is loaded: a file, a folder, or the prefix of a checkpoint
    generation: int | None = None  # as `faultlens.save` and TensorFlow number them
    current: bool = False  # it bears the name that was saved to
    format: str | None = None
    time: float | None = None  # when it was written, in seconds since 1970
    size: int | None = None
    whole: bool | None = None  # None: it could not be looked at
    checked: bool = False  # its checksums were compared; else its sizes and structure
    damage: str | None = None


class Saving(Record, frozen=True):
    """What the program was saving when it ended, and the saves of that name right after."""

    path: str
    under_way: bool = True  # False: its last save had ended, and left something damaged
    kept: bool = False  # `faultlens.save` keeps generations of it
    saves: tuple[SaveState, ...] = ()  # newest first
    unfinished: int | None = None  # bytes that an interrupted `faultlens.save` left beside them
    disk_free: int | None = None  # bytes left in its file system
