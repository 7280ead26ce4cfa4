"""Claim: too few threads or files allowed means an exception that says so.
Reality: no, mostly an abort. The message is the same for the limit of a control group, of the user (`ulimit -u`) and of
the address space; when files run out it may speak of `random_device`.
"""

import os
import resource
from pathlib import Path

import tensorflow as tf
from endings import ending

PIDS = next((p for p in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")) if p.exists()), None)
NOBODY = 65534


def start_pools():
    tf.config.threading.set_inter_op_parallelism_threads(16)
    tf.matmul(tf.ones([500, 500]), tf.ones([500, 500])).numpy()
    list(tf.data.Dataset.range(100).map(lambda i: i * 2, num_parallel_calls=16))


def limit_of_the_group():
    group = PIDS / f"claim-{os.getppid()}"
    group.mkdir()
    (group / "pids.max").write_text("6")
    (group / "cgroup.procs").write_text(str(os.getpid()))
    start_pools()


def limit_of_the_user():
    if os.geteuid() == 0:  # root is exempt
        os.setuid(NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    start_pools()


def limit_of_the_address_space():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (20 << 20),) * 2)
    start_pools()


def limit_of_open_files():
    names = [f"{i}.tfrecord" for i in range(100)]
    for name in names:
        with tf.io.TFRecordWriter(name) as writer:
            for _ in range(20):
                writer.write(b"x" * 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
    files = tf.data.Dataset.from_tensor_slices(names)
    list(files.interleave(tf.data.TFRecordDataset, cycle_length=100, num_parallel_calls=16))


def main():
    for job in (limit_of_the_group, limit_of_the_user, limit_of_the_address_space, limit_of_open_files):
        end = ending(job)
        words = [word for word in ("pthread_create", "random_device", "Too many open files") if word in end.text]
        print(f"{job.__name__}: {end.how} {words[0] if words else ''}".strip())
    group = PIDS / f"claim-{os.getpid()}"
    if group.exists():
        group.rmdir()


if __name__ == "__main__":
    main()
