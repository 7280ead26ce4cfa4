"""Limits that were used up: they are older than the crash and must win over the place of death."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence.limits import requested_bytes
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import (
    Crash,
    Frame,
    Limit,
    MachineState,
    Outcome,
    Output,
    Progress,
    ProgressMark,
    Sample,
    StopRequest,
)
from faultlens.text.sizes import GIB, in_words
from recorded_crashes import causes, first, load


def ruled_out(crash: Crash) -> set[str]:
    return {item.cause for item in diagnose(crash).ruled_out}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("oom_train", "out-of-memory-kill"),
        ("oom_mppool", "out-of-memory-kill"),
        ("rlimit_as_grow", "address-space-limit"),
        ("rlimit_as_import", "address-space-limit"),
        ("as_threads", "address-space-limit"),
        ("dataset_shuffle_huge_buffer", "oversized-allocation"),
        ("vocab_table_huge_size", "oversized-allocation"),
        ("threads_pids_max", "thread-limit"),
        ("thr_pids", "thread-limit"),
        ("rlimit_nofile", "file-descriptor-limit"),
        ("fd_exc", "file-descriptor-limit"),
        ("op_stack_overflow", "stack-overflow"),
        ("tf_deep_nest", "stack-overflow"),
        ("small_stack_thread_pipeline", "thread-stack-too-small"),
        ("sigbus_shm_full", "shared-memory-full"),
        ("shm_full", "shared-memory-full"),
        ("diskfull_weights_h5_exit", "disk-full"),
        ("disk_exc", "disk-full"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


# ---------------------------------------------------------------------------------------------- memory


def test_sigkill_without_the_counter_is_no_memory_kill() -> None:
    crash = load("oom_train")
    crash = replace(crash, cgroup=crash.cgroup_before, kernel_log=())
    assert "out-of-memory-kill" not in causes(crash)
    found = first(crash)
    assert found.cause == "killed-from-outside"
    (counter,) = (each.fact for each in found.evidence if each.source == "cgroup counter")
    assert counter.endswith("did not go up: the kernel killed nothing in it for memory")
    assert "out-of-memory-kill" in ruled_out(crash)


def test_the_kernel_log_alone_proves_a_memory_kill() -> None:
    crash = replace(load("oom_train"), cgroup=None, cgroup_before=None)
    assert first(crash).cause == "out-of-memory-kill"


def test_a_kill_of_another_process_in_the_log_proves_nothing() -> None:
    crash = load("oom_train")
    other = tuple(line.replace(str(crash.pid), "999999") for line in crash.kernel_log)
    assert "out-of-memory-kill" not in causes(replace(crash, cgroup=None, cgroup_before=None, kernel_log=other))


def test_a_segfault_is_no_memory_kill() -> None:
    assert "out-of-memory-kill" in ruled_out(load("rlimit_as_grow"))


def stopped(outcome: Outcome, **more: object) -> Crash:
    request = StopRequest(seconds=7.5, used=95 * GIB, limit=100 * GIB, limit_of="control group")
    return Crash(outcome=outcome, method="status", pid=7, stop_request=request, **more)  # type: ignore[arg-type]


def test_asked_to_end_before_memory_ran_out() -> None:
    crash = stopped(Outcome(kind="signal", signal="SIGTERM"))
    assert causes(crash) == ["stopped-before-out-of-memory"]
    assert "95% of the control group's 100 GiB" in first(crash).title
    assert first(replace(crash, stop_request=None)).cause == "killed-from-outside"


def test_asked_to_end_at_a_size_that_the_user_named() -> None:
    request = StopRequest(seconds=7.5, used=501 << 20, limit=500 << 20, limit_of="program")
    found = first(replace(stopped(Outcome(kind="signal", signal="SIGTERM")), stop_request=request))
    assert found.title == "stopped by faultlens as asked: its memory reached 500 MiB"
    assert not any("kernel" in text for text in (found.title, *(each.fact for each in found.evidence)))
    assert not any("again" in fix.title or "SafeCheckpoint" in (fix.detail or "") for fix in found.fixes)


def test_it_goes_on_where_it_was_saved_only_if_it_was() -> None:
    crash = stopped(Outcome(kind="signal", signal="SIGTERM"))
    assert not any("start it again" in fix.title for fix in first(crash).fixes)
    before, after = (ProgressMark(seconds=at, kind="saved", text="/runs/model.keras") for at in (5.0, 8.0))
    assert not any("again" in fix.title for fix in first(replace(crash, progress=Progress(marks=(before,)))).fixes)
    saved = replace(crash, progress=Progress(marks=(before, after)))
    assert first(saved).fixes[0].title == "start it again from model.keras"


def test_where_others_use_the_memory_that_is_said() -> None:
    crash = stopped(Outcome(kind="signal", signal="SIGTERM"), timeline=(Sample(seconds=1.0, rss=3 << 20),))
    crash = replace(crash, stop_request=StopRequest(seconds=1, used=95 * GIB, limit=100 * GIB, limit_of="machine"))
    assert any("never held more than 3 MiB: others use the rest" in each.fact for each in first(crash).evidence)


def test_asked_by_us_and_by_another() -> None:
    crash = stopped(Outcome(kind="signal", signal="SIGTERM"), handed_on=("SIGTERM from process 3",))
    assert causes(crash) == ["killed-from-outside", "stopped-before-out-of-memory"]


def test_its_own_handler_ended_it() -> None:
    assert first(stopped(Outcome(kind="exit", exit_code=3))).cause == "stopped-before-out-of-memory"
    assert causes(stopped(Outcome(kind="ok", exit_code=0))) == causes(
        Crash(outcome=Outcome(kind="ok"), method="status")
    )


def test_a_request_that_came_too_late() -> None:
    request = StopRequest(seconds=7.5, used=95 * GIB, limit=100 * GIB, limit_of="machine")
    found = first(replace(load("oom_train"), stop_request=request))
    assert found.cause == "out-of-memory-kill"
    assert any("faultlens sent SIGTERM 7.5 s after the start" in each.fact for each in found.evidence)


# --------------------------------------------------------------------------------------- address space


def test_without_a_limit_bad_alloc_means_an_absurd_request() -> None:
    crash = replace(load("rlimit_as_grow"), limits={"RLIMIT_AS": Limit(soft=None, hard=None)}, sources={})
    assert "address-space-limit" not in causes(crash)
    assert "oversized-allocation" in causes(crash)


def test_a_limit_that_was_far_away_does_not_explain_bad_alloc() -> None:
    crash = replace(load("dataset_shuffle_huge_buffer"), limits={"RLIMIT_AS": Limit(soft=1 << 40, hard=1 << 40)})
    assert causes(crash)[0] == "oversized-allocation"


def test_a_limited_but_sufficient_address_space_is_ruled_out() -> None:
    crash = replace(load("op_stack_overflow"), limits={"RLIMIT_AS": Limit(soft=1 << 40, hard=1 << 40)})
    assert "address-space-limit" in ruled_out(crash)


def test_sizes_are_read_from_messages() -> None:
    assert requested_bytes("Unable to allocate 745. TiB for an array with shape (1000000, 100000000)") == 745 << 40
    assert requested_bytes("OOM when allocating tensor with shape[1000,100] and type float on /job") == 400_000
    assert in_words(1536 << 20) == "1.5 GiB"


# ---------------------------------------------------------------------------------- threads and files


def test_refused_threads_decide_between_the_limits() -> None:
    crash = load("as_threads")
    assert crash.cgroup is not None
    unlimited = replace(crash, limits={"RLIMIT_AS": Limit(soft=None, hard=None)}, sources={})
    assert first(unlimited).cause == "thread-limit"


def test_a_segfault_with_idle_limits_rules_them_out() -> None:
    assert {"file-descriptor-limit", "address-space-limit", "disk-full"} <= ruled_out(load("op_stack_overflow"))


def test_a_warning_about_open_files_does_not_explain_a_segfault() -> None:
    crash = load("op_stack_overflow")
    crash = replace(crash, output=Output(stderr="random_device is used for seeds\n"))
    assert "file-descriptor-limit" not in causes(crash)


# ---------------------------------------------------------------------------------------------- stacks


def test_an_overflow_on_the_main_thread_is_not_a_small_thread() -> None:
    assert "thread-stack-too-small" not in causes(load("op_stack_overflow"))


def test_a_fault_away_from_the_stack_is_no_overflow() -> None:
    crash = load("memmap_truncated_file")
    assert "stack-overflow" not in causes(crash)
    assert "stack-overflow" in ruled_out(crash)


def test_an_overflow_is_seen_without_frames_and_mappings() -> None:
    crash = replace(load("tf_deep_nest"), threads=(), mappings=())
    assert first(crash).cause == "stack-overflow"


# ------------------------------------------------------------------------------------------------ disk


def test_a_full_disk_that_the_program_got_over_does_not_explain_a_later_crash() -> None:
    crash = replace(load("vocab_table_huge_size"), output=Output(stderr="save failed: No space left on device\n"))
    found = {diagnosis.cause: diagnosis.confidence for diagnosis in diagnose(crash).diagnoses}
    assert found.get("disk-full", 0) <= 0.5


def test_a_file_system_with_room_is_not_full() -> None:
    crash = load("sigbus_shm_full")
    roomy = tuple(replace(state, disk_free=10 << 30) for state in crash.files)
    assert not {"shared-memory-full", "disk-full"} & set(causes(replace(crash, files=roomy)))


def test_a_caught_error_in_a_program_that_exits_by_itself_is_a_clean_exit() -> None:
    crash = replace(load("disk_exc"), outcome=Outcome(kind="exit", exit_code=3))
    assert first(crash).cause == "clean-exit"


def test_tensorflow_s_ways_out_of_a_recursion_are_told_where_it_is_loaded() -> None:
    crash = load("op_stack_overflow")
    assert any("tf.while_loop" in fix.detail for fix in first(crash).fixes)
    assert not any("tf." in fix.detail for fix in first(replace(crash, libraries=())).fixes)


# ------------------------------------------------------------------- exceptions that say what was refused

RAISED = """Traceback (most recent call last):
  File "/home/ada/train.py", line 7, in <module>
    build()
  File "/home/ada/train.py", line 4, in build
    return make()
{}
"""


def raised(text: str, **known: object) -> Crash:
    """A program that ended with this exception on a machine with 16 GiB."""
    return Crash(
        outcome=Outcome(kind="exception", exit_code=1),
        method="status",
        output=Output(stderr=RAISED.format(text)),
        machine=MachineState(memory_total=16 * GIB),
        **known,  # type: ignore[arg-type]
    )


OOM = "OOM when allocating tensor with shape[{}] and type float on /job:localhost/replica:0/task:0/device:CPU:0"
EXHAUSTED = "tensorflow.python.framework.errors_impl.ResourceExhaustedError: "
GRAPH = f"""{EXHAUSTED}Graph execution error:

Detected at node ones defined at (most recent call last):
  File "/home/ada/train.py", line 7, in <module>

  File "/home/ada/train.py", line 3, in step

  File "/usr/lib/python3/site-packages/tensorflow/dtensor/python/api.py", line 64, in call_with_layout

{OOM.format("100000,100000,100000")} by allocator cpu
\t [[{{{{node ones}}}}]]
Hint: If you want to see a list of allocated tensors when OOM happens, …
 [Op:__inference_step_12]"""


def test_a_tensor_that_no_machine_holds() -> None:
    said = f"{EXHAUSTED}{{{{function_node __wrapped__Fill_device_x}}}} {OOM.format('100000,100000,100000')} [Op:Fill]"
    found = first(raised(said))
    assert (found.cause, found.op) == ("oversized-allocation", "Fill")
    assert found.title == "Fill asked for 3.6 PiB of memory; the machine has 16 GiB"
    assert found.confidence > 0.9
    assert any("(100000, 100000, 100000)" in each.fact for each in found.evidence)


def test_in_a_function_the_node_and_its_line_are_named() -> None:
    found = first(raised(GRAPH))
    assert (found.cause, found.op) == ("oversized-allocation", "ones")
    assert found.location is not None and found.location.line == 3
    assert found.called_from is not None and found.called_from.line == 4


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("MemoryError", "oversized-allocation"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 655. TiB for an array", "oversized-allocation"),
        ("OSError: [Errno 12] Cannot allocate memory", "oversized-allocation"),
        ("OSError: [Errno 24] Too many open files: 'a'", "file-descriptor-limit"),
        (f"{EXHAUSTED}/data/x; Too many open files [Op:IteratorGetNext]", "file-descriptor-limit"),
        ("RuntimeError: can't start new thread", "thread-limit"),
        ("OSError: [Errno 27] File too large", "file-size-limit"),
        ("OSError: [Errno 28] No space left on device: 'x'", "disk-full"),
        (f"{EXHAUSTED}/out/ckpt; No space left on device [Op:SaveV2]", "disk-full"),
        ("OSError: [Errno 122] Disk quota exceeded", "disk-full"),
    ],
)
def test_what_could_not_be_had_comes_before_the_exception(text: str, cause: str) -> None:
    found = first(raised(text))
    assert found.cause == cause
    assert found.confidence >= 0.7  # it is told


def test_a_limit_explains_an_ordinary_request() -> None:
    said = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 512. MiB for an array with shape (67108864,)"
    found = first(raised(said, limits={"RLIMIT_AS": Limit(soft=GIB, hard=None)}))
    assert found.cause == "address-space-limit"
    assert found.title == "the address space is limited to 1 GiB (RLIMIT_AS), and another 512 MiB could not be had"
    assert first(
        raised(said.replace("512. MiB", "512. TiB"), limits={"RLIMIT_AS": Limit(soft=GIB, hard=None)})
    ).cause == ("oversized-allocation")


@pytest.mark.parametrize(
    "text",
    [
        "tensorflow.python.framework.errors_impl.InternalError: stream did not block host until done [Op:MatMul]",
        "tensorflow.python.framework.errors_impl.FailedPreconditionError: Could not find variable dense/kernel",
        "tensorflow.python.framework.errors_impl.UnavailableError: Socket closed",
        "tensorflow.python.framework.errors_impl.AbortedError: Session 1 is not found",
        "tensorflow.python.framework.errors_impl.NotFoundError: /nowhere/x.tfrecord; No such file or directory",
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Matrix size-incompatible [Op:MatMul]",
        "ValueError: array is too big",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",  # a lock
        "KeyError: 'a'",
    ],
)
def test_an_exception_without_a_known_reason_is_one(text: str) -> None:
    assert first(raised(text)).cause == "python-exception"


def test_a_process_that_could_not_be_started() -> None:
    where = '  File "/usr/lib/python3.11/subprocess.py", line 1885, in _execute_child\n    self.pid = fork_exec(\n'
    refused = raised(f"{where}BlockingIOError: [Errno 11] Resource temporarily unavailable")
    assert first(refused).cause == "thread-limit"
    assert "oversized-allocation" not in causes(raised(f"{where}OSError: [Errno 12] Cannot allocate memory"))


def test_memory_of_a_gpu_is_not_the_machines() -> None:
    said = f"{EXHAUSTED}Out of memory while trying to allocate 36.38TiB. [Op:__inference_f_1]"
    assert first(raised(said)).cause == "oversized-allocation"
    lines = (
        "I0000 00:00:1 42 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9 MB\n"
    )
    crash = raised(said)
    crash = replace(crash, output=Output(stderr=lines + (crash.output.stderr or "")))
    assert "oversized-allocation" not in causes(crash)


@pytest.mark.parametrize(
    ("function", "op", "title"),
    [
        ("tuplehash", "hash", "hash() went too deep into a nested tuple and used up the stack"),
        ("list_repr", "repr", "repr() went too deep into a nested structure and used up the stack"),
    ],
)
def test_what_python_does_by_itself_is_told_by_the_name_that_people_know(function: str, op: str, title: str) -> None:
    crash = load("tf_deep_nest")
    python = "/usr/lib/libpython3.11.so.1.0"
    threads = tuple(
        replace(
            thread,
            frames=tuple(
                replace(frame, function=function, library=python) if "FlattenHelper" in frame.function else frame
                for frame in thread.frames
                if not (frame.kind == "python" and "site-packages" in (frame.file or ""))
            ),
        )
        for thread in crash.threads
    )
    found = first(replace(crash, threads=threads))
    assert (found.cause, found.op, found.title) == ("stack-overflow", op, title)
    assert "less deep" in found.fixes[0].title


def test_what_tensorflow_was_handed_is_too_deep_not_the_program() -> None:
    crash = load("tf_deep_nest")
    nest = "/home/ada/venv/lib/python3.11/site-packages/tensorflow/python/util/nest.py"
    called = tuple(
        Frame(kind="python", function=name, file=file, line=1)
        for name, file in (("flatten", nest), ("main", "/home/ada/main.py"))
    )
    threads = tuple(
        replace(each, launched=True, frames=(*each.frames, *called)) if each.crashed else each for each in crash.threads
    )
    found = first(replace(crash, threads=threads))
    assert found.title.startswith("flatten went too deep into its argument")
    assert "less deep" in found.fixes[0].title
    own = first(load("op_stack_overflow"))
    assert own.title.startswith("endless or very deep recursion of")
