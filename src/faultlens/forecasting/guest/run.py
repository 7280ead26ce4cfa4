"""One run in a child of the server: builds the model, does a few steps, and says what memory each part has taken."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from . import described, examples, peaks, subject, user_file
from .during import during


def carry_out(request: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """`tell` is told what begins: of a process that dies, that is all that is known."""
    started, before = time.perf_counter(), peaks.now()
    tell("building the model")
    model = subject.make(request)
    built = peaks.now()
    tell("making examples")
    with during("Making examples"):
        data = _Data(model, request)
    result: dict[str, Any] = {"before": before, "built": built}
    for phase in request["phases"]:
        if steps := STEPS.get(phase):
            what = f"{steps.name} with a batch of {request['batch']}"
            tell(what.lower())
            with during(what):
                result[phase] = _measured(steps.carry_out, model, data, request)
        else:
            tell(f"saving as {phase}")
            result.setdefault("saves", {})[phase] = _save(model, phase)
    result["notes"] = user_file.notes
    result["example"] = data.example
    result["model"] = described.described(model)
    result["seconds"] = time.perf_counter() - started
    return result


class _Data:
    """What the model is fed with: made up, or by a function of the user's."""

    def __init__(self, model: Any, request: dict[str, Any]) -> None:
        self._request = request
        self._given = request.get("data")
        self._examples = None if self._given else examples.of_model(model, request["spec"])
        self.example = self._examples.size if self._examples else None
        self.labelled = self._examples is None or self._examples.has_labels

    def batches(self) -> Any:
        batch, steps = self._request["batch"], self._request["steps"]
        if self._given:
            return examples.given(self._given["file"], self._given["function"], batch)
        assert self._examples is not None
        return self._examples.dataset(batch, steps, self._request["pipeline"])


class _Watch(keras.callbacks.Callback):  # type: ignore[misc]
    """The peak after every step, and when it was over. Ends the phase when it has gone on for long enough."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.peaks: list[int] = []
        self.seconds: list[float] = []
        self._last = time.perf_counter()
        self._deadline = self._last + seconds

    def _note(self) -> None:
        now = time.perf_counter()
        self.peaks.append(peaks.peak())
        self.seconds.append(now - self._last)
        self._last = now

    @property
    def is_over(self) -> bool:
        return len(self.peaks) > 1 and time.perf_counter() > self._deadline

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._note()
        if self.is_over:
            self.model.stop_training = True

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._note()
        if self.is_over:
            self.model.stop_evaluating = True

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._note()
        if self.is_over:
            self.model.stop_predicting = True


def _measured(carry_out: Any, model: Any, data: _Data, request: dict[str, Any]) -> dict[str, Any]:
    exact = peaks.reset()
    watch = _Watch(request["phase_seconds"])
    carry_out(model, data, watch, request)
    return {"peaks": watch.peaks, "seconds": watch.seconds, "after": peaks.now(), "exact": exact}


def _fit(model: Any, data: _Data, watch: _Watch, request: dict[str, Any]) -> None:
    model.fit(data.batches(), epochs=1, steps_per_epoch=request["steps"], verbose=0, callbacks=[watch])


def _evaluate(model: Any, data: _Data, watch: _Watch, request: dict[str, Any]) -> None:
    model.evaluate(data.batches(), steps=request["steps"], verbose=0, callbacks=[watch])


def _predict(model: Any, data: _Data, watch: _Watch, request: dict[str, Any]) -> None:
    """Keras keeps all predictions: of one batch at a time, they are not mistaken for what a step takes."""
    batches = data.batches()
    if data.labelled:
        batches = batches.map(lambda *parts: (parts[0],)) if isinstance(batches, tf.data.Dataset) else batches
    model.predict(batches, steps=request["steps"], verbose=0, callbacks=[watch])


class _Steps(NamedTuple):
    name: str
    carry_out: Callable[[Any, _Data, _Watch, dict[str, Any]], None]


STEPS = {
    "train": _Steps("Training", _fit),
    "evaluate": _Steps("Evaluation", _evaluate),
    "predict": _Steps("Inference", _predict),
}


def _save(model: Any, form: str) -> dict[str, Any]:
    """In a folder that is gone afterwards."""
    gc.collect()
    folder = tempfile.mkdtemp(prefix="faultlens-forecast-")
    path = os.path.join(folder, "model")
    started, before = time.perf_counter(), peaks.now()
    exact = peaks.reset()
    try:
        if form == "checkpoint":
            tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(path)
        elif form == "savedmodel":
            with contextlib.redirect_stdout(open(os.devnull, "w")):
                model.export(path, verbose=False)
        elif form == ".weights.h5":
            model.save_weights(path + form)
        else:
            model.save(path + form)
        return {"peak": peaks.peak(), "before": before, "exact": exact, "seconds": time.perf_counter() - started}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
