"""Claim: running out of memory is a segmentation fault.
Reality: no. At the limit of a control group (a container) the kernel sends SIGKILL and the program prints nothing;
only the counter of the group, and the kernel log, tell why.
"""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from endings import cannot_show, ending

LIMIT = 200_000_000
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


def make_group() -> Path:
    group = (V1 if V1.exists() else V2) / f"claim-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if V1.exists() else "memory.max")).write_text(str(LIMIT))
    except OSError as error:
        if group.exists():
            group.rmdir()
        cannot_show(f"may not limit the memory of a control group ({error.strerror})")
    return group


def kills(group: Path) -> int:
    counters = (group / ("memory.oom_control" if V1.exists() else "memory.events")).read_text().split()
    return int(counters[counters.index("oom_kill") + 1])


def main() -> None:
    group = make_group()

    def hoard_tensors() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        print("hoarding", flush=True)
        kept = []
        while True:
            kept.append(tf.constant(np.ones(2_000_000, "float32")))

    before = kills(group)
    end = ending(hoard_tensors)
    said = [line for line in end.text.splitlines() if "rror" in line or "emory" in line]
    print(f"ended by {end.how}; complaints printed: {len(said)}; the group counted {kills(group) - before} kill")
    group.rmdir()


if __name__ == "__main__":
    main()
