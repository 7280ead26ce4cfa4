"""Ops in flight, searched again in the recorded memory of programs that died inside TensorFlow 2.12 to 2.21."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

import kernel_images
from faultlens.inspection.tensorflow import kernels
from faultlens.inspection.tensorflow.layout import Release, Table, choose, table
from faultlens.inspection.tensorflow.pages import GRACE, Pages, SpentError
from faultlens.records.crash import Attribute, Kernel
from kernel_images import image_memory, layouts_of, load, scan

EAGER = ["eager_2.12", "eager_2.15", "eager_2.20", "eager_2.21"]


def found(name: str) -> tuple[Kernel, ...]:
    return scan(load(name)).kernels


def at_fault(name: str) -> Kernel:
    first, *others = found(name)
    assert first.at_fault
    assert not any(kernel.at_fault for kernel in others)
    return first


def shapes(kernel: Kernel) -> list[str | None]:
    return [f"{tensor.dtype}{list(tensor.shape)}" if tensor else None for tensor in kernel.inputs]


# ------------------------------------------------------------------------------------------ what is found


@pytest.mark.parametrize("name", kernel_images.names())
def test_recorded_memory_is_read_as_it_was(name: str) -> None:
    image = load(name)
    assert scan(image) == (image.kernels, ())


@pytest.mark.parametrize("name", EAGER)
def test_an_eager_op_with_everything_it_was_given(name: str) -> None:
    kernel = at_fault(name)
    assert (kernel.op, kernel.node, kernel.stage, kernel.kernel_class) == (
        *("CrashNow", "CrashNow"),
        *("compute", "CrashNowOp"),
    )
    matrix, when = kernel.inputs
    assert matrix is not None and when is not None
    assert (matrix.dtype, matrix.shape, matrix.size) == ("float32", (3, 4), 48)
    assert memoryview(matrix.contents or b"").cast("f").tolist() == [float(number) for number in range(12)]
    assert (when.dtype, when.shape, when.contents) == ("int32", (), b"\1\0\0\0")
    assert kernel.attributes == {
        "T": Attribute(kind="type", value="bfloat16"),
        "label": Attribute(kind="string", value="höß"),
        "scales": Attribute(kind="list(float)", value=[0.5, "inf"]),
        "shapes": Attribute(kind="list(shape)", value=[[1, -1], None, []]),
        "sizes": Attribute(kind="list(int)", value=[4, -5]),
    }


def test_a_graph_op_on_a_thread_of_the_pool() -> None:
    image = load("pool_thread_2.21")
    kernel = at_fault("pool_thread_2.21")
    assert kernel.op == "BlockLSTMV2"
    assert kernel.node == "StatefulPartitionedCall/functional_1/packed_lstm_1/BlockLSTMV2"
    assert shapes(kernel)[:2] == ["int64[]", "float32[3, 4, 4]"]
    crashed = next(thread for thread in image.threads if thread.crashed)
    assert kernel.thread == crashed.id != next(thread.id for thread in image.threads if thread.launched)


def test_strings_and_the_op_that_waits_for_the_data() -> None:
    parse = at_fault("data_map_2.21")
    assert parse.op == "ParseExampleV2"
    serialized, keys = parse.inputs[0], parse.inputs[3]
    assert serialized is not None and serialized.strings is not None and keys is not None
    assert len(serialized.strings) == 2 and all(b"label" in text for text in serialized.strings)
    assert keys.strings == (b"label", b"tags")
    assert parse.attributes["Tdense"] == Attribute(kind="list(type)", value=["int64", "float32"])
    assert found("data_map_2.21")[-1].op == "IteratorGetNext"


def test_a_kernel_that_is_being_made() -> None:
    kernel = at_fault("construct_2.12")
    assert (kernel.op, kernel.stage, kernel.inputs) == ("RecordInput", "construct", ())
    assert kernel.attributes["file_parallelism"] == Attribute(kind="int", value=-1)


def test_a_thread_that_did_a_share_of_the_work() -> None:
    """Two ops are in flight; the crashed thread works for one of them without having its context."""
    kernel = at_fault("helper_2.15")
    assert kernel.node == "sharded"
    assert all(kernel.thread != thread.id for thread in load("helper_2.15").threads if thread.crashed)
    assert [other.node for other in found("helper_2.15")[1:]] == ["other"]


def test_an_op_that_goes_on_in_a_function_of_its_own() -> None:
    assert at_fault("async_2.21").node == "later"
    assert [other.node for other in found("async_2.21")[1:]] == ["napping"]


def test_the_op_that_an_exception_escaped_from() -> None:
    kernel = at_fault("exception_2.21")
    assert (kernel.op, shapes(kernel)) == ("ParseTable2", ["float32[8]"])
    image = load("exception_2.21")
    assert scan(replace(image, exceptions=())).kernels == (), "without the exception it is only a leftover"


def test_while_xla_compiles_tensors_have_no_values() -> None:
    kernel = at_fault("compiling_2.21")
    assert shapes(kernel) == ["int64[3]", "int32[]"]
    assert all(tensor and tensor.address is None and tensor.contents is None for tensor in kernel.inputs)


# -------------------------------------------------------------------------------------- what is left out


def test_leftovers_of_ops_that_have_ended_are_no_ops_in_flight() -> None:
    """Both stacks hold a whole context of an earlier op in the part of a call that never wrote over it."""
    assert [kernel.op for kernel in found("check_2.21")] == ["BlockLSTMGradV2"]
    assert [kernel.op for kernel in found("python_2.21")] == ["EagerPyFunc"]


def test_the_op_that_runs_python_code_is_not_at_fault() -> None:
    assert [kernel.at_fault for kernel in found("python_2.21")] == [False]


@pytest.mark.parametrize("name", ["eager_2.12", "pool_thread_2.21"])
def test_frames_decide_what_is_alive(name: str) -> None:
    image = load(name)
    idle = tuple(replace(thread, frames=()) for thread in image.threads)
    assert scan(replace(image, threads=idle)).kernels == ()


def test_contents_can_be_left_out() -> None:
    image = load("data_map_2.21")
    bare = scan(image, contents=False).kernels
    assert all(tensor.contents is None for kernel in bare for tensor in kernel.inputs if tensor)
    assert all(tensor.strings is None for kernel in bare for tensor in kernel.inputs if tensor)
    assert [shapes(kernel) for kernel in bare] == [shapes(kernel) for kernel in image.kernels]


def test_a_process_without_tensorflow_is_not_even_read() -> None:
    image = load("eager_2.21")
    elsewhere = tuple(mapping for mapping in image.mappings if "tensorflow" not in (mapping.path or ""))
    memory = image_memory(image)
    assert kernels.kernels_in_flight(memory, elsewhere, image.threads, image.registers, image.fault) == ((), ())
    assert memory.reads == 0


# ------------------------------------------------------------------------------------ releases and builds


@pytest.mark.parametrize("name", kernel_images.names())
def test_an_unknown_build_gives_less_but_nothing_wrong(name: str) -> None:
    everything = choose(table(), set(), None)
    assert len(everything) > 3
    for kernel, truth in zip(scan(load(name), layouts=everything).kernels, load(name).kernels, strict=True):
        assert replace(kernel, attributes={}) == replace(truth, attributes={})
        assert kernel.attributes.items() <= truth.attributes.items()
        assert {each.kind for each in kernel.attributes.values()} <= {"int", "float", "bool", "type", "string"}


def test_a_build_unlike_the_only_release_that_fits_invents_no_lists() -> None:
    """The two newest releases find each other's kernels, but not the lists in their attributes."""
    others = tuple(layout for layout in choose(table(), set(), None) if layout not in layouts_of("2.21"))
    found = scan(load("eager_2.21"), layouts=others)
    assert [kernel.op for kernel in found.kernels] == [kernel.op for kernel in load("eager_2.21").kernels]
    for kernel, truth in zip(found.kernels, load("eager_2.21").kernels, strict=True):
        assert kernel.attributes.items() <= truth.attributes.items()
    assert any("not known" in gap for gap in found.gaps)


def test_the_layout_of_a_release_that_differs_finds_nothing() -> None:
    for name, wrong in (("eager_2.12", "2.21"), ("eager_2.21", "2.15"), ("construct_2.12", "2.20")):
        assert scan(load(name), layouts=layouts_of(wrong)).kernels == ()


def test_layouts_are_chosen_by_build_then_by_release() -> None:
    old, new = layouts_of("2.12")[0], layouts_of("2.21")[0]
    known = Table(
        layouts=(
            Release(versions=("2.12.0", "2.12.1"), build_ids=("aa",), offsets=old),
            Release(versions=("2.21.0",), build_ids=("bb",), offsets=new),
        )
    )
    assert choose(known, {"aa", None}, "2.21.0") == (old,)
    assert choose(known, {"cc"}, "2.12.1") == (old,)
    assert choose(known, {None}, "2.12.9") == (old,)
    assert choose(known, {None}, "2.30.0") == (new, old)
    assert choose(known, set(), None) == (new, old)


# ------------------------------------------------------------------------------------------------- limits


def test_a_search_without_time_says_so() -> None:
    scanned = scan(load("eager_2.21"), seconds=0)
    assert scanned.kernels == ()
    assert "took longer than 0 s" in scanned.gaps[0]


def test_what_was_found_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crashed thread comes first: its op is told even where there is no time for the others."""
    image = load("data_map_2.21")
    memory = image_memory(image)
    scan(image, memory)
    told = set()
    for limit in range(0, memory.reads * 2, 16):
        monkeypatch.setattr(kernels, "Pages", partial(Pages, reads=limit))
        limited = scan(image)
        assert limited.gaps or limited.kernels == image.kernels
        assert [kernel.at_fault for kernel in limited.kernels[:1]] in ([], [True])
        told.add(len(limited.kernels))
    assert {0, 1, len(image.kernels)} <= told


def test_reads_are_counted_and_end() -> None:
    image = load("eager_2.21")
    memory = image_memory(image)
    pages = Pages(memory, image.mappings, seconds=60, reads=10)
    places = [mapping.start + page for mapping in image.mappings for page in range(0, 8 * 4096, 4096)]
    with pytest.raises(SpentError):
        for place in places:
            pages.word(place)
    assert memory.reads == 10 - 10 * GRACE
    pages.grant_grace()
    with pytest.raises(SpentError):
        for place in reversed(places):
            pages.word(place)
    pages.grant_grace()
    with pytest.raises(SpentError):
        for place in places[10:]:
            pages.word(place)
    assert memory.reads == 10
    assert pages.spent is not None
