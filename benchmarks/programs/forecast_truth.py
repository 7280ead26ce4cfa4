"""How much memory does a plain training of this model take? python forecast_truth.py MODEL BATCH [--phase …]."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLER = """\
import re, sys, time
most = 0
while True:
    try:
        with open(f"/proc/{sys.argv[1]}/status") as file: text = file.read()
    except OSError:
        break
    kib = [int(found) for found in re.findall(r"^Rss(?:Anon|Shmem):\\s+(\\d+)", text, re.M)]
    if not kib: break
    if sum(kib) > most:
        most = sum(kib)
        with open(sys.argv[2], "w") as file: file.write(str(most))
    time.sleep(0.002)
"""
LIMIT = 8 << 30
POOL = 2  # batches that exist as examples


def main() -> None:
    arguments = _arguments()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory(prefix="forecast-truth-") as folder:
        sampler = _sampler(Path(folder)) if arguments.check else None
        numbers = {"model": arguments.model, "batch": arguments.batch, **_measured(arguments, Path(folder))}
        if sampler:
            numbers["sampled"] = int((Path(folder) / "most").read_text()) * 1024
            sampler.kill()
            sampler.wait()
    print(json.dumps(numbers))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--phase", default="training", choices=("training", "evaluation", "prediction"))
    parser.add_argument("--steps", type=int, default=10, help="of an epoch; there are two")
    parser.add_argument("--optimizer", help="another than the model's")
    parser.add_argument("--save", action="store_true", help="measure the saves after the training")
    parser.add_argument("--check", action="store_true", help="sample from outside, too")
    return parser.parse_args()


def _measured(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    import forecast_data
    import forecast_models
    import keras
    import tensorflow as tf

    entry = forecast_models.MODELS[arguments.model]
    model = getattr(forecast_models, entry.build)()
    if arguments.optimizer:
        model.compile(arguments.optimizer, model.loss)
    example = forecast_data.example_of(model, entry.data_spec)
    pool = POOL * arguments.batch
    data = tf.data.Dataset.from_tensor_slices(example.pool(pool)).repeat()
    data = data.batch(arguments.batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    started = anonymous_peak()
    steps: list[tuple[float, int]] = []

    class Steps(keras.callbacks.Callback):
        def on_train_batch_end(self, _step: int, **_logs: Any) -> None:
            steps.append((time.perf_counter(), anonymous_peak()))

        on_test_batch_end = on_predict_batch_end = on_train_batch_end

    begun = time.perf_counter()
    if arguments.phase == "training":
        model.fit(data, steps_per_epoch=arguments.steps, epochs=2, verbose=0, callbacks=[Steps()])
    elif arguments.phase == "evaluation":
        model.evaluate(data, steps=arguments.steps, verbose=0, callbacks=[Steps()])
    else:
        model.predict(data, steps=arguments.steps, verbose=0, callbacks=[Steps()])
    times = [now for now, _ in steps]
    return {
        "phase": arguments.phase,
        "peak": max(anonymous_peak(), *(peak for _, peak in steps)),
        "before": started,  # the model and its data made, nothing trained
        "pool": pool * example.size,
        "steps": len(steps),
        "first_step_s": times[0] - begun,
        "step_s": (times[-1] - times[0]) / (len(times) - 1),
        "peak_by_step": {at: steps[at - 1][1] for at in (1, 2, 3, 5, 10, 20, 30, 100, 200) if at <= len(steps)},
        "saves": _saved(model, folder) if arguments.save else {},
    }


def _saved(model: Any, folder: Path) -> dict[str, Any]:
    """The peak of the process while it saves, and what it had before, by format."""
    import tensorflow as tf

    ways: dict[str, Callable[[], object]] = {
        "checkpoint": lambda: tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(f"{folder}/ckpt"),
        "saved_model": lambda: model.export(f"{folder}/saved", verbose=False),
        "weights": lambda: model.save_weights(f"{folder}/model.weights.h5"),
        "keras": lambda: model.save(f"{folder}/model.keras"),
    }
    return {name: _saved_one(save) for name, save in ways.items()}


def _saved_one(save: Callable[[], object]) -> dict[str, Any]:
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = anonymous_peak(), time.perf_counter()
    try:
        save()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"peak": anonymous_peak(), "before": before, "seconds": time.perf_counter() - start}


def anonymous_peak() -> int:
    """The most there was of memory not backed by files; what is mapped of files only grows, so it is taken off."""
    kib = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmHWM", "RssFile"):
            kib[name] = int(value.split()[0])
    return (kib["VmHWM"] - kib["RssFile"]) * 1024


def _sampler(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SAMPLER, str(os.getpid()), folder / "most"])


if __name__ == "__main__":
    main()
