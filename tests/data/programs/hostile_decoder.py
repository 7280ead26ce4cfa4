"""Map functions of all kinds for `faultlens scan --decode --using`: what an item says is what happens."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

print("imported")
os.write(2, b"imported")


def act(item):
    word = item.numpy().decode()
    if POISON and POISON.pop() == "deadly":
        os.abort()
    action = ACTIONS.get(word)
    if action is not None:
        action()
    return tf.strings.length(item)


def always_fails(item):
    raise ValueError(f"{tf.strings.length(item)} bytes are no image")


def always_eats(item):  # noqa: ARG001
    eat_slowly()


def fork_and_go_on():
    os.fork()  # both return


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


def fork_bomb():
    """As fast as one without end, and not endless: the machine that the tests run on must survive it anyway."""
    for _ in range(7):
        os.fork()
    time.sleep(600)


def eat_slowly():
    kept = []
    while True:
        kept.append(b"x" * (4 << 20))


def scribble():
    for _ in range(20):
        for descriptor in range(1, 64):
            with contextlib.suppress(OSError):
                os.write(descriptor, os.urandom(512))


def truncate():
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)


def overflow():
    sys.setrecursionlimit(10**9)
    return ctypes.CFUNCTYPE(ctypes.c_int)(lambda: overflow())()


def late_death():
    threading.Timer(0.3, os.abort).start()


def die_once():
    """Not of what it was given."""
    path = Path(os.environ["DIED_ONCE"])
    if not path.exists():
        path.touch()
        os.abort()


def handle_and_spin():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGSEGV):
        signal.signal(number, lambda *_: None)
    while True:
        pass


def remove_folder():
    subprocess.run(["rm", "-rf", os.getcwd()])


def check_fails():
    zero, peephole = tf.zeros([2, 5]), tf.zeros([5])
    tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.constant(9, tf.int64), x=tf.zeros([3, 2, 4]), cs_prev=zero, h_prev=zero, w=tf.zeros([9, 20]),
        wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20]))  # fmt: skip


def helpers():
    """Processes that stay, as a pool would: what they have in common with this one is no memory of theirs."""
    for _ in range(8):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)


def raise_(error):
    raise error


KEPT = []
POISON = []
ACTIONS = {
    "read null": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "divide": lambda: os.kill(os.getpid(), signal.SIGFPE),
    "overflow": overflow,
    "leave": lambda: os._exit(0),
    "exit": lambda: sys.exit(3),
    "interrupt": lambda: raise_(KeyboardInterrupt()),
    "value error": lambda: raise_(ValueError("not\nmine")),
    "kill parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "kill itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "stop parent": lambda: os.kill(os.getppid(), signal.SIGSTOP),
    "sleep": lambda: time.sleep(600),
    "spin": handle_and_spin,
    "eat": lambda: np.ones(3 << 27),
    "eat slowly": eat_slowly,
    "leak": lambda: KEPT.append(np.ones(4 << 20)),
    "impossible": lambda: np.ones(1 << 50),
    "close": lambda: os.closerange(0, 4096),
    "scribble": scribble,
    "truncate": truncate,
    "print": lambda: print("{}\n" * 100_000, flush=True),
    "fork": fork_and_go_on,
    "daemon": daemon,
    "fork bomb": fork_bomb,
    "remove": remove_folder,
    "late": late_death,
    "poison": lambda: POISON.extend(["deadly", "", ""]),
    "once": die_once,
    "check": check_fails,
    "helpers": helpers,
    "write": lambda: Path("file").write_text("x"),
    "limit": lambda: raise_(ValueError(f"at most {resource.getrlimit(resource.RLIMIT_NPROC)[0]} tasks")),
}
