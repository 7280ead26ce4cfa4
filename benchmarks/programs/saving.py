"""Saves one model in many ways, in turns, and prints what each took: python saving.py ROUNDS MEGABYTES FOLDER."""

import ctypes
import gc
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import faultlens

PATHS = {"keras": "model.keras", "weights": "model.weights.h5", "saved_model": "saved", "checkpoint": "ckpt"}
STEPS = 10


def main(rounds: int, megabytes: int, folder: Path) -> None:
    units = int((megabytes * 1e6 / 4 / 3 / 4) ** 0.5)  # four kernels, each with the two values that Adam remembers
    model = keras.Sequential([keras.Input((units,))] + [keras.layers.Dense(units) for _ in range(4)])
    model.compile("adam", "mse")
    batch = np.random.default_rng(0).random((32, units), dtype="float32")
    model.train_on_batch(batch, batch)
    size = sum(int(np.prod(each.shape)) * 4 for each in (*model.variables, *model.optimizer.variables))
    (folder / "plain").mkdir()
    ways = {(form, way): [] for form in PATHS for way in ("plain", "plain again", "ours", "background")}
    order = random.Random(0)
    for number in range(rounds + 1):  # the first one fills what comes to be overwritten
        for form, way in order.sample(list(ways), len(ways)):
            sample = measured(model, form, way, folder)
            if number:
                ways[form, way].append(sample)
    training = [trained(model, batch, folder) for _ in range(rounds + 1)][1:]
    results = {form: {way: ways[form, way] for _, way in ways if (form, way) in ways} for form in PATHS}
    print(json.dumps({"size": size, "formats": results, "training": training}), file=sys.stderr)


def measured(model: keras.Model, form: str, way: str, folder: Path) -> dict[str, float]:
    os.sync()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with Watch() as watch:
        start, cpu = time.perf_counter(), time.process_time()
        pending = save(model, form, way, folder)
        blocked = time.perf_counter() - start
        if pending is not None:
            pending.wait()
        seconds = time.perf_counter() - start
    return {"blocked": blocked, "seconds": seconds, "cpu": time.process_time() - cpu, "memory": watch.extra}


def save(model: keras.Model, form: str, way: str, folder: Path) -> "faultlens.saving.PendingSave | None":
    if way in ("ours", "background"):
        done = faultlens.save(model, folder / PATHS[form], format=form, keep=1, background=way == "background")
        return done if way == "background" else None
    path = str(folder / "plain" / PATHS[form])
    if form == "keras":
        model.save(path)
    elif form == "weights":
        model.save_weights(path)
    elif form == "saved_model":
        model.export(path, verbose=False)
    else:
        tf.train.Checkpoint(model).write(path)
    return None


def trained(model: keras.Model, batch: np.ndarray, folder: Path) -> dict[str, float]:
    """Some steps of training, without a save and with one that begins with them."""
    os.sync()
    without = steps(model, batch)
    with Watch() as watch:
        start = time.perf_counter()
        pending = faultlens.save(model, folder / PATHS["keras"], keep=1, background=True)
        during = time.perf_counter() - start + steps(model, batch)
        if not pending.done:
            raise RuntimeError("the steps were over before the save: more of them are needed")
    again = steps(model, batch)
    return {"without": without, "with": during, "again": again, "memory": watch.extra}


def steps(model: keras.Model, batch: np.ndarray) -> float:
    start = time.perf_counter()
    for _ in range(STEPS):
        model.train_on_batch(batch, batch)
    return time.perf_counter() - start


class Watch:
    """How much more memory there was at the most, of this process and those it forks: pages of several count once."""

    def __enter__(self) -> "Watch":
        self._before = self._most = family()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        Path("/proc/self/clear_refs").write_text("5")  # the peak of this process starts anew
        self._own = status("VmRSS")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def extra(self) -> int:
        return max(self._most - self._before, status("VmHWM") - self._own)

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            self._most = max(self._most, family())


def family() -> int:
    children = Path("/proc/self/task")
    pids = {pid for task in children.iterdir() for pid in (task / "children").read_text().split()}
    return sum(proportional(pid) for pid in pids | {"self"}) if pids else status("VmRSS")


def proportional(pid: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
