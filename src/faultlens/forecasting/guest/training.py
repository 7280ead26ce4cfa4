"""Notices that the user's own code begins to train, before a step has been made: what one leaves in memory would hide
what we want to see."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

FIT = ((keras.Model, "fit"), (keras.Model, "train_on_batch"))
UPDATE = ((keras.optimizers.Optimizer, "apply"), (keras.optimizers.Optimizer, "apply_gradients"))  # people's own loops


class TrainingBegan(BaseException):
    def __init__(self, owner: Any, call: str) -> None:
        super().__init__(call)
        self.owner = owner  # the model, or the optimizer
        self.call = call


@contextlib.contextmanager
def forbidden(*starts: tuple[Any, str]) -> Iterator[None]:
    """Raises TrainingBegan where a training would begin with one of these."""
    with contextlib.ExitStack() as stack:
        for owner, name in starts:
            stack.enter_context(_replaced(owner, name))
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str) -> Iterator[None]:
    def begin(self: Any, *_: Any, **__: Any) -> None:
        raise TrainingBegan(self, name)

    inherited = name not in vars(owner)
    original = getattr(owner, name, None)
    setattr(owner, name, begin)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
