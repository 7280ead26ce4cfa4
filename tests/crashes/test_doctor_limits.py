"""Small limits, really set: the doctor foresees how a program ends under them, and it lives when they are raised."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from faultlens.knowledge.needs import address_space, threads
from faultlens.system.cgroup import cgroup_of

MIB = 1 << 20
NOBODY = "65534"
NEEDED = threads(len(os.sched_getaffinity(0)), os.environ, (2, 21))

TRAINS = """
import numpy, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(numpy.zeros((64, 4), "f"), numpy.zeros((64, 1), "f"), epochs=2, verbose=0)
print("trained")
"""
SAVES = """
import sys, tensorflow as tf
tf.keras.Sequential([tf.keras.layers.Input((1000,)), tf.keras.layers.Dense(1000)]).save(f"{sys.argv[1]}/saved.keras")
"""
INTERLEAVES = """
import sys, tensorflow as tf
for name in range(64):
    with tf.io.TFRecordWriter(f"{sys.argv[1]}/{name}.records") as writer:
        for _ in range(20):
            writer.write(b"x" * 100)
files = tf.data.Dataset.list_files(f"{sys.argv[1]}/*.records")
data = files.interleave(tf.data.TFRecordDataset, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE)
print(sum(1 for _ in data))
"""
SHARES = """
import mmap
with open("/dev/shm/faultlens-test", "wb+") as file:
    file.truncate(40 << 20)
    memory = mmap.mmap(file.fileno(), 40 << 20)
    for page in range(0, len(memory), 4096):
        memory[page] = 1
print("shared")
"""

needs_tensorflow = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def doctor(prefix: Sequence[str], *arguments: str) -> Any:
    """What one check says to a program that is started by `prefix`."""
    command = [*prefix, sys.executable, "-m", "faultlens", "doctor", "--json", "-", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    (examination,) = json.loads(done.stdout)["examinations"]
    return examination


def ending(prefix: Sequence[str], program: str, *arguments: str) -> tuple[int, str]:
    """Exit status, a signal being negative, and the last line of the output."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return done.returncode, (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]


def foresees(prefix: Sequence[str], check: str, mark: str, words: str) -> None:
    found = doctor(prefix, check)
    assert (found["mark"], words in found["summary"]) == (mark, True), found
    assert all(fix["command"] for finding in found.get("findings", ()) for fix in finding["fixes"])


# ------------------------------------------------------------------------------------ resource limits


def test_the_doctor_itself_needs_few_descriptors() -> None:
    """The interpreter cannot be asked then, which is no fault of it; the rest is looked at as ever."""
    tight = ["prlimit", "--nofile=6"]
    foresees(tight, "python", "skipped", "no process could be started")
    foresees(tight, "open-files", "warning", "RLIMIT_NOFILE (ulimit -n) is 6")
    assert doctor(tight, "installation") == doctor(["prlimit", "--nofile=8"], "installation")


class TestResourceLimits:
    pytestmark = needs_tensorflow

    def test_too_little_address_space_to_import(self) -> None:
        tight = ["prlimit", f"--as={600 * MIB}"]
        foresees(tight, "address-space", "error", "RLIMIT_AS (ulimit -v) is 600 MiB: importing TensorFlow needs")
        assert ending(tight, "import tensorflow")[0] != 0

    def test_too_little_address_space_to_train(self) -> None:
        need = address_space(NEEDED, resource.getrlimit(resource.RLIMIT_STACK)[0], (2, 21))
        # Far below: how much is mapped at once varies by hundreds of MiB with how threads meet.
        too_little = need.importing + (need.training - need.importing) // 4
        tight, enough = (["prlimit", f"--as={size}"] for size in (too_little, need.training * 2))
        foresees(tight, "address-space", "warning", "training a model needs")
        assert ending(tight, TRAINS)[0] != 0
        foresees(enough, "address-space", "ok", "limited to ")
        assert ending(enough, TRAINS) == (0, "trained")

    def test_too_few_descriptors_for_a_pipeline(self, tmp_path: Path) -> None:
        tight = ["prlimit", "--nofile=32"]
        foresees(tight, "open-files", "warning", "reads 16 files at once")
        status, words = ending(tight, INTERLEAVES, str(tmp_path))
        assert status != 0, words

    def test_too_little_cpu_time_to_import(self) -> None:
        tight = ["prlimit", "--cpu=1"]
        foresees(tight, "cpu-time", "error", "RLIMIT_CPU (ulimit -t) is 1 s")
        assert ending(tight, "import tensorflow")[0] == -signal.SIGKILL

    def test_files_that_may_not_grow(self, tmp_path: Path) -> None:
        tight = ["prlimit", "--fsize=1000000"]
        foresees(tight, "storage", "warning", "RLIMIT_FSIZE (ulimit -f) is 977 KiB")
        status, words = ending(tight, SAVES, str(tmp_path))
        assert (status, words) == (1, "OSError: [Errno 27] File too large")

    @needs_root
    def test_too_few_threads_of_the_user(self) -> None:
        """Root is not bound, so the program runs as another user, who may read what root may."""
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv")
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        user += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        if subprocess.run([*user, sys.executable, "-c", "pass"], capture_output=True).returncode:
            pytest.skip("cannot run Python as another user")
        needed = NEEDED.to_train
        tight = [*user, "prlimit", f"--nproc={needed - 1}"]
        foresees(
            tight, "threads", "warning", f"leaves room for {needed - 1} threads: training for two epochs needs {needed}"
        )
        assert ending(tight, TRAINS)[0] == -6
        assert doctor(["prlimit", f"--nproc={needed - 1}"], "threads")["mark"] == "ok"


# -------------------------------------------------------------------------------------- control groups

Group = Callable[[str, int], list[str]]


@pytest.fixture
def group() -> Iterator[Group]:
    """group("pids", 13) → the prefix of a command that runs in a control group with that limit."""
    own = cgroup_of()
    if os.geteuid() or own is None:
        pytest.skip("needs root and control groups")
    made: list[Path] = []

    def limited(controller: str, limit: int) -> list[str]:
        folder = own.memory if controller == "memory" else own.pids
        if folder is None:
            pytest.skip(f"no control group for {controller}")
        root = next(level for level in (folder, *folder.parents) if not (level.parent / "cgroup.procs").exists())
        path = root / f"faultlens-doctor-{os.getpid()}"
        name = "pids.max" if controller == "pids" else "memory.max" if own.version == 2 else "memory.limit_in_bytes"
        try:
            if not path.exists():
                if own.version == 2:
                    (root / "cgroup.subtree_control").write_text(f"+{controller}")
                path.mkdir()
                made.append(path)
            (path / name).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"cannot make a control group: {error}")
        return ["sh", "-c", f'echo $$ > {path}/cgroup.procs && exec "$@"', "sh"]

    yield limited
    for path in made:
        for _ in range(50):
            try:
                path.rmdir()
                break
            except OSError:
                time.sleep(0.1)


class TestControlGroups:
    pytestmark = needs_tensorflow

    def test_too_few_threads(self, group: Group) -> None:
        needed = NEEDED.to_train
        tight = group("pids", needed - 1)
        foresees(tight, "threads", "warning", f"(pids.max {needed - 1}) leaves room for {needed - 1} threads")
        assert ending(tight, TRAINS)[0] == -6
        enough = group("pids", needed)
        assert doctor(enough, "threads")["mark"] == "ok"
        assert ending(enough, TRAINS) == (0, "trained")

    def test_too_little_memory(self, group: Group) -> None:
        tight = group("memory", 140 * MIB)
        foresees(tight, "memory", "error", "importing TensorFlow needs 168 MiB")
        assert ending(tight, "import tensorflow")[0] == -9


# ------------------------------------------------------------------------------------------- storage


@pytest.fixture
def mounted() -> Callable[[str], list[str]]:
    """mounted(commands) → the prefix of a command that sees other mounts than the rest of the machine."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("mounts cannot be made here")
    return lambda commands: ["unshare", "-m", "sh", "-c", f'{commands} && exec "$@"', "sh"]


SMALL_SHM = "mount -t tmpfs -o size=16m tmpfs /dev/shm"


def test_small_shared_memory(mounted: Callable[[str], list[str]]) -> None:
    small = mounted(SMALL_SHM)
    foresees(small, "storage", "warning", "/dev/shm has 16 MiB free of 16 MiB")
    assert ending(small, SHARES)[0] == -7


def test_small_shared_memory_is_repaired(mounted: Callable[[str], list[str]]) -> None:
    repair = f"{SMALL_SHM} && {sys.executable} -m faultlens doctor storage --fix --yes >&2"
    repaired = mounted(repair)
    assert doctor(repaired, "storage")["mark"] == "ok"
    assert ending(repaired, SHARES) == (0, "shared")


@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_nowhere_to_put_temporary_files(mounted: Callable[[str], list[str]]) -> None:
    nowhere = mounted(
        "for folder in /tmp /var/tmp; do mount --bind $folder $folder && mount -o remount,ro,bind $folder; done"
        " && unset TMPDIR TEMP TMP && cd /proc"
    )
    foresees(nowhere, "storage", "error", "no folder for temporary files can be written to")
    assert "No usable temporary directory" in ending(nowhere, "import tensorflow")[1]


def test_a_full_save_folder(mounted: Callable[[str], list[str]], tmp_path: Path) -> None:
    full = mounted(f"mount -t tmpfs -o size=64k tmpfs {tmp_path}")
    found = doctor(full, "storage", "--save-to", str(tmp_path))
    assert (found["mark"], "64 KiB left" in found["summary"]) == ("error", True), found
    assert doctor([], "storage", "--save-to", str(tmp_path))["mark"] == "ok"


def test_this_machine_is_fine() -> None:
    for check in ("memory", "address-space", "threads", "open-files", "storage", "evidence"):
        assert doctor([], check)["mark"] == "ok"
