"""What sanitizers wrote about real ops, read: kind, words, lines of the op, the line of Python."""

from __future__ import annotations

from pathlib import Path

import places
from faultlens.custom_op.sanitize.findings import Op, finding_of, line_for, without_doubles
from faultlens.custom_op.sanitize.parsers import asan, gwp_asan, outputs, python_lines, tsan, ubsan, valgrind
from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack, frame_of

RECORDED = places.RECORDED / "sanitizers"
OP = Op([Path("/src/planted.cc")])


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def own_line(reported: Reported) -> int:
    finding = finding_of(reported, OP, None)
    assert finding is not None and finding.span is not None, reported
    return finding.span.line


def test_address_sanitizer_says_what_and_where() -> None:
    told = [(each.rule, own_line(each)) for each in asan.parse(recorded("asan"))]
    assert told == [
        ("heap-overflow", 28),
        ("heap-overflow", 44),
        ("use-after-free", 59),
        ("double-free", 74),
        ("stack-overrun", 88),
        ("stack-exhausted", 101),
    ]


def test_address_sanitizer_in_plain_words() -> None:
    words = [each.words for each in asan.parse(recorded("asan"))]
    assert words[:3] == [
        "write of 4 bytes, 0 bytes past the end of a block of 40 bytes",
        "read of 4 bytes, 0 bytes past the end of a block of 40 bytes",
        "read of 4 bytes, 12 bytes into a freed block of 64 bytes",
    ]
    assert words[4] == "write of 4 bytes past the end of the local variable window (line 85)"


def test_newer_compilers_word_the_place_otherwise() -> None:
    older, newer = "0 bytes to the right of 40-byte region", "0 bytes after 40-byte region"
    text = recorded("asan")
    assert older in text
    assert [each.words for each in asan.parse(text.replace(older, newer))] == [each.words for each in asan.parse(text)]


def test_who_freed_and_who_allocated() -> None:
    finding = finding_of(list(asan.parse(recorded("asan")))[2], OP, None)
    assert finding is not None
    assert [(each.says, each.span.line) for each in finding.related] == [("freed here", 58), ("allocated here", 56)]
    assert finding.op == "UsedAfterFreeOp"


def test_only_leaks_of_the_op_are_told() -> None:
    leaks = list(asan.parse(recorded("leaks")))
    assert len(leaks) == 3  # two of the interpreter's
    findings = [finding for leak in leaks if (finding := finding_of(leak, OP, None))]
    assert [(each.rule, each.title, each.span.line) for each in findings if each.span] == [
        ("memory-leak", "4,000 bytes are never freed", 116)
    ]
    assert findings[0].severity == "warning"  # one block: it may be meant to live on


def test_a_kernel_that_tensorflow_keeps_is_no_leak() -> None:
    kept = """==7==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 256 byte(s) in 2 object(s) allocated from:
    #0 0x7f in operator new(unsigned long) asan_new_delete.cpp:95
    #1 0x7f in operator() /src/planted.cc:189
    #2 0x7f in _FUN /src/planted.cc:189
    #3 0x7f in tensorflow::CreateOpKernel(tsl::DeviceType, tensorflow::DeviceBase*) (/env/tf.so+0x12)
"""
    assert list(asan.parse(kept)) == []
    assert len(list(asan.parse(kept.replace("CreateOpKernel", "MyOp::Compute")))) == 1


def test_undefined_behaviour_has_a_column() -> None:
    index, overflow = (finding_of(each, OP, None) for each in ubsan.parse(recorded("ubsan")))
    assert index is not None and overflow is not None and index.span is not None and overflow.span is not None
    assert (index.severity, index.span.line, index.span.column) == ("error", 88, 15)
    assert (overflow.severity, overflow.span.line, overflow.span.column) == ("warning", 165, 43)


def test_damage_is_told_once() -> None:
    both = [*asan.parse(recorded("asan")), *ubsan.parse(recorded("ubsan"))]
    findings = without_doubles(finding for each in both if (finding := finding_of(each, OP, None)))
    assert [each.rule for each in findings if each.span and each.span.line == 88] == ["stack-overrun"]


def test_a_race_names_both_sides() -> None:
    races = list(tsan.parse(recorded("tsan")))
    assert [(each.rule, own_line(each)) for each in races] == [("data-race", 148), ("data-race", 226)]
    assert races[0].words == "read of 4 bytes that another thread writes at the same time"
    assert own_line(Reported("data-race", "", "", races[0].others[0].frames, (races[0].others[0],))) == 148


def test_what_a_kernel_hands_to_its_shards_is_no_race() -> None:
    compute = (Frame("ShardedOp::Compute()", "/src/planted.cc", 200),)
    shard = (Frame("ShardedOp::Compute()::{lambda()#1}::operator()", "/src/planted.cc", 204),)
    race = Reported("data-race", "", "ThreadSanitizer", shard, (Stack("write", compute),))
    assert finding_of(race, OP, None) is None


def test_a_race_whose_other_side_was_forgotten_is_not_told() -> None:
    text = recorded("tsan")
    begin = text.index("  Previous write")
    forgotten = text[:begin] + "  Previous write of size 4 at 0x7b by thread T4:\n    [failed to restore the stack]\n\n"
    assert list(tsan.parse(forgotten)) == []


def test_unwritten_outputs() -> None:
    (unwritten,) = outputs.parse(recorded("outputs"))
    assert (unwritten.op, unwritten.output) == ("UnsetOutput", 0)
    assert unwritten.words == "1 element of 10 of output 0 is never set"
    assert unwritten._replace(unset=10).words == "no element of output 0 is ever set"
    missing = unwritten._replace(unset=0, elements=0)
    assert (missing.rule, missing.words) == (
        "missing-output",
        "output 0 is not there when Compute returns, and no error is set",
    )


def test_python_lines_in_the_order_of_the_reports() -> None:
    noted = python_lines.parse(recorded("python"))
    reports = list(asan.parse(recorded("asan")))
    lines = [place.line for each in reports if (place := line_for(each, noted))]
    assert lines == [7, 8, 9, 10, 11, 16]


def test_a_worker_has_no_python_but_who_waits_for_it_has() -> None:
    noted = python_lines.parse(recorded("python_of_workers"))
    assert [note.location and (note.location.file, note.location.line) for note in noted] == [("/src/train.py", 12)] * 2


def test_waiting_at_different_lines_decides_nothing() -> None:
    text = recorded("python_of_workers").split("@tsan")[2]
    assert text.count('train.py", line 12') > 1
    noted = python_lines.parse("@tsan" + text.replace('train.py", line 12', 'train.py", line 99', 1))
    assert [note.location for note in noted] == [None]


def test_paths_with_blanks() -> None:
    assert frame_of("    #3 0x7f12 in Op::Compute(Context*) /my ops/a b.cc:12:7") == Frame(
        "Op::Compute(Context*)", "/my ops/a b.cc", 12, 7
    )
    assert frame_of("    #1 0x7f12 in f<int>(long) (/lib/x.so+0x12)") == Frame("f<int>(long)")
    assert frame_of("not a frame") is None


def test_code_of_others_is_not_the_op() -> None:
    assert not OP.owns(Frame("f", "Objects/typeobject.c", 12))
    assert not OP.owns(Frame("f", "/env/lib/python3.11/site-packages/tensorflow/include/Eigen/x.h", 12))
    assert OP.owns(Frame("f", "/src/helper.h", 3))


def test_valgrind() -> None:
    op = Op([Path("/src/uses.c")])
    findings = [finding for each in valgrind.parse(recorded("valgrind")) if (finding := finding_of(each, op, None))]
    told = [(each.rule, each.span.line, [other.span.line for other in each.related]) for each in findings if each.span]
    assert told == [("use-after-free", 17, [16, 13]), ("memory-leak", 7, [])]


def test_newer_gwp_asan_warns_in_the_middle_and_calls_the_place_otherwise() -> None:
    line = (
        "Use After Free (warning: buffer overflow/underflow detected on a free()'d allocation. (…)) at 0x7fd2f564f0c8 "
        "(200 bytes to the right of a 400-byte allocation at 0x7fd2f564f000) by thread 29024 here:"
    )
    (found,) = gwp_asan.parse(f"*** GWP-ASan detected a memory error ***\n{line}\n")
    assert found.words == "use after free, 200 bytes into a block of 400 bytes"


def test_gwp_asan_knows_places_in_libraries() -> None:
    (found,) = gwp_asan.parse(recorded("gwp_asan"))
    assert (found.rule, found.words) == ("use-after-free", "use after free, 3 bytes into a block of 100 bytes")
    places = [(frame.function, frame.module) for frame in found.frames if frame.module.endswith("uses.so")]
    assert places == [("use_after_free", "/build/uses.so")]
    assert [other.says for other in found.others] == ["freed here", "allocated here"]
