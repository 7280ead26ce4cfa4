"""Where the fields of TensorFlow's objects lie: a table by release, made by tools/tensorflow_layouts.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import PurePath

import msgspec

from faultlens.inspection.maps import libraries
from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping

TABLE = "layouts.json"
# The library that holds the classes of kernels; wheels of other makers put all into one.
_LIBRARY = re.compile(
    r"^(?:libtensorflow_framework\.so|libtensorflow_cc\.so|libtensorflow\.so|_pywrap_tensorflow_internal\.so)"
)
_PACKAGE = re.compile(r"(.*)/tensorflow/")
_DISTRIBUTIONS = frozenset(
    {"tensorflow", "tensorflow_cpu", "tensorflow_gpu", "tensorflow_intel", "tensorflow_rocm", "tf_nightly"}
)


class Layout(msgspec.Struct, frozen=True):
    """Offsets from the beginning of an object, sizes, and marks, all as the compiler and the headers have them."""

    # tensorflow::OpKernelContext, its Params, OpKernelConstruction, OpKernel, NodeProperties
    context_params: int
    params_op_kernel: int
    params_device: int
    params_inputs: int
    construction_props: int
    construction_device: int
    kernel_props: int
    kernel_name_view: int
    kernel_type_view: int
    props_op_def: int
    props_node_def: int
    props_input_types: int

    # TensorValue, Tensor, TensorBuffer, TensorShape
    value_tensor: int
    value_size: int
    tensor_shape: int
    tensor_buffer: int
    buffer_data: int
    shape_dims: int
    shape_dtype: int
    shape_ndims: int
    shape_tag: int
    shape_elements: int
    sizeof_shape: int
    shape_tag_16: int
    shape_tag_32: int
    shape_tag_out_of_line: int

    # tensorflow::tstring
    sizeof_tstring: int
    tstring_type_mask: int
    tstring_type_small: int
    tstring_type_large: int
    tstring_type_offset: int
    tstring_type_view: int
    tstring_small_size: int
    tstring_small_text: int
    tstring_large_size: int
    tstring_large_pointer: int
    tstring_offset_size: int
    tstring_offset_offset: int
    tstring_view_size: int
    tstring_view_pointer: int

    # std::string, absl::string_view, absl::Span, absl::InlinedVector
    string_pointer: int
    string_length: int
    view_pointer: int
    view_length: int
    span_pointer: int
    span_length: int
    inlined_size: int
    inlined_data: int

    # google::protobuf: Map, RepeatedField, RepeatedPtrField, ArenaStringPtr
    map_elements: int
    map_buckets: int
    map_table: int
    sizeof_map_count: int
    map_node_next: int
    map_node_key: int
    map_node_value: int
    repeated_size: int
    repeated_pointer: int
    repeated_tag_mask: int
    repeated_long_bit: int
    repeated_inline: int
    repeated_inline_mask: int
    pointers_size: int
    pointers_array: int
    pointers_many_bit: int
    pointers_first: int
    arena_string_mask: int

    # NodeDef, OpDef, AttrValue, NameAttrList, TensorShapeProto
    node_def_name: int
    node_def_op: int
    node_def_attr: int
    op_def_name: int
    attr_case: int
    attr_value: int
    list_s: int
    list_i: int
    list_f: int
    list_b: int
    list_type: int
    list_shape: int
    list_func: int
    func_name: int
    shape_proto_dim: int
    shape_proto_unknown_rank: int
    dim_size: int


class Release(msgspec.Struct, frozen=True):
    """One row of the table: builds that have the same layout."""

    versions: tuple[str, ...]
    build_ids: tuple[str, ...]
    offsets: Layout


class Table(msgspec.Struct, frozen=True):
    layouts: tuple[Release, ...]


def layouts_for(mappings: Sequence[Mapping], memory: Memory) -> tuple[Layout, ...]:
    """The layouts to try on this process, best first; none where it has no TensorFlow.

    A build that is not in the table is tried with all of them: what is found is believed only where everything fits.
    """
    paths = tensorflow_libraries(mappings)
    if not paths:
        return ()
    parts = [mapping for mapping in mappings if mapping.path in paths]
    build_ids = {library.build_id for library in libraries(parts, memory)}
    return choose(table(), build_ids, _version(paths))


def tensorflow_libraries(mappings: Sequence[Mapping]) -> tuple[str, ...]:
    paths = {mapping.path for mapping in mappings if mapping.path and "tensorflow" in mapping.path}
    return tuple(sorted(path for path in paths if _LIBRARY.match(PurePath(path).name)))


def choose(known: Table, build_ids: set[str | None], version: str | None) -> tuple[Layout, ...]:
    newest_first = known.layouts[::-1]
    by_build = [each for each in newest_first if build_ids.intersection(each.build_ids)]
    by_version = [each for each in newest_first if version in each.versions]
    series = _series(version) if version else None
    by_series = [each for each in newest_first if series and series in map(_series, each.versions)]
    chosen = by_build or by_version or by_series or newest_first
    return tuple(dict.fromkeys(each.offsets for each in chosen))


@cache
def table() -> Table:
    data = resources.files(__package__).joinpath(TABLE).read_bytes()
    return msgspec.json.decode(data, type=Table)


def _version(paths: Iterable[str]) -> str | None:
    """Of the distribution that a library was installed with: site-packages/tensorflow_cpu-2.21.0.dist-info."""
    folders = dict.fromkeys(match[1] for path in paths if (match := _PACKAGE.match(path)))
    for entry in (entry for folder in folders for entry in _distributions(folder)):
        name, _, version = entry.removesuffix(".dist-info").partition("-")
        if name.lower() in _DISTRIBUTIONS:
            return version.partition("+")[0]
    return None


def _distributions(folder: str) -> list[str]:
    try:
        return sorted(entry for entry in os.listdir(folder) if entry.endswith(".dist-info"))
    except OSError:
        return []


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])
