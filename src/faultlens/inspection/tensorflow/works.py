"""From a word of memory to the kernel it leads to: a context in which a kernel is computed, or one being made.

Memory may be damaged and words may be old: what does not fit together in every point is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.inspection.tensorflow.attributes import read_attributes
from faultlens.inspection.tensorflow.cpp import WORD, Objects, class_name
from faultlens.inspection.tensorflow.tensors import read_tensor
from faultlens.records.crash import Kernel, Tensor

MAX_INPUTS = 1024
MAX_NAME = 2048

_OP = re.compile(rb"[A-Za-z_][\w.<>:~-]{0,254}")
_NODE = re.compile(rb"[\w.][\w./>\\<:~^-]*")
_DEVICE_TYPE = re.compile(rb"[A-Z][A-Z_]{1,30}")

_CONTEXT = b"N10tensorflow15OpKernelContextE"
_KERNEL = b"N10tensorflow8OpKernelE"
_DEVICE = b"N10tensorflow10DeviceBaseE"
# While XLA compiles, a tensor's buffer holds an expression and not its values.
_COMPILER = b"N10tensorflow20XlaCompilationDeviceE"


class Node(NamedTuple):
    op: str
    name: str
    props: int  # NodeProperties
    node_def: int


class Work(NamedTuple):
    """A kernel that is computed by some call, or being made."""

    place: int  # of the OpKernelContext, or of the OpKernelConstruction
    node: Node
    device: int
    kernel: int = 0  # 0: not there yet
    params: int = 0

    @property
    def is_compute(self) -> bool:
        return self.kernel != 0


class Works:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pages = objects.pages
        self._layout = objects.layout
        self._nodes: dict[int, Node | None] = {}
        self._works: dict[int, Work | None] = {}

    def at(self, word: int) -> Work | None:
        if word not in self._works:
            is_place = word % WORD == 0 and self._pages.is_writable(word)
            self._works[word] = (self._context(word) or self._construction(word)) if is_place else None
        return self._works[word]

    def classes(self, work: Work) -> tuple[bytes, ...]:
        """Of the kernel, itself first; empty where it does not say."""
        return (self._objects.classes(work.kernel) or ()) if work.is_compute else ()

    def code_of(self, work: Work) -> int:
        """The table of the kernel's functions, the same for all kernels of a class."""
        return self._pages.word(work.kernel)

    def says_context(self, work: Work) -> bool:
        """In releases where contexts have virtual functions, a context says what it is."""
        return _CONTEXT in (self._objects.classes(work.place) or ())

    def describe(self, work: Work, thread: int) -> Kernel:
        classes = self.classes(work)
        return Kernel(
            op=work.node.op,
            node=work.node.name,
            thread=thread,
            stage="compute" if work.is_compute else "construct",
            inputs=tuple(self._inputs(work)) if work.is_compute else (),
            attributes=read_attributes(self._objects, work.node.node_def),
            kernel_class=class_name(classes[0]) if classes else None,
        )

    # ------------------------------------------------------------------------- context and construction

    def _context(self, address: int) -> Work | None:
        params = self._pointer(address + self._layout.context_params)
        kernel = self._pointer(params + self._layout.params_op_kernel) if params else 0
        device = self._pointer(params + self._layout.params_device) if kernel else 0
        if not device or not self._is_a(device, _DEVICE) or not self._is_a(kernel, _KERNEL):
            return None
        node = self._node(self._pointer(kernel + self._layout.kernel_props))
        if node is None or not self._is_named(kernel, node):
            return None
        _, values = self._objects.span(params + self._layout.params_inputs)
        _, types = self._input_types(node)
        return Work(address, node, device, kernel, params) if values == types else None

    def _construction(self, address: int) -> Work | None:
        device = self._pointer(address + self._layout.construction_device)
        if not device or not self._is_a(device, _DEVICE):
            return None
        # It begins with the type of the device.
        if not _DEVICE_TYPE.fullmatch(self._objects.string(address, 32) or b""):
            return None
        node = self._node(self._pointer(address + self._layout.construction_props))
        return Work(address, node, device) if node else None

    def _pointer(self, address: int) -> int:
        """To an object; 0 where none can be."""
        word = self._pages.word(address)
        return word if word % WORD == 0 and self._pages.is_writable(word) else 0

    def _is_a(self, address: int, name: bytes) -> bool:
        classes = self._objects.classes(address)
        return classes is not None and (not classes or name in classes)

    # ------------------------------------------------------------------------------------------- the node

    def _node(self, props: int) -> Node | None:
        if props not in self._nodes:
            self._nodes[props] = self._read_node(props) if props else None
        return self._nodes[props]

    def _read_node(self, props: int) -> Node | None:
        objects, layout = self._objects, self._layout
        node_def = props + layout.props_node_def
        op = objects.string(objects.arena_string(node_def + layout.node_def_op), MAX_NAME)
        name = objects.string(objects.arena_string(node_def + layout.node_def_name), MAX_NAME)
        if not op or not name or not _OP.fullmatch(op) or not _NODE.fullmatch(name):
            return None
        definition = self._pages.word(props + layout.props_op_def)
        if objects.string(objects.arena_string(definition + layout.op_def_name), MAX_NAME) != op:
            return None
        return Node(op.decode("ascii"), name.decode("ascii"), props, node_def)

    def _is_named(self, kernel: int, node: Node) -> bool:
        """The kernel's views of its name and type are of the very strings in its node."""
        objects, layout = self._objects, self._layout
        name = objects.string_data(objects.arena_string(node.node_def + layout.node_def_name))
        op = objects.string_data(objects.arena_string(node.node_def + layout.node_def_op))
        views = objects.view(kernel + layout.kernel_name_view), objects.view(kernel + layout.kernel_type_view)
        return views == ((name, len(node.name)), (op, len(node.op)))

    # ----------------------------------------------------------------------------------------- the inputs

    def _inputs(self, work: Work) -> Iterator[Tensor | None]:
        layout = self._layout
        values, count = self._objects.span(work.params + layout.params_inputs)
        types, _ = self._input_types(work.node)
        is_compiling = _COMPILER in (self._objects.classes(work.device) or ())
        for index in range(min(count, MAX_INPUTS)):
            address = self._pages.word(values + index * layout.value_size + layout.value_tensor)
            declared = self._pages.number(types + index * 4, 4) or 0
            tensor = read_tensor(self._objects, address, declared) if address else None
            yield Tensor(dtype=tensor.dtype, shape=tensor.shape) if tensor and is_compiling else tensor

    def _input_types(self, node: Node) -> tuple[int, int]:
        return self._objects.inlined_vector(node.props + self._layout.props_input_types)
