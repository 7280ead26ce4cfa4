"""A Ray program: a task, an actor, and a task whose worker crashes."""

import ctypes
import os

import ray


@ray.remote
def square(value: int) -> int:
    return value * value


@ray.remote(max_retries=0)
def crash() -> None:
    ctypes.string_at(8)


@ray.remote
class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, value: int) -> int:
        self.count += value
        return self.count


ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
print(ray.get([square.remote(value) for value in range(4)]))
counter = Counter.remote()
print(ray.get([counter.add.remote(value) for value in range(4)]))
try:
    ray.get(crash.remote())
except ray.exceptions.WorkerCrashedError:
    print("worker crashed")
ray.shutdown()
os._exit(3)
