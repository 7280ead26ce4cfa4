"""Forks writers from a process whose threads keep a GPU busy: do they finish? Needs PyTorch and an NVIDIA GPU.

Run by hand, TensorFlow or not: `faultlens.save(background=True)` copies what is on a GPU before it forks."""

import os
import signal
import statistics
import tempfile
import threading
import time

import torch

FORKS, LIMIT = 60, 30.0


def main() -> None:
    values = torch.randn(8192, 8192, device="cuda")
    for _ in range(3):
        threading.Thread(target=keep_busy, daemon=True).start()
    time.sleep(1)
    ends: dict[str, int] = {}
    blocked = []
    for _ in range(FORKS):
        start = time.perf_counter()
        host = values.cpu().numpy()
        writer = os.fork()
        if writer == 0:
            write_and_exit(host)
        blocked.append(time.perf_counter() - start)
        end = ending(writer)
        ends[end] = ends.get(end, 0) + 1
        values.add_(1)
    print(f"{torch.cuda.get_device_name()}, {torch.__version__}: {ends} of {FORKS},", end=" ")
    print(f"blocked {statistics.median(blocked):.2f} s for {host.nbytes / 1e6:.0f} MB")


def keep_busy() -> None:
    values = torch.randn(2048, 2048, device="cuda")
    while True:
        values = torch.tanh(values @ values)
        torch.cuda.synchronize()


def write_and_exit(host) -> None:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(host.data)
            file.flush()
            os.fsync(file.fileno())
        os._exit(0)
    finally:
        os._exit(1)


def ending(pid: int) -> str:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "finished" if status == 0 else "failed"
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


if __name__ == "__main__":
    main()
