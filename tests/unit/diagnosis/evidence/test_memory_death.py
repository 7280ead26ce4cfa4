"""Which kind of death it was when memory ran out."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from faultlens.diagnosis.evidence.memory_death import Kind, memory_death
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import (
    CgroupState,
    Crash,
    Frame,
    Growth,
    Held,
    Holder,
    LastLines,
    Outcome,
    Progress,
    Sample,
    StopRequest,
)
from faultlens.text.sizes import GIB, MIB

LIMIT = 2 * GIB


def killed(
    course: Callable[[float], int], seconds: int = 60, steps: Callable[[float], int] = lambda _: 0, **more: object
) -> Crash:
    """A program whose memory took this course until the kernel killed it."""
    samples = tuple(
        Sample(seconds=at, rss_anonymous=course(at), rss=course(at), steps=steps(at) or None)
        for at in range(seconds + 1)
    )
    before, after = (
        CgroupState(version=2, path="/job", memory_limit=LIMIT, oom_kills=kills, memory_used=LIMIT) for kills in (0, 1)
    )
    return Crash(
        outcome=Outcome(kind="signal", signal="SIGKILL"),
        method="status",
        pid=7,
        seconds=float(seconds),
        timeline=samples,
        cgroup_before=before,
        cgroup=after,
        **more,  # type: ignore[arg-type]
    )


def kind_of(crash: Crash) -> Kind:
    first = diagnose(crash).diagnoses[0]
    assert first.cause == "out-of-memory-kill"
    death = memory_death(crash)
    assert not death.title or death.title in first.title
    assert all(fix.title in {each.title for each in first.fixes} for fix in death.fixes)
    return death.kind


def growth(*holders: Holder) -> Growth:
    return Growth(
        what="memory",
        seconds=20,
        before=400 * MIB,
        after=1900 * MIB,
        per_second=30e6,
        per_step=1e6,
        since=40,
        steps=1500,
        holders=holders,
    )


def test_a_leak() -> None:
    text = (
        "the list `history` (global of train.py) grew by 1 item a step: EagerTensors of float32[256,1000], 1 MiB each"
    )
    crash = killed(lambda at: int(at * 30e6), growth=(growth(Holder(kind="tensors", text=text)),))
    assert kind_of(crash) == "leak"
    death = memory_death(crash)
    assert text in death.title
    assert (
        death.evidence[0].fact
        == "memory grew by 977 KiB a step (since step 40): from 400 MiB to 1.9 GiB in 1,500 steps"
    )
    assert death.fixes[0].title == "keep numbers instead of tensors"


def test_growth_without_a_seen_holder_is_not_called_a_leak() -> None:
    crash = killed(lambda at: int(at * 30e6), growth=(growth(),))
    assert kind_of(crash) == "growth"
    assert "leak" not in memory_death(crash).title


def test_a_jump_while_saving() -> None:
    saving = Progress(phase="save", detail="/home/ada/model.keras")
    crash = killed(lambda at: 800 * MIB if at < 57 else 1900 * MIB, progress=saving)
    assert kind_of(crash) == "jump"
    death = memory_death(crash)
    assert death.title == "one sudden jump during a save of model.keras"
    assert "from 800 MiB to 1.9 GiB" in death.evidence[0].fact
    assert "faultlens.save" in death.fixes[0].detail


IMAGES = Holder(kind="python objects", text="the array `images` (global of train.py): uint8[9000], 1.1 GiB")


def held(used: int, steps: int | None = 40) -> Held:
    return Held(
        seconds=58.8, used=used, limit=LIMIT, limit_of="control group", steps=steps, holders=(IMAGES, IMAGES, IMAGES)
    )


def test_what_held_the_memory_is_evidence_with_its_moment() -> None:
    crash = killed(lambda at: 800 * MIB if at < 57 else 1900 * MIB, held=held(1800 * MIB))
    assert kind_of(crash) == "jump"
    facts = [item.fact for item in diagnose(crash).diagnoses[0].evidence]
    assert IMAGES.text in facts
    assert (
        "what held memory 1.2 s before the end, when it had come to 87% of the 2 GiB of the control group (seen between"
        " two steps, so without what is only used while they run)"
    ) in facts


def test_what_held_it_at_a_fifth_of_the_limit_explains_nothing() -> None:
    crash = killed(lambda at: int(at * 30e6), held=held(400 * MIB))
    assert all(item.source != "census" for item in memory_death(crash).evidence)


def test_beside_a_leak_only_the_largest_are_named() -> None:
    crash = killed(lambda at: int(at * 30e6), growth=(growth(IMAGES),), held=held(1800 * MIB))
    assert sum(item.fact == IMAGES.text for item in memory_death(crash).evidence) == 1 + 2


def test_what_held_the_memory_of_a_program_that_was_asked_to_end() -> None:
    request = StopRequest(seconds=59.0, used=1945 * MIB, limit=LIMIT, limit_of="control group")
    crash = replace(
        killed(lambda _: 1900 * MIB, held=held(1800 * MIB, steps=None)),
        outcome=Outcome(kind="signal", signal="SIGTERM"),
        stop_request=request,
        cgroup=None,
    )
    first = diagnose(crash).diagnoses[0]
    assert first.cause == "stopped-before-out-of-memory"
    facts = [item.fact for item in first.evidence]
    assert IMAGES.text in facts and any("between two calls" in fact for fact in facts)


def test_a_rise_over_a_minute_is_no_jump() -> None:
    assert kind_of(killed(lambda at: int(at * 30e6))) == "unknown"


def test_an_even_climb_in_the_last_seconds_is_no_jump() -> None:
    assert kind_of(killed(lambda at: (800 + 110 * max(at - 50, 0)) * MIB)) == "unknown"


def test_a_jump_may_take_some_seconds() -> None:
    assert kind_of(killed(lambda at: (800 + 350 * min(max(at - 54, 0), 3)) * MIB)) == "jump"


def test_too_much_from_the_beginning() -> None:
    crash = killed(lambda at: int(at * 200e6), 9, steps=lambda at: int(at > 7), progress=Progress(phase="train"))
    assert kind_of(crash) == "beginning"
    assert memory_death(crash).title == "too much from the beginning, in training after 1 step"


def test_others_in_the_group() -> None:
    line = "Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:307200kB, file-rss:4kB"
    crash = killed(lambda _: 300 * MIB, kernel_log=(line,))
    assert kind_of(crash) == "others"


def test_what_the_last_sample_shows_does_not_blame_others() -> None:
    """It may be older than the last gigabyte."""
    assert kind_of(killed(lambda _: 300 * MIB)) == "unknown"


def test_the_line_at_which_it_stood_is_told_and_a_recursion_recognised() -> None:
    line = Frame(kind="python", function="walk", file="/home/ada/train.py", line=5)
    outer = Frame(kind="python", function="main", file="/home/ada/train.py", line=9)
    seen = LastLines(seconds=59.0, used=LIMIT // 2, limit=LIMIT, frames=(line,) * 40)
    crash = killed(lambda at: int(at * 30 * MIB), last_lines=seen)
    assert kind_of(crash) == "recursion"
    verdict = diagnose(crash).diagnoses[0]
    assert verdict.location is not None and verdict.location.line == 5
    assert "1.0 s before the end, when 50% of 2 GiB were used, it stood in walk (train.py:5)" in {
        item.fact for item in verdict.evidence
    }
    plain = replace(crash, last_lines=replace(seen, frames=(line, outer)))
    assert kind_of(plain) != "recursion"
    assert diagnose(plain).diagnoses[0].location == verdict.location
