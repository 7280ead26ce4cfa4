"""Which call uses which part of a stack, and what class an object says it is of."""

from __future__ import annotations

import struct

from fake_memory import FakeMemory, mapping
from faultlens.inspection.tensorflow.cpp import Objects, class_name
from faultlens.inspection.tensorflow.live_stack import LiveStack, Part, read_stack
from faultlens.inspection.tensorflow.liveness import is_computing, is_constructing, plain_name
from faultlens.inspection.tensorflow.pages import Pages
from faultlens.records.crash import Address, Frame
from kernel_images import layouts_of

STACK = 0x7000
FRAMES = (
    ("memcpy", 0x100),
    ("GatherOp<float>::Compute(OpKernelContext*)", 0x200),
    ("ThreadPoolDevice::Compute(OpKernel*, OpKernelContext*)", 0x300),
    ("Executor::Process(Node)", 0x400),
    ("WorkerLoop", 0x500),
)
#          0      1  2      3  4      5  6  7      8
WORDS = (0x11, 0x200, 0x22, 0x300, 0x200, 0x400, 0x33, 0x500, 0x44)
GATHER = (b"8GatherOp", b"N10tensorflow8OpKernelE")


def frames(*rows: tuple[str, int], approximate: bool = False) -> list[Frame]:
    return [
        Frame(
            kind="native",
            function=name,
            address=Address(at),
            library="/a/op.so",
            approximate=approximate and at != 0x100,
        )
        for name, at in rows
    ]


def stack(*rows: tuple[str, int], approximate: bool = False) -> LiveStack:
    part = Part(STACK, struct.pack(f"<{len(WORDS)}Q", *WORDS))
    return LiveStack(1, {"rsp": STACK, "rbx": 0x77}, frames(*rows, approximate=approximate), [part])


def place(word: int) -> int:
    return STACK + 8 * word


def test_return_addresses_part_the_stack_among_the_calls() -> None:
    live = stack(*FRAMES)
    assert [call.start for call in live.calls] == [STACK, place(2), place(4), place(6), place(8)]
    assert [live.call_of(place(index)) for index in range(9)] == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert [call.frame.function for call in live.calls_inside(place(4))] == [name for name, _ in FRAMES[:2]]


def test_an_inlined_call_has_the_part_of_the_one_it_is_in() -> None:
    live = stack(FRAMES[0], ("inlined", 0x200), *FRAMES[1:])
    assert [call.frame.function for call in live.calls_inside(place(2))] == ["memcpy"]
    assert [call.frame.function for call in live.calls_inside(place(4))] == ["memcpy", "inlined", FRAMES[1][0]]


def test_registers_count_as_the_innermost_words() -> None:
    live = stack(*FRAMES)
    assert live.place_of(0x77) == STACK
    assert live.place_of(0x33) == place(6)
    assert 0x77 in live.words


def test_a_context_lies_in_the_part_of_the_call_that_computes() -> None:
    live = stack(*FRAMES)
    assert is_computing(live, place(6), GATHER, "/a/op.so"), "in Process, which calls Compute"
    assert not is_computing(live, place(2), GATHER, "/a/op.so"), "in Compute itself: a leftover"
    assert not is_computing(live, place(0), GATHER, "/a/op.so")
    assert is_computing(live, 0x99000, GATHER, "/a/op.so"), "on the heap, and the kernel's code is running"
    assert not is_computing(live, 0x99000, (b"3Sum", b"N10tensorflow8OpKernelE"), "/a/op.so")


def test_guessed_frames_count_only_if_the_innermost_code_is_the_kernels() -> None:
    guessed = stack(*FRAMES, approximate=True)
    assert is_computing(guessed, place(6), GATHER, "/a/op.so")
    assert not is_computing(guessed, place(6), GATHER, "/another/library.so")


def test_a_construction_lies_in_the_part_of_the_call_that_makes_the_kernel() -> None:
    making = (("boom()", 0x100), ("GatherOp::GatherOp(tensorflow::OpKernelConstruction*)", 0x200), ("Create()", 0x300))
    assert is_constructing(stack(*making), place(4))
    assert not is_constructing(stack(*making), place(2))
    assert not is_constructing(stack(*making), 0x99000)


def test_a_stack_that_overflowed_is_read_at_both_ends() -> None:
    size = 8 << 20
    data = bytearray(size)
    data[-64:-56] = struct.pack("<Q", 0x1234567)
    pages = Pages(FakeMemory({STACK: bytes(data)}), (mapping(STACK, STACK + size, "rw-p"),), seconds=60)
    live = read_stack(pages, 1, {"rsp": STACK - 8}, ())
    assert live is not None
    assert live.place_of(0x1234567) == STACK + size - 64
    assert read_stack(pages, 1, {"rsp": STACK - (1 << 20)}, ()) is None


# ------------------------------------------------------------------------------------------------ classes

LIBRARY, CODE, HEAP = 0x20000, 0x30000, 0x40000


def objects(words: dict[int, int], texts: dict[int, bytes]) -> Objects:
    image = bytearray(0x30000)
    for address, word in words.items():
        image[address - LIBRARY : address - LIBRARY + 8] = struct.pack("<Q", word)
    for address, text in texts.items():
        image[address - LIBRARY : address - LIBRARY + len(text) + 1] = text + b"\0"
    mappings = (
        mapping(LIBRARY, CODE, "r--p", "/a/op.so"),
        mapping(CODE, HEAP, "r-xp", "/a/op.so"),
        mapping(HEAP, HEAP + 0x10000, "rw-p"),
    )
    return Objects(Pages(FakeMemory({LIBRARY: bytes(image)}), mappings, seconds=60), layouts_of("2.21")[0])


def typeinfo(address: int, name: int, kind: int, *bases: int) -> dict[int, int]:
    words = {address: kind, address + 8: name}
    if len(bases) == 1:
        return {**words, address + 16: bases[0]}
    rows = {address + 24 + 16 * index: base for index, base in enumerate(bases)}
    return {**words, address + 16: len(bases) << 32, **rows} if bases else words


NONE, ONE, MANY = LIBRARY + 0x5010, LIBRARY + 0x5110, LIBRARY + 0x5210  # tables of the kinds of typeinfo
KINDS = {
    NONE - 8: LIBRARY + 0x6000,
    ONE - 8: LIBRARY + 0x6100,
    MANY - 8: LIBRARY + 0x6200,
    LIBRARY + 0x6008: LIBRARY + 0x7000,
    LIBRARY + 0x6108: LIBRARY + 0x7100,
    LIBRARY + 0x6208: LIBRARY + 0x7200,
}
KIND_NAMES = {
    LIBRARY + 0x7000: b"N10__cxxabiv117__class_type_infoE",
    LIBRARY + 0x7100: b"N10__cxxabiv120__si_class_type_infoE",
    LIBRARY + 0x7200: b"N10__cxxabiv121__vmi_class_type_infoE",
}
TABLE, TYPE_A, TYPE_B, TYPE_C = LIBRARY + 0x100, LIBRARY + 0x200, LIBRARY + 0x300, LIBRARY + 0x400
NAMES = {LIBRARY + 0x900: b"*1A", LIBRARY + 0xA00: b"1B", LIBRARY + 0xB00: b"N10tensorflow8OpKernelE"}


def classes_of(*bases_of_a: int, bases_of_b: tuple[int, ...] = (TYPE_C,)) -> tuple[bytes, ...] | None:
    words = {
        **KINDS,
        HEAP: TABLE,
        TABLE: CODE + 0x10,
        TABLE - 8: TYPE_A,
        **typeinfo(TYPE_A, LIBRARY + 0x900, ONE if len(bases_of_a) == 1 else MANY, *bases_of_a),
        **typeinfo(TYPE_B, LIBRARY + 0xA00, ONE, *bases_of_b),
        **typeinfo(TYPE_C, LIBRARY + 0xB00, NONE),
    }
    return objects(words, {**KIND_NAMES, **NAMES}).classes(HEAP)


def test_an_object_says_what_it_is() -> None:
    assert classes_of(TYPE_B) == (b"1A", b"1B", b"N10tensorflow8OpKernelE")
    assert classes_of(TYPE_C, TYPE_B) == (b"1A", b"N10tensorflow8OpKernelE", b"1B")
    assert class_name(b"N10tensorflow8OpKernelE") == "tensorflow::OpKernel"


def test_classes_in_a_circle_and_bases_that_are_none() -> None:
    assert classes_of(TYPE_B, bases_of_b=(TYPE_A,)) == (b"1A", b"1B")
    assert classes_of(HEAP) is None
    assert classes_of(TYPE_B + 4) is None


def test_memory_that_is_no_object() -> None:
    no_rtti = {HEAP: TABLE, TABLE: CODE + 0x10, TABLE - 8: 0}
    assert objects(no_rtti, {}).classes(HEAP) == ()
    assert objects({HEAP: TABLE, TABLE: HEAP}, {}).classes(HEAP) is None, "its functions are no code"
    assert objects({HEAP: HEAP + 0x100}, {}).classes(HEAP) is None
    assert objects({}, {}).classes(0x10) is None


def test_the_plain_name_of_a_class() -> None:
    assert plain_name("tensorflow::BlockLSTMOp<Eigen::ThreadPoolDevice, (tensorflow::GateLayout)1>") == "BlockLSTMOp"
    assert plain_name("a::(anonymous namespace)::Op<b::C<d::E> >") == "Op"
    assert plain_name("GatherOp") == "GatherOp"
