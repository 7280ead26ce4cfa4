"""Faults of the GPU, recorded on one: mostly exceptions, noticed later than they happened."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.records.crash import Crash
from recorded_crashes import causes, first, load


def saying(crash: Crash, stderr: str) -> Crash:
    return replace(crash, output=replace(crash.output, stderr=stderr))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("gpu_illegal_address", "gpu-illegal-address"),
        ("gpu_misaligned", "gpu-misaligned-address"),
        ("gpu_device_assert", "gpu-device-assert"),
        ("gpu_out_of_memory", "gpu-out-of-memory"),
        ("gpu_pinned", "pinned-memory-exhausted"),
        ("gpu_host_dereference", "gpu-host-dereference"),
        ("gpu_fork_after_cuda", "gpu-fork"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


def test_the_drivers_line_is_quoted_for_this_process_only() -> None:
    crash = load("gpu_illegal_address")
    assert any("MMU Fault" in item.fact for item in first(crash).evidence)
    assert not any("MMU Fault" in item.fact for item in first(replace(crash, pid=1)).evidence)


def test_an_error_that_was_handled_is_not_the_cause() -> None:
    """The program printed an error of the GPU, went on, and ended with another exception."""
    gpu, other = load("gpu_out_of_memory"), load("py_exception")
    both = f"caught: CUDA out of memory, a smaller batch is used\n{other.output.stderr}"
    assert not any(cause.startswith("gpu") for cause in causes(saying(other, both)))
    assert first(gpu).cause == "gpu-out-of-memory"


def test_memory_of_the_cpu_is_not_the_gpus() -> None:
    text = """Traceback (most recent call last):
  File "/home/ada/project/main.py", line 3, in <module>
    x = tf.zeros([1 << 40])
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1099511627776]
 and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:Fill]
"""
    assert "gpu-out-of-memory" not in causes(saying(load("py_exception"), text))


def test_a_hole_is_no_device_memory_without_cuda() -> None:
    crash = load("gpu_host_dereference")
    assert "gpu-host-dereference" not in causes(replace(crash, libraries=()))


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ],
)
def test_a_driver_that_does_not_fit(message: str) -> None:
    """Texts of the CUDA runtime, in the place of the recorded one."""
    text = f'Traceback (most recent call last):\n  File "/home/ada/project/main.py", line 3, in <module>\n{message}\n'
    assert first(saying(load("gpu_device_assert"), text)).cause == "gpu-driver-mismatch"


def test_other_exceptions_have_nothing_to_do_with_the_driver() -> None:
    assert "gpu-driver-mismatch" not in causes(load("gpu_out_of_memory"))
