"""Trainings whose memory grows, below a real limit, each in a process forked from one that has TensorFlow loaded.

They are watched by the very Watch that `faultlens run` has, with the agent in them that tells it of their steps."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import memory_limit
from memory_limit import join, memory_group

from faultlens.agent.area import SharedArea
from faultlens.agent.launch import agent_environment
from faultlens.inspection.progress import Loop, read_loop
from faultlens.records.crash import StopRequest
from faultlens.supervise.memory_watch import Watch
from faultlens.supervise.oom_stop import StopAt
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import cgroup_of
from faultlens.text.sizes import MIB

BATCHES = 20  # of an epoch
PATIENCE_S = 60.0

When = Literal["batch", "evaluation", "epoch", "batch, after the checkpoint", "at the start", "cache", "shuffle"]


@dataclass(frozen=True)
class Plan:
    grows: int = 0  # MiB …
    when: When = "batch"  # … each time
    path: str = ""  # to save to; empty: no checkpoint
    save_freq: str | int = "epoch"
    background: bool = False
    epochs: int = 200
    pause: float = 0.0  # seconds for each batch
    weights: int = 1 << 14


@dataclass
class Ended:
    status: int  # negative: the signal that it died by
    batches: int  # that it had been trained on
    request: StopRequest | None
    told: list[str] = field(default_factory=list)
    highest: float = 0.0  # share of the limit


class Trainings:
    """The side of the tests."""

    def __enter__(self) -> Trainings:
        self._area = SharedArea()
        modules = str(Path(memory_limit.__file__).parent)
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": modules}
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=agent_environment(environment, self._area.path, follow_children=True),
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(60)
        self._area.close()

    def run(self, plan: Plan, limit: int, stop_at: StopAt | None = None, watched: bool = True) -> Ended:
        with memory_group(limit) as group:
            counter = Path(f"{plan.path}.batches") if plan.path else None
            pid = self._ask({"plan": asdict(plan), "group": str(group), "counter": str(counter or "")})
            told: list[str] = []
            timeline = Timeline(pid, cgroup_of(pid), redact=True, loop=lambda: self._loop(pid))
            watch = Watch(timeline, lambda: self._loop(pid), stop_at, told.append)
            self._watch(pid, timeline, watch if watched else None)
            highest = max((sample.cgroup_used or 0 for sample in timeline.samples), default=0) / limit
            status = self._ask({"wait": pid})
        batches = int(counter.read_text()) if counter and counter.exists() else 0
        return Ended(status, batches, watch.request, told, highest)

    def _watch(self, pid: int, timeline: Timeline, watch: Watch | None) -> None:
        """As the supervisor's loop does it."""
        handle, began, next_sample = os.pidfd_open(pid), time.monotonic(), 0.0
        try:
            while (elapsed := time.monotonic() - began) < PATIENCE_S:
                if elapsed >= next_sample:
                    timeline.take(elapsed)
                    next_sample = elapsed + timeline.interval(elapsed)
                if watch and elapsed >= watch.next_look:
                    watch.look(elapsed)
                pause = min(next_sample, watch.next_look if watch else next_sample) - elapsed
                if select.select([handle], [], [], max(pause, 0))[0]:
                    return
            raise TimeoutError("a training went on and on")
        finally:
            os.close(handle)

    def _loop(self, pid: int) -> Loop | None:
        return read_loop(self._area.progress(pid))

    def _ask(self, what: dict[str, Any]) -> int:
        assert self._server.stdin and self._server.stdout
        print(json.dumps(what), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline())


# ------------------------------------------------------------------------------------ in the forked process


def train(plan: Plan, counter: str) -> None:
    import keras
    import numpy as np
    import tensorflow as tf

    from faultlens.keras import SafeCheckpoint

    hoard: list[Any] = []

    def grow() -> None:
        hoard.append(np.ones(plan.grows * MIB, dtype="uint8"))

    class Grows(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            time.sleep(plan.pause)
            if plan.when.startswith("batch"):
                grow()

        def on_test_batch_end(self, *_: Any, **__: Any) -> None:
            if plan.when == "evaluation":
                grow()

        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            if plan.when == "epoch":
                grow()

    class Counts(keras.callbacks.Callback):  # type: ignore[misc]
        count = 0

        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            if counter:
                self.count += 1
                Path(counter).write_text(str(self.count))

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(plan.weights // 8), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).random((BATCHES * 4, 8), dtype="float32")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
    if plan.when == "at the start":
        grow()
    elif plan.when in ("cache", "shuffle"):
        part = plan.grows * MIB // len(x)
        large = data.map(lambda x, y: (x, y, tf.random.uniform([part // 4])))  # float32
        kept = large.cache() if plan.when == "cache" else large.shuffle(len(x))
        data = kept.map(lambda x, y, _: (x, y))
    checkpoint = SafeCheckpoint(plan.path or "unused.keras", save_freq=plan.save_freq, background=plan.background)
    callbacks = [Counts(), checkpoint] if plan.path else [Counts()]
    callbacks.insert(len(callbacks) if "after" in plan.when else 0, Grows())
    data = data.batch(4)
    model.fit(data, epochs=plan.epochs, validation_data=data.take(5), verbose=0, callbacks=callbacks)


def serve() -> None:
    import keras
    import tensorflow

    for line in sys.stdin:
        asked = json.loads(line)
        if pid := asked.get("wait"):
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        if os.fork():
            continue
        try:
            join(Path(asked["group"]))
            print(os.getpid(), flush=True)
            os.dup2(2, 1)
            train(Plan(**asked["plan"]), asked["counter"])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _ = keras, tensorflow


if __name__ == "__main__":
    serve()
