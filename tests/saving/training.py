"""A training that is killed and started again: what it ends with, and what it was told.

Run as a program it has TensorFlow loaded and waits; for each line of JSON it forks a process that trains, as a script
that is started anew would."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Data = Literal["arrays", "dataset", "unknown length", "repeated", "PyDataset"]
EPOCHS, BATCHES, BATCH_SIZE = 3, 5, 8


@dataclass(frozen=True)
class Run:
    path: str  # to save to
    data: Data = "dataset"
    save_freq: str | int = "epoch"
    background: bool = False
    signal_at: tuple[int, int] | None = None  # epoch and batch, after which it sends itself a signal
    signal: int = signal.SIGKILL
    save_on_sigterm: bool | None = None
    handler: bool = False  # it has a handler of its own for SIGTERM
    built: bool = True


@dataclass(frozen=True)
class Ended:
    status: int  # negative: the signal that it died by
    digest: str = ""  # of weights and optimizer
    logs: dict[str, list[float]] | None = None
    warnings: tuple[str, ...] = ()
    heard: int = 0  # how often the handler was called


class Trainings:
    """The side of the tests."""

    def __enter__(self) -> Trainings:
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(60)

    def run(self, wanted: Run) -> Ended:
        assert self._server.stdin and self._server.stdout
        print(json.dumps(asdict(wanted)), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        return Ended(**{**answer, "warnings": tuple(answer.get("warnings", ()))})


def train(wanted: Run) -> dict[str, Any]:
    import keras
    import numpy as np

    from faultlens.keras import SafeCheckpoint

    heard: list[int] = []
    if wanted.handler:
        signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    keras.utils.set_random_seed(7)
    layers = [keras.layers.Dense(12, activation="relu"), keras.layers.Dropout(0.3), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((6,)), *layers] if wanted.built else layers)
    model.compile("adam", "mse", metrics=["mae"])
    checkpoint = SafeCheckpoint(
        wanted.path,
        save_freq=wanted.save_freq,
        background=wanted.background,
        save_on_sigterm=wanted.save_on_sigterm,
    )

    class Signal(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            assert logs["loss"] > 0  # other callbacks find what they expect, also while batches are passed over
            if wanted.signal_at is not None and [self.epoch, batch] == list(wanted.signal_at):
                os.kill(os.getpid(), wanted.signal)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        history = model.fit(**data(wanted.data, checkpoint), epochs=EPOCHS, verbose=0, callbacks=[checkpoint, Signal()])
    state = [np.ascontiguousarray(each.numpy()).tobytes() for each in (*model.weights, *model.optimizer.variables)]
    return {
        "digest": hashlib.sha256(b"".join(state)).hexdigest(),
        "logs": history.history,
        "warnings": [str(each.message) for each in said if each.category is RuntimeWarning],
        "heard": len(heard),
    }


def data(kind: Data, checkpoint: Any) -> dict[str, Any]:
    import keras
    import numpy as np
    import tensorflow as tf

    x = np.random.default_rng(0).random((BATCHES * BATCH_SIZE, 6), dtype="float32")
    y = x[:, :1] * 2

    class Batches(keras.utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return BATCHES

        def __getitem__(self, index: int) -> Any:
            part = slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE)
            return x[part], y[part]

    if kind == "arrays":
        return {"x": x, "y": y, "batch_size": BATCH_SIZE, "validation_split": 0.2}
    if kind == "PyDataset":
        return {"x": Batches()}
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    if kind == "unknown length":
        dataset = dataset.filter(lambda *_: True)
    shuffled = dataset.shuffle(len(x), seed=3)
    if kind == "repeated":
        return {"x": checkpoint.resumable(shuffled.repeat().batch(BATCH_SIZE)), "steps_per_epoch": BATCHES - 1}
    return {"x": checkpoint.resumable(shuffled.batch(BATCH_SIZE).shuffle(3, seed=4).prefetch(2))}


def serve() -> None:
    import keras
    import tensorflow

    for line in sys.stdin:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(2, 1)
            try:
                os.write(writer, json.dumps(train(Run(**json.loads(line)))).encode())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answers:
            answer = answers.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status, **(json.loads(answer) if answer else {})}), flush=True)
    _ = keras, tensorflow


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    serve()
