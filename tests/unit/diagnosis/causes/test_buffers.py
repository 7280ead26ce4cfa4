"""Memory that Python handed to native code: its lifetime, its bounds, its address."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.causes import find
from faultlens.records.crash import Address, Crash, Frame, Mapping, Thread
from recorded_crashes import causes, claim, first, load


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("dlpack_dangling", "dangling-buffer"),
        ("numpy_view_of_unmapped_buffer", "dangling-buffer"),
        ("array_pointer_outlived", "dangling-buffer"),
        ("ring_unmapped_by_thread", "buffer-race"),
        ("resized_by_thread", "buffer-race"),
        ("dlpack_misaligned_numpy", "unaligned-buffer"),
        ("libc_free_twice", "double-free-buffer"),
        ("closed_twice", "double-free-buffer"),
        ("ctypes_ptr_truncated", "pointer-truncated"),
        ("as_strided_too_far", "view-out-of-bounds"),
        ("memmove_too_far", "foreign-call-overrun"),
        ("memset_past_fence", "foreign-call-overrun"),
        ("memset_painted", "foreign-call-overrun"),
        ("wild_memset", "wild-pointer-passed"),
        ("wild_from_address", "wild-pointer-passed"),
        ("wild_function", "wild-pointer-passed"),
        ("wild_strlen", "wild-pointer-passed"),
        ("as_strided_damaged_heap", "view-out-of-bounds"),
        ("np_readonly_mmap_write", "read-only-write"),
        ("none_passed", "null-pointer-passed"),
        ("ctypes_value_at_null", "null-pointer-passed"),
        ("lookup_null_passed", "null-pointer-passed"),
        ("strlen_null", "null-pointer-passed"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


def test_the_line_that_used_the_memory_is_shown() -> None:
    location = first(load("numpy_view_of_unmapped_buffer")).location
    assert location is not None
    assert location.line == 28


@pytest.mark.parametrize("name", ["dlpack_dangling", "as_strided_too_far", "ctypes_ptr_truncated", "libc_free_twice"])
def test_without_the_sources_nothing_is_certain(name: str) -> None:
    assert claim(replace(load(name), sources={})) <= 0.9


def test_a_hole_under_a_kernel_alone_does_not_dangle() -> None:
    assert "dangling-buffer" not in causes(replace(load("dlpack_dangling"), sources={}))


def test_memory_that_is_there_does_not_dangle() -> None:
    crash = load("numpy_view_of_unmapped_buffer")
    assert crash.fault is not None
    assert crash.fault.address is not None
    start = Address(crash.fault.address - crash.fault.address % 4096)
    live = Mapping(start=start, end=Address(start + 4096), permissions="r--p")
    mappings = tuple(sorted((*crash.mappings, live), key=lambda mapping: mapping.start))
    assert "dangling-buffer" not in causes(replace(crash, mappings=mappings))


def test_a_release_on_the_same_thread_is_no_race() -> None:
    crash = load("ring_unmapped_by_thread")
    sources = {path: text.replace("threading.Thread", "object") for path, text in crash.sources.items()}
    assert first(replace(crash, sources=sources)).cause == "dangling-buffer"


def test_another_check_is_not_about_alignment() -> None:
    crash = load("dlpack_misaligned_numpy")
    text = (crash.output.stderr or "").replace("IsAligned()", "ok()").replace("IsAligned", "")
    assert "unaligned-buffer" not in causes(replace(crash, output=replace(crash.output, stderr=text)))


def test_an_address_that_is_half_of_nothing_was_not_truncated() -> None:
    crash = load("ctypes_ptr_truncated")
    elsewhere = tuple(mapping for mapping in crash.mappings if "w" not in mapping.permissions)
    assert "pointer-truncated" not in causes(replace(crash, mappings=elsewhere))


def test_a_function_that_frees_twice_by_itself_is_not_python_s_fault() -> None:
    assert "double-free-buffer" not in causes(load("op_double_free"))


def test_heap_damage_without_views_is_not_blamed_on_them() -> None:
    crash = load("as_strided_damaged_heap")
    sources = {path: text.replace("as_strided", "ascontiguousarray") for path, text in crash.sources.items()}
    assert "view-out-of-bounds" not in causes(replace(crash, sources=sources))


def test_a_writable_mapping_may_be_written() -> None:
    crash = load("np_readonly_mmap_write")
    writable = tuple(replace(mapping, permissions="rw-p") for mapping in crash.mappings)
    assert "read-only-write" not in causes(replace(crash, mappings=writable))


def test_a_null_that_the_library_made_itself_was_not_passed() -> None:
    assert "null-pointer-passed" not in causes(load("ctypes_null_inside"))
    assert "null-pointer-passed" not in causes(load("op_null_deref"))


@pytest.mark.parametrize("slug", ["aliased-buffer", "harmless"])
def test_what_does_not_crash_never_explains_a_crash(slug: str) -> None:
    cause = find(slug)
    assert cause is not None
    assert "## How to fix it" in cause.explanation
    for name in ("dlpack_dangling", "op_null_deref", "libc_free_twice"):
        assert slug not in causes(load(name))


# ------------------------------------------------------------------------------ calls that were told too much


def test_a_write_past_the_end_is_told_with_call_block_owner_extent_and_fix() -> None:
    found = first(load("memset_past_fence"))
    assert found.title == (
        "memset, called through ctypes, wrote past the end of a block of 1,000 bytes that ctypes had allocated"
    )
    facts = [fact.fact for fact in found.evidence]
    assert "it was about to write up to byte 1,300: 300 bytes more than the block has" in facts
    assert any(fact.startswith("it was allocated by PyMem_Malloc of python3.11") for fact in facts)
    assert found.location is not None and found.location.line == 4
    assert found.fixes[0].title == "limit the count of memset at hunt_memset.py:4 to the size of the block"
    assert not any("stride" in fix.title + fix.detail or "sliding" in fix.title for fix in found.fixes)


def test_what_was_seen_later_is_told_of_the_only_call_that_can_have_done_it() -> None:
    crash = load("memset_painted")
    found = first(crash)
    assert "most likely by memset at hunt_memset.py:4" in found.title and found.confidence < 0.97
    two = {path: text + "\nctypes.memmove(a, b, 3)\n" for path, text in crash.sources.items()}
    undecided = first(replace(crash, sources=two))
    assert undecided.cause == "heap-corruption"
    assert "right behind the end of a block of 1,000 bytes that ctypes had allocated" in undecided.title
    assert "when it was freed" in undecided.title
    suspects = [fact.fact for fact in undecided.evidence if fact.fact.startswith("a suspect")]
    assert len(suspects) == 2


def test_a_copy_that_begins_in_read_only_memory_did_not_run_into_it() -> None:
    assert "foreign-call-overrun" not in causes(load("np_readonly_mmap_write"))


# ------------------------------------------------------------------------------ pointers that lead nowhere


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("wild_memset", "Python handed memset a pointer to 0x712345678000, where nothing is mapped"),
        ("wild_from_address", "a ctypes object or pointer was used that lies at 0x5abc00001000, where nothing is"),
        ("wild_function", "Python called a function at 0x723456789000 through ctypes, where there is no code"),
        ("wild_strlen", "Python handed strlen a pointer to 0x4142434445464748, which is not an address at all"),
    ],
)
def test_a_wild_pointer_is_told_with_its_address_and_who_got_it(name: str, title: str) -> None:
    found = first(load(name))
    assert found.title.startswith(title) and found.confidence >= 0.8
    assert found.location is not None and found.location.file.endswith(f"{name}.py")


def test_the_function_that_died_is_not_blamed_for_its_argument() -> None:
    assert not any("declare the types of strlen" in fix.title for fix in first(load("wild_strlen")).fixes)


def test_memory_that_was_given_back_is_no_wild_pointer() -> None:
    assert "wild-pointer-passed" not in causes(load("dlpack_dangling"))


# ------------------------------------------------------------------- an interpreter without symbols (Debian's)


@pytest.mark.parametrize(
    ("name", "cause", "title"),
    [
        ("stripped_string_at_null", "null-pointer-passed", "Python handed a null pointer to string_at"),
        ("stripped_value_at_null", "null-pointer-passed", "a ctypes value lies at a null address"),
        ("stripped_os_abort", "signal-raised-by-program", "the program sent SIGABRT to itself, in give_up()"),
        ("stripped_callback_collected", "native-bad-function-pointer", "called a ctypes callback whose object is gone"),
    ],
)
def test_whose_code_it_is_tells_what_names_would(name: str, cause: str, title: str) -> None:
    found = first(load(name))
    assert found.cause == cause and title in found.title
    assert not any("??" in fact.fact for fact in found.evidence)


def test_an_interpreter_that_says_why_it_gives_up_was_not_asked_to() -> None:
    crash = load("stripped_os_abort")
    said = replace(crash, output=replace(crash.output, stderr="Fatal Python error: bad_state: it is broken\n"))
    assert "signal-raised-by-program" not in causes(said)
    own_handler = replace(crash, output=replace(crash.output, stderr="Fatal Python error: Aborted\n"))
    assert first(own_handler).cause == "signal-raised-by-program"


# ----------------------------------------------------------------------------- a small number is no null pointer


def _with_pointer(crash: Crash, number: int) -> Crash:
    """The same death, with another number in the register that was followed."""
    fault = crash.fault
    assert fault is not None and fault.instruction is not None
    (used,) = fault.instruction.operands
    (name,) = used.registers
    offset = (fault.address or 0) - used.registers[name]
    used = replace(used, registers={name: Address(number)}, address=Address(number + offset))
    return replace(
        crash,
        fault=replace(
            fault,
            address=used.address,
            registers={**fault.registers, name: Address(number)},
            instruction=replace(fault.instruction, operands=(used,)),
        ),
    )


@pytest.mark.parametrize("name", ["strlen_null", "stripped_string_at_null", "ctypes_value_at_null"])
@pytest.mark.parametrize("number", [1, 8, 0x40])
def test_a_small_number_is_told_as_such(name: str, number: int) -> None:
    crash = _with_pointer(load(name), number)
    found = first(crash)
    assert found.cause == "wild-pointer-passed" and claim(crash) == 0.9
    assert f"{number:#x}" in found.title
    told = " ".join((found.title, *(fact.fact for fact in found.evidence)))
    assert "null pointer" not in told
    assert "a handle or an enum" in found.fixes[0].detail
    assert not any("argtypes" in fix.title for fix in found.fixes)


def test_ctypes_own_functions_have_their_types_declared() -> None:
    found = first(load("stripped_string_at_null"))
    assert found.cause == "null-pointer-passed"
    assert [fix.title for fix in found.fixes] == ["check the pointer before the call"]


# --------------------------------------------------------------------------------- threads of a library's own


def test_memory_that_a_library_s_thread_still_uses_is_told_at_its_release() -> None:
    crash = _on_thread_of_library(load("freed_unmapped"))
    found = first(crash)
    assert found.cause == "dangling-buffer" and found.confidence <= 0.75
    assert found.title == "memory was given back while a thread of libkit.so still used it"
    assert found.location is not None and found.location.line == 4
    assert "out of bounds" not in found.title
    kept = {path: text.replace("lib.munmap(p, 4096)", "") for path, text in crash.sources.items()}
    alone = first(replace(crash, sources=kept))
    assert alone.cause != "dangling-buffer"
    # The main thread's line has nothing to do with it; the one that set the library to work has.
    assert alone.location is not None and alone.location.line == 3
    several = {path: f"{text}lib.more()\n" for path, text in kept.items()}
    assert first(replace(crash, sources=several)).location is None


def _on_thread_of_library(crash: Crash) -> Crash:
    """The same access, on a thread that the library started for itself; Python sleeps meanwhile."""
    assert crash.fault is not None and crash.pid is not None
    dying = next(thread for thread in crash.threads if thread.crashed)
    inside = next(frame for frame in dying.frames if frame.library and frame.library.endswith("libkit.so"))
    start = Frame(kind="native", function="start_thread", library="/usr/lib/x86_64-linux-gnu/libc.so.6")
    number = crash.pid + 1
    sleeping = Frame(kind="python", function="train", file="/home/ada/project/main.py", line=9)
    main = Thread(id=crash.pid, frames=(sleeping,), launched=True)
    own = Thread(id=number, frames=(inside, start), crashed=True)
    code = "import ctypes\nlib = ctypes.CDLL('./libkit.so')\nlib.begin(p)\nlib.munmap(p, 4096)\n"
    return replace(
        crash,
        threads=(own, main),
        fault=replace(crash.fault, thread=number),
        sources={"/home/ada/project/main.py": code},
    )
