"""What the program's own messages say about its end."""

from __future__ import annotations

import pytest

from faultlens.diagnosis.evidence.last_words import abort_reason
from faultlens.diagnosis.evidence.messages import HEAP_OVERFLOW, CheckFailure, check_failure
from faultlens.records.crash import Output
from recorded import ended

NEW = "F0000 00:00:1794924348.863349   22052 tensor.cc:1120] Check failed: limit <= dim0_size (4 vs. 3) "
OLD = (
    "2024-01-02 03:04:05.678901: F tensorflow/core/framework/tensor.cc:1120] Check failed: limit <= dim0_size (4 vs. 3)"
)
BEFORE = {
    "a line of its own": "Epoch 2\n",
    "nothing": "",
    "words without an end": "imported",
    "a progress bar": "\r 45%|####5     | 45/100 [00:01<00:01]",
    "one of Keras": "12/100 ━━━━━━━━━━━ 3s 30ms/step - loss: 0.1",
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("line", [NEW, OLD], ids=["new", "old"])
def test_a_failed_check_wherever_its_line_begins(before: str, line: str) -> None:
    crash = ended(output=Output(stderr=f"{before}{line}\n*** Check failure stack trace: ***\n"))
    found = check_failure(crash)
    assert isinstance(found, CheckFailure)
    assert found.text == "Check failed: limit <= dim0_size (4 vs. 3)" and found.place.endswith("tensor.cc:1120")
    assert (abort_reason(crash) or "").startswith("Check failed: limit <= dim0_size (4 vs. 3)")


@pytest.mark.parametrize(
    "text",
    [
        "Fatal glibc error: malloc assertion failure in sysmalloc: (old_top == initial_top (av) && old_size == 0)",
        "Fatal glibc error: malloc.c:2599 (sysmalloc): assertion failed: (old_top == initial_top (av))",
        "malloc(): unaligned tcache chunk detected",
        "corrupted double-linked list (not small)",
        "corrupted unsorted chunks",
        "free(): chunks in smallbin corrupted",
    ],
)
def test_what_glibc_says_of_a_damaged_heap(text: str) -> None:
    assert HEAP_OVERFLOW.search(text)
