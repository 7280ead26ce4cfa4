"""`SafeCheckpoint`: saving while Keras trains, and going on after an interruption exactly where the training stood.

from faultlens.keras import SafeCheckpoint
model.fit(data, epochs=10, callbacks=[SafeCheckpoint("model.keras")])
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Mapping
from typing import Any

from faultlens.errors import FaultlensError
from faultlens.model_files.generations import Generation
from faultlens.saving import save, training_state
from faultlens.saving.attempts import Attempts
from faultlens.saving.background import TIME_LIMIT
from faultlens.saving.monitored import Monitored, as_json
from faultlens.saving.restore import described
from faultlens.saving.resumption import Resumption
from faultlens.saving.series import Series
from faultlens.saving.termination import Termination

try:
    import keras
except ImportError as error:
    raise FaultlensError("faultlens.keras needs Keras 3, which is not installed.", "pip install keras") from error
if int(keras.__version__.partition(".")[0]) < 3:
    raise FaultlensError(
        f"faultlens.keras needs Keras 3, and this is Keras {keras.__version__}.",
        "Call faultlens.save(model, path) in a callback of your own, or pip install --upgrade keras tensorflow.",
    )

__all__ = ["SafeCheckpoint"]

WEIGHTS = ".weights.h5"
# When the save was made from which a model goes on: of several callbacks, the one with the newest save restores it.
_resumed: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()


class SafeCheckpoint(keras.callbacks.Callback):  # type: ignore[misc]
    """In place of `keras.callbacks.ModelCheckpoint` and `BackupAndRestore`.

    Arguments that `ModelCheckpoint` has too: `filepath` (it ends in `.keras`, `.weights.h5` or `.h5`, and may hold
    placeholders such as `{epoch:02d}` and `{val_loss:.2f}`), `monitor`, `verbose`, `save_best_only`,
    `save_weights_only`, `mode`, `save_freq` ("epoch" or a number of batches), `initial_value_threshold`.

    keep: how many saves are kept: generations of one name, or, with placeholders, names. None keeps all. The best of
        several names is never removed.
    background: save in a forked process while the training goes on. One at a time: the next waits for it.
    resume: at the beginning of `fit`, go on from the newest save that is whole.
    strict: do not save a model that could not be rebuilt from the file; by default this is only told.
    check_values: also look for NaN and infinite values.
    time_limit: seconds after which a save in the background is given up.
    save_on_sigterm: when SIGTERM arrives, save after the current batch and let the signal do what it would have done.
        By default so, except with `save_best_only`.

    A save that fails is told once and does not end the training."""

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
        initial_value_threshold: float | None = None,
        *,
        keep: int | None = 2,
        background: bool = False,
        resume: bool = True,
        strict: bool = False,
        check_values: bool = False,
        time_limit: float = TIME_LIMIT,
        save_on_sigterm: bool | None = None,
    ) -> None:
        super().__init__()
        self.filepath = os.fspath(filepath)
        self.save_best_only, self.save_freq, self.verbose, self.resume = save_best_only, save_freq, verbose, resume
        self.keep = sys.maxsize if keep is None else keep
        self.strict = strict
        _check_arguments(self, save_weights_only, bool(save_on_sigterm))
        self._monitored = Monitored(monitor, mode, initial_value_threshold)
        self._series = Series(self.filepath)
        self._options = {"background": background, "time_limit": time_limit, "check_values": check_values}
        self._attempts = Attempts()
        waits = not save_best_only if save_on_sigterm is None else save_on_sigterm
        self._termination = Termination(demanded=bool(save_on_sigterm)) if waits else None
        self._ended_well = False
        self._data: Any = None  # the dataset of `resumable`
        self._resumption: Resumption | None = None
        self._epoch = self._step = 0  # where to go on
        self._since_save = 0  # batches
        self._drawn_before: dict[str, Any] = {}  # the random numbers at the beginning of the epoch

    @property
    def best(self) -> float | None:
        return self._monitored.best

    def resumable(self, dataset: Any) -> Any:
        """The dataset for `fit`, if it shuffles anew in every epoch: `fit(checkpoint.resumable(dataset), …)`.

        After an interruption the epoch goes on in the order in which it was begun, and the next ones have the orders
        that they would have had. `dataset` is a `tf.data.Dataset` whose `shuffle` has a seed: its own, or that of
        `keras.utils.set_random_seed`."""
        from faultlens.saving.data_position import Resumable

        self._data = Resumable(dataset)
        return self._data

    # ------------------------------------------------------------------------------- called by Keras

    def set_model(self, model: Any) -> None:
        if not isinstance(model, keras.Model):
            raise FaultlensError(
                f"SafeCheckpoint needs a model of Keras 3, and this is one of {type(model).__module__}.",
                "Call faultlens.save(model, path) in a callback of that Keras.",
            )
        super().set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        self._epoch = self._step = self._since_save = 0
        self._series = Series(self.filepath if self.strict else self._writable_path())
        if self._resumption is not None:
            self._resumption.end()  # an exception may have ended the last `fit`
        state = self._resume() if self.resume and not self._ended_well else None
        if self._data is not None:
            self._data.begin_training(self._steps(), (state or {}).get("data"), self._attempts.tell)
        self._ended_well = False
        if self._termination is not None:
            self._termination.begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._epoch, self._step = epoch, 0
        self._drawn_before = training_state.program_generators()
        if self._data is not None:
            self._data.begin_epoch()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        group = self.model.steps_per_execution
        done = (batch // group + 1) * group  # some releases of Keras tell the first batch of a group, others the last
        taken, self._step = done - self._step, done
        if self._data is not None:
            self._data.count(taken)
        if self._resumption is not None and self._resumption.is_passing:
            self._end_if_asked()  # without a save: nothing has changed since the one that is there
            return
        self._since_save += taken
        if self._is_asked_to_end():
            self._save(self._epoch, logs or {}, background=False, last=True)
            self._end_if_asked()
        elif isinstance(self.save_freq, int) and self._since_save >= self.save_freq:
            self._since_save = 0
            self._save_if_wanted(self._epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._resumption is not None:
            self._resumption.end()
        if not (self.model.stop_training and self._step < (self._steps() or 0)):  # else somebody stopped in the middle
            self._epoch, self._step = epoch + 1, 0
        if self._is_asked_to_end():
            complete = {name: value for name, value in (logs or {}).items() if not name.startswith("val_")}
            self._save(epoch, complete, background=False, last=True)
            self._end_if_asked()
        elif self.save_freq == "epoch" and not self._is_over():
            self._save_if_wanted(epoch, logs or {})

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        if self._is_asked_to_end():
            self.model.stop_evaluating = True  # who sent SIGTERM will not wait for the end of a long validation

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        self._attempts.settle(wait=True)
        self._ended_well = True
        if _resumed.pop(self.model, None) is not None:
            self.model._initial_epoch = None  # or the next `fit` of this model would begin there too
        self._end_if_asked()
        if self._termination is not None:
            self._termination.end()

    # ---------------------------------------------------------------------------------------- saving

    def _save_if_wanted(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """Every state, or those that are better than all before."""
        self._attempts.settle()
        monitored, value = self._monitored, self._monitored.value_in(logs)
        if not self.save_best_only:
            self._save(epoch, logs)
            return
        monitored.find_direction(self.model)
        if value is None:
            there = ", ".join(sorted(logs)) or "nothing"
            self._attempts.tell(f"{monitored.name} is not a number in the logs ({there}), so every state is saved")
        elif monitored.direction is None:
            self._attempts.tell(
                f"it is not known whether {monitored.name} should be small or large, so every state is saved;"
                " say mode='min' or mode='max'"
            )
        elif monitored.is_better(value, monitored.best):
            monitored.best = value
        else:
            self._say(f"Epoch {epoch + 1}: {monitored.name} is {value:.5f}, the best was {monitored.best}")
            return
        self._save(epoch, logs)

    def _save(self, epoch: int, logs: Mapping[str, Any], **options: Any) -> None:
        best, series = self._monitored.best, self._series
        values = {**logs, "epoch": epoch + 1, **({"batch": self._step} if self._step else {})}
        path = series.name(values, self._attempts.tell)
        self._say(f"Epoch {epoch + 1}: saving to {path}")

        def attempt() -> Any:
            keep = 1 if series.varies else self.keep
            training = self._state(logs)
            os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)  # as `ModelCheckpoint` does
            return save(self.model, path, keep=keep, strict=self.strict, training=training, **self._options | options)

        def done(succeeded: bool) -> None:
            self._monitored.conclude(best, succeeded)
            if succeeded and series.varies:
                self._prune()

        self._attempts.make(attempt, done)

    def _writable_path(self) -> str:
        """Keras cannot write a model with a layer that it cannot describe; but it can write the weights."""
        path = self.filepath
        if path.endswith(WEIGHTS):
            return path
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of lambdas and the like: each save says it
                self.model.to_json()
        except Exception as error:
            path = path.removesuffix(".keras").removesuffix(".h5") + WEIGHTS
            why = " ".join(str(error).split())[:300]
            self._attempts.tell(
                f"only the weights are saved, to {path}, because Keras cannot describe the model: {why}"
            )
        return path

    def _state(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        return training_state.capture(
            self.model,
            epoch=self._epoch,
            step=self._step,
            monitor=self._monitored.name,
            monitored=as_json(self._monitored.value_in(logs)),
            best=as_json(self._monitored.best),
            data=self._data.position(in_epoch=self._step > 0) if self._data is not None else None,
            drawn_before=self._drawn_before if self._step else None,
        )

    def _prune(self) -> None:
        self._monitored.find_direction(self.model)
        try:
            self._series.prune(self.keep, self._monitored)
        except Exception as error:
            self._attempts.tell(f"Old saves were not removed: {error}")

    # -------------------------------------------------------------------------------------- resuming

    def _resume(self) -> Mapping[str, Any] | None:
        """Find the newest save of this training and go on from there, if no other callback has a newer one."""
        found = self._series.newest(self._attempts.tell)
        if found is None or found.manifest is None:
            return None
        state = found.manifest.training
        if state.get("best") is not None:
            self._monitored.best = self._monitored.saved = state["best"]
        if _resumed.get(self.model, 0.0) > found.manifest.time:
            return None
        _resumed[self.model] = found.manifest.time
        self._resumption = Resumption(self.model, found, state, self._attempts.tell)
        self._resumption.begin(has_order=self._data is not None)
        self._tell_where(found, state)
        return state

    def _tell_where(self, found: Generation, state: Mapping[str, Any]) -> None:
        epochs, done = (self.params or {}).get("epochs"), state["epoch"]
        if epochs is not None and done >= epochs:
            self._attempts.tell(
                f"nothing is left to train: {found.path} has done {done} epochs, and epochs={epochs}. To train anew,"
                " give resume=False or remove it"
            )
        else:
            step = f", after batch {state['step']}" if state["step"] else ""
            self._say(f"Going on from {described(found)} with epoch {done + 1}{step}", always=True)

    # ------------------------------------------------------------------------------------------ other

    def _is_asked_to_end(self) -> bool:
        return self._termination is not None and self._termination.asked

    def _is_over(self) -> bool:
        return self._termination is not None and self._termination.over

    def _end_if_asked(self) -> None:
        if self._termination is not None and self._termination.asked:
            self._attempts.settle(wait=True)
            self.model.stop_training = True  # if the signal does not end the program
            self._termination.hand_over()

    def _steps(self) -> int | None:
        """In an epoch, if Keras knows."""
        steps: int | None = (self.params or {}).get("steps")
        return steps

    def _say(self, text: str, always: bool = False) -> None:
        if self.verbose > 0 or (always and (self.params or {}).get("verbose")):
            print(f"\n{text}", flush=True)


def _check_arguments(checkpoint: SafeCheckpoint, save_weights_only: bool, save_on_sigterm: bool) -> None:
    """What can be known before hours of training."""
    path, frequency = checkpoint.filepath, checkpoint.save_freq
    if not path.endswith((".keras", ".h5")):
        raise ValueError(f"filepath={path!r} must end in .keras, .weights.h5 or .h5")
    if save_weights_only and not path.endswith(WEIGHTS):
        raise ValueError(f"filepath={path!r} must end in .weights.h5, because of save_weights_only=True")
    if frequency != "epoch" and (not isinstance(frequency, int) or frequency < 1):
        raise ValueError(f"save_freq={frequency!r} is neither 'epoch' nor a number of batches")
    if checkpoint.keep < 1:
        raise ValueError(f"keep={checkpoint.keep} saves nothing: the newest is one of them")
    if save_on_sigterm and checkpoint.save_best_only:
        raise ValueError("save_on_sigterm=True saves a state that is not the best: use two callbacks")
