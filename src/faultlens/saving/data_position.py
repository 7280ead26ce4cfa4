"""Going on in the middle of an epoch: batches that were trained on are passed over, shuffles go on in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf


class Resumable(tf.data.Dataset):  # type: ignore[misc]
    """A dataset that can go on with the shuffle of a later epoch.

    `shuffle` draws a new order whenever an iterator of it is made. So as many are made, and thrown away, as were made
    before the save: that costs nothing, because nothing is read before a batch is asked for. A dataset that repeats
    itself without end has one iterator for all epochs, and gets there by leaving out all batches that were trained on.
    """

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._whole = dataset
        self._passes = self._passes_before_epoch = 0  # through the dataset
        self._taken = self._taken_before_epoch = 0  # batches, of the one pass that lasts
        self._leave_out = 0
        self._lasts = self._is_awaited = False
        self._tell: Callable[[str], None] = lambda _: None
        super().__init__(dataset._variant_tensor)

    def begin_training(self, steps: int | None, saved: Mapping[str, int] | None, tell: Callable[[str], None]) -> None:
        """`steps` is the length that Keras gives an epoch, `saved` what `position` told."""
        self._tell = tell
        batches = int(self.cardinality())
        self._lasts = batches < 0 and steps is not None
        self._taken = self._leave_out = 0
        if saved is None:
            return
        if batches >= 0 and steps is not None and steps != batches:
            tell(
                f"the data starts anew: epochs of {steps} batches cannot be found again in a dataset of {batches};"
                " add .repeat() to it, or leave out steps_per_epoch"
            )
        elif self._passes > saved["passes"]:
            tell("the order of the data is another one: the dataset has been used in this process already")
        else:
            self._taken = self._leave_out = saved["batches"]
            for shuffle, times in _shuffles(self._whole):
                for _ in range(times * (saved["passes"] - self._passes)):
                    iter(shuffle)
            self._passes = saved["passes"]

    def begin_epoch(self) -> None:
        self._passes_before_epoch, self._taken_before_epoch = self._passes, self._taken
        self._is_awaited = True

    def count(self, batches: int) -> None:
        self._taken += batches
        if self._passes == 0:
            self._tell(
                "after an interruption the data will have another order: Keras does not use the resumable dataset, but"
                " one that it makes of it (class_weight, a distribution strategy)"
            )

    def position(self, in_epoch: bool) -> dict[str, int]:
        """Passes before the one to go on with, and batches that earlier epochs took from that."""
        if self._lasts:
            return {"passes": self._passes - 1, "batches": self._taken_before_epoch if in_epoch else self._taken}
        return {"passes": self._passes_before_epoch if in_epoch else self._passes, "batches": 0}

    def __iter__(self) -> Iterator[Any]:
        """Keras makes an iterator when an epoch begins, and one more when it ends, which it does not use."""
        if not self._is_awaited:
            return _Later(self._begin_pass)
        self._is_awaited = False
        return self._begin_pass()

    def _begin_pass(self) -> Iterator[Any]:
        self._passes += 1
        dataset = self._whole.skip(self._leave_out) if self._leave_out else self._whole
        self._leave_out = 0
        iterator: Iterator[Any] = iter(dataset)
        return iterator

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._whole]

    @property
    def element_spec(self) -> Any:
        return self._whole.element_spec


class _Later:
    """An iterator that is only made when it is used."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make
        self._made: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._iterator())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator(), name)

    def _iterator(self) -> Iterator[Any]:
        if self._made is None:
            self._made = self._make()
        return self._made


def _shuffles(dataset: Any, times: int = 1) -> Iterator[tuple[Any, int]]:
    """The shuffles in a dataset that draw anew, and how often they do in one pass through it."""
    if shuffles_anew(dataset, deep=False):
        yield dataset, times
    kind = type(dataset).__name__
    if kind == "_RepeatDataset":
        times *= max(int(dataset._count), 0)  # without end: all is left to leaving out
    if kind != "CacheDataset":  # what is below it runs once in a process
        for each in dataset._inputs():
            yield from _shuffles(each, times)


class PassingOver:
    """Stands in for `model.train_function` until `steps` batches of the epoch have been taken and not trained on.

    Keras counts them as if they were trained on: so it does not mistake the rest of an epoch for a whole one, and all
    callbacks see the numbers that the batches have. `before` is called when the data is known, before the first batch;
    `after` when the last has been passed over."""

    def __init__(self, model: Any, steps: int, before: Callable[[Any], None], after: Callable[[], object]) -> None:
        self._model, self._steps = model, steps
        self._before, self._after = before, after
        self._function = model.train_function
        self._passed: int | None = None  # None: not begun
        model.train_function = self

    def __call__(self, iterator: Any) -> Any:
        if self._passed is None:
            self._before(iterator)
            self._passed = 0
        if self._passed >= self._steps:
            self.end()
            return self._function(iterator)
        self._pass(iterator)
        self._passed += self._model.steps_per_execution
        if self._passed >= self._steps:
            self._after()
        return self._model.get_metrics_result()

    @property
    def going_on(self) -> bool:
        """Whether the batch that has just been taken was passed over."""
        return self._model.train_function is self

    def end(self) -> None:
        if self.going_on:
            self._model.train_function = self._function

    def _pass(self, iterator: Any) -> None:
        """The last group of an epoch may be smaller. StopIteration ends the epoch, as Keras' own function has it."""
        next(iterator)
        for _ in range(self._model.steps_per_execution - 1):
            if next(iterator, None) is None:
                return


def shuffles_anew(dataset: Any, deep: bool = True) -> bool:
    """Whether each iterator of this dataset has another order, as far as can be seen."""
    if getattr(dataset, "_reshuffle_each_iteration", False) is not False:
        return True
    return deep and isinstance(dataset, tf.data.Dataset) and any(map(shuffles_anew, dataset._inputs()))
