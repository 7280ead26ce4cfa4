"""The parts that run in the user's Python, as far as they need no TensorFlow: comparing, growth, forbidden signals."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from faultlens.custom_op.fuzz.guest import comparing, windows
from faultlens.sandbox.guest import seccomp


def test_sums_in_another_order_are_the_same_result() -> None:
    sums = np.array([1e6, 1e-3, np.nan, np.inf], np.float32)
    assert comparing.difference([sums], [sums + np.float32(0.05)]) is None
    assert "at [1]" in comparing.difference([np.array([1.0, 2.0])], [np.array([1.0, 2.1])])
    assert comparing.difference([np.array([np.nan])], [np.array([0.0])])
    assert comparing.difference([np.array([3])], [np.array([4])])
    assert comparing.difference([np.zeros(2)], [np.zeros(3)]) == "output 0: its shape is [2], and [3]"
    assert not comparing.same_bits([np.array([0.0])], [np.array([-0.0])])
    assert comparing.same_bits([np.array([b"a"], object)], [np.array([b"a"], object)])


def test_what_grows_in_every_window_is_kept() -> None:
    assert windows.is_growth([64_000] * 5, 1000, False)
    assert windows.is_growth([0, 2 << 20, 0, 0, 4 << 20], 1000, False)  # a vector that doubles
    assert not windows.is_growth([90_000, 0, 0, 0, 0], 1000, False)  # made once
    assert not windows.is_growth([3000, -2000, 1000, 500, 0], 1000, False)
    assert windows.is_growth([1000] * 5, 1000, True) and not windows.is_growth([0, 1, 0, 0, 0], 1000, True)


@pytest.mark.parametrize(("target", "survives"), [("itself", True), ("parent", False), ("everyone", False)])
def test_a_signal_to_others_ends_the_process(target: str, survives: bool) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if seccomp.offered():
                seccomp.install(seccomp.program_of(seccomp.signals_only_to(os.getpid())))
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                os.kill(os.getppid(), 0)  # only asks
                os.kill({"itself": os.getpid(), "parent": os.getppid(), "everyone": -1}[target], signal.SIGUSR1)
            elif not survives:
                os.kill(os.getpid(), signal.SIGSYS)  # a kernel that cannot
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert (status == 0) if survives else os.WTERMSIG(status) == signal.SIGSYS
