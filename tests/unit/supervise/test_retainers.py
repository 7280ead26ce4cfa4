"""What grew between two heap snapshots: only what was seen is named."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from faultlens.inspection.census import Outside, alike
from faultlens.supervise.retainers import Grown, HeapSnapshot, Inside, holders, is_harmless, is_undecided, read_answer
from faultlens.text.sizes import KIB, MIB

RATE = 400 * KIB  # a step
STEPS = 100
NOTHING = Outside(
    memory={},
    mappings=100,
    reserved=0,
    files=Counter(),
    threads=Counter(),
    shared={},
    libraries=("/home/ada/libcrop.so",),
)
FIRST = Inside(
    number=1, steps=50, complete=True, malloc=(100 * MIB, 5 * MIB), traces=[("step", "/home/ada/train.py", 30, 1)]
)
SECOND = replace(FIRST, number=2, steps=50 + STEPS)


def snapshots(second: Inside, outside: Outside = NOTHING) -> tuple[HeapSnapshot, HeapSnapshot]:
    return HeapSnapshot(10.0, 50, NOTHING, FIRST), HeapSnapshot(15.0, 50 + STEPS, outside, second)


def test_a_list_with_its_owner() -> None:
    owner = "`history` (global of train.py)"
    grown = Grown("list", 150, STEPS, "EagerTensor float32[100,1000]", RATE, owner=owner, file="/home/ada/train.py")
    (holder,) = holders("memory", *snapshots(replace(SECOND, grown=[grown])), RATE)
    assert holder.kind == "tensors"
    assert holder.text == (
        "the list `history` (global of train.py) grew by 1 item a step: EagerTensors of float32[100,1000], 400 KiB each"
    )


def test_numbers_that_are_kept_do_not_explain_megabytes() -> None:
    losses = Grown("list", 150, STEPS, "float", 24, owner="`losses` (global of train.py)")
    second = replace(SECOND, grown=[losses], malloc=(100 * MIB + RATE * STEPS, 5 * MIB))
    (holder,) = holders("memory", *snapshots(second), RATE)
    assert holder.kind == "native heap"
    assert "libcrop.so" in holder.text


def test_more_python_objects_without_an_owner_do_not_blame_native_code() -> None:
    more = replace(SECOND, blocks=3 * STEPS, malloc=(100 * MIB + RATE * STEPS, 5 * MIB))
    (holder,) = holders("memory", *snapshots(more), RATE)
    assert "extension" not in holder.text
    assert "whose owner was not seen" in holder.text


def test_a_function_traced_with_every_step() -> None:
    second = replace(
        SECOND, traces=[("step", "/home/ada/train.py", 30, 1 + STEPS)], malloc=(100 * MIB + RATE * STEPS, 0)
    )
    (holder,) = holders("memory", *snapshots(second), RATE)
    assert holder.text == "tf.function `step` (train.py:30) was traced 101 times, 1 more a step: every trace is kept"
    assert holder.place and holder.place.line == 30


def test_the_line_of_variables_is_named_only_if_it_made_them() -> None:
    made = replace(SECOND, variables=(STEPS, RATE * STEPS), variables_made=[("", "/home/ada/train.py", 21, STEPS)])
    assert "made at train.py:21" in holders("memory", *snapshots(made), RATE)[0].text
    elsewhere = replace(made, variables_made=[("", "/home/ada/train.py", 21, 3)])
    assert "made at" not in holders("memory", *snapshots(elsewhere), RATE)[0].text


def test_answers_that_do_not_follow_each_other_are_not_compared() -> None:
    late = replace(SECOND, number=1, malloc=(100 * MIB + RATE * STEPS, 0))
    first, second = snapshots(late)
    assert is_undecided(first, second)
    (holder,) = holders("memory", first, second, RATE)
    assert "no Python object" not in holder.text


def test_more_objects_may_be_garbage_until_it_was_collected() -> None:
    more = replace(SECOND, types={"train.Batch": STEPS})
    assert is_undecided(*snapshots(more))
    assert not is_undecided(*snapshots(replace(more, collections=1)))


def test_a_deque_of_limited_length_only_fills() -> None:
    buffer = Grown("deque", 150, STEPS, "tuple", RATE, most=1000, owner="`buffer` (global of train.py)")
    assert is_harmless(*snapshots(replace(SECOND, grown=[buffer])), RATE)
    assert not is_harmless(*snapshots(replace(SECOND, grown=[Grown("deque", 150, STEPS, "tuple", RATE)])), RATE)


def test_an_array_that_was_made_before_only_fills() -> None:
    reserved = NOTHING._replace(reserved=RATE * STEPS)
    assert is_harmless(*snapshots(SECOND), RATE)  # neither malloc nor the address space grew
    assert not is_harmless(*snapshots(SECOND, reserved), RATE)
    assert not is_harmless(*snapshots(replace(SECOND, malloc=(100 * MIB + RATE * STEPS, 0)), reserved), RATE)


def test_memory_that_malloc_keeps_is_no_leak() -> None:
    kept = replace(SECOND, malloc=(100 * MIB, 5 * MIB + RATE * STEPS))
    assert is_harmless(*snapshots(kept, NOTHING._replace(reserved=RATE * STEPS)), RATE)


def test_files_are_told_by_what_they_are() -> None:
    files = NOTHING._replace(files=Counter({alike(f"/data/part-{number:05}"): number for number in (STEPS,)}))
    (holder,) = holders("open files", *snapshots(SECOND, files), 1.0)
    assert holder.text == "100 descriptors of `/data/part-#`, 1 more a step"


def test_shared_memory_of_others_is_not_named() -> None:
    assert holders("shared memory", *snapshots(SECOND), RATE) == ()


def test_an_answer_is_read_from_a_line_of_the_notes() -> None:
    line = b'{"pid":7,"census":{"number":2,"steps":9,"largest":[{"type":"ndarray","what":"","size":8}]}}'
    answer = read_answer(line, 7)
    assert answer and answer.steps == 9
    assert read_answer(line, 8) is None
    assert read_answer(b'{"pid":7,"function":"f"}', 7) is None
    assert read_answer(line[:20], 7) is None
