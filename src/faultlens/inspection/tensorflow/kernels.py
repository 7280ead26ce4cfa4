"""TensorFlow's ops in flight: found in the memory of a stopped process or core, at no cost while the program runs.

A thread that computes an op has a pointer to the op's OpKernelContext on its stack or in its registers. From there the
way leads to the kernel, its node and its inputs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from msgspec.structs import replace

from faultlens.inspection.memory import Memory
from faultlens.inspection.tensorflow.cpp import WORD, Objects
from faultlens.inspection.tensorflow.layout import Layout, layouts_for
from faultlens.inspection.tensorflow.live_stack import LiveStack, read_stack, words_beyond
from faultlens.inspection.tensorflow.liveness import is_computing, is_constructing, may_work, runs_code_of
from faultlens.inspection.tensorflow.pages import Pages, SpentError
from faultlens.inspection.tensorflow.ranking import rank
from faultlens.inspection.tensorflow.tensors import with_contents
from faultlens.inspection.tensorflow.works import Work, Works
from faultlens.records import crash
from faultlens.records.crash import CppException, Fault, Kernel, Thread

SECONDS = 0.3
MAX_KERNELS = 64
UNKNOWN_BUILD = "ops in flight: this build of TensorFlow is not known; attributes that are lists or shapes are left out"
CHECKED = 1024  # so many words are tried between two looks at the clock
CLOSURE = 128  # bytes of a function object that are looked at
MAX_CLOSURES = 4096
_TRANSLATES = "translate_exception"  # of pybind11: the exception of a C++ function becomes one of Python's

_SIMPLE = frozenset({"int", "float", "bool", "type", "string"})

Registers = Mapping[int, Mapping[str, int]]  # by thread id


class Scan(NamedTuple):
    kernels: tuple[Kernel, ...] = ()  # the one at fault first
    gaps: tuple[str, ...] = ()


def kernels_in_flight(
    memory: Memory,
    mappings: Sequence[crash.Mapping],
    threads: Sequence[Thread],
    registers: Registers,
    fault: Fault | None = None,
    exceptions: Sequence[CppException] = (),
    contents: bool = True,
    seconds: float = SECONDS,
    layouts: Sequence[Layout] | None = None,
) -> Scan:
    """`threads` with their frames, the crashed one first. After `seconds` what was found until then is told.

    `contents`: with the values of the inputs, up to a limit. `layouts`: those of the release that is mapped, if None.
    """
    layouts = layouts_for(mappings, memory) if layouts is None else layouts
    if not layouts:
        return Scan()
    pages = Pages(memory, mappings, seconds)
    searches = [_Search(Objects(pages, layout)) for layout in layouts]
    for search in searches:
        search.run(threads, registers, exceptions)
    first, *others = [search for search in searches if search.found] or searches[:1]
    for other in others:
        first.keep_agreed(other)
    kernels = rank(list(first.found.values())[:MAX_KERNELS], threads, fault, first.helped())
    gaps = [f"ops in flight: the search was ended, {pages.spent}"] if pages.spent else []
    if kernels and len(layouts) > 1:
        kernels = tuple(_with_simple_attributes(kernel) for kernel in kernels)
        gaps.append(UNKNOWN_BUILD)
    if contents:
        kernels = with_contents(first.objects, kernels)
    return Scan(kernels, tuple(gaps))


def kernels_or_gap(*arguments: Any, **keywords: Any) -> Scan:
    """The same, for a look that must go on whatever the memory is like."""
    try:
        return kernels_in_flight(*arguments, **keywords)
    except Exception as error:
        return Scan(gaps=(f"ops in flight: the search failed: {type(error).__name__}: {error}",))


class _Caller(NamedTuple):
    """A call that computes a kernel."""

    stack: LiveStack
    place: int  # of the context

    def has_inside(self, words: Iterable[int]) -> bool:
        """One of the words points to what calls have that this call made."""
        return any(self.stack.pointer <= word < self.place for word in words)


class _Search:
    """One walk over all threads."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.found: dict[int, Kernel] = {}  # by the place of the context; the innermost of a thread first
        self._helped: list[int] = []  # the places of those that the crashed thread did a share of the work for
        self._pages = objects.pages
        self._works = Works(objects)

    def run(self, threads: Sequence[Thread], registers: Registers, exceptions: Sequence[CppException]) -> None:
        helper: LiveStack | None = None
        callers: list[_Caller] = []
        try:
            for thread in threads:
                if self._pages.spent or not (thread.crashed or may_work(thread.frames)):
                    continue
                known = {"rsp": int(thread.stack_pointer or 0), **registers.get(thread.id, {})}
                stack = read_stack(self._pages, thread.id, known, thread.frames)
                if stack is None:
                    continue
                works = self._on(stack, thread, exceptions)
                if thread.crashed and not works:
                    helper = stack
                for work in works:
                    if work.place not in self.found:
                        self.found[work.place] = self._works.describe(work, thread.id)
                        callers.append(_Caller(stack, work.place))
            if helper is not None:
                self._find_helped(helper, callers)
        except SpentError:
            pass

    def helped(self) -> list[Kernel]:
        return [self.found[place] for place in self._helped]

    def keep_agreed(self, other: _Search) -> None:
        """Of a build that is not known, only that stays which another layout that fits it says as well."""
        for place in self.found.keys() & other.found.keys():
            self.found[place] = _agreed(self.found[place], other.found[place])

    def _find_helped(self, helper: LiveStack, callers: Sequence[_Caller]) -> None:
        """Work is shared with other threads by pointers to what the waiting call has on its stack."""
        words = helper.words_of_work()
        for known in (words, self._in_closures(helper, words)):
            self._helped = [caller.place for caller in callers if caller.has_inside(known)]
            if self._helped:
                return

    # ---------------------------------------------------------------------------------------- one thread

    def _on(self, stack: LiveStack, thread: Thread, exceptions: Sequence[CppException]) -> list[Work]:
        """What the thread works on, innermost first."""
        works = self._alive(stack, stack.words) if may_work(thread.frames) else []
        if works or not thread.crashed:
            return works
        if any(frame.kind == "python" for frame in thread.frames):
            return self._thrown(stack, exceptions)
        return self._alive(stack, self._in_closures(stack, stack.words)) if may_work(thread.frames) else []

    def _in_closures(self, stack: LiveStack, words: Iterable[int]) -> set[int]:
        """Words one step further on: a function that another thread is to run carries with it what it needs."""
        objects = (word for word in words if word % WORD == 0 and not stack.holds(word))
        nearest = islice((word for word in objects if self._pages.is_writable(word)), MAX_CLOSURES)
        carried = (self._pages.read(word, CLOSURE) for word in nearest)
        return {word for data in carried for (word,) in struct.iter_unpack("<Q", data)}

    def _thrown(self, stack: LiveStack, exceptions: Sequence[CppException]) -> list[Work]:
        """The ops that an exception escaped from: their calls have ended, but nothing was written over them yet."""
        last = next(iter(exceptions), None)
        if last is None or last.thread != stack.thread:
            return []
        if not any(_TRANSLATES in call.frame.function for call in stack.calls):
            return []
        beyond = words_beyond(self._pages, stack.pointer)
        works = {work.place: work for word in beyond if (work := self._works.at(word))}.values()
        throwing = [work for work in works if runs_code_of(self._works.classes(work), last.frames)]
        is_clear = len({self._works.code_of(work) for work in throwing}) == len(throwing)
        return sorted(throwing) if is_clear else []

    def _alive(self, stack: LiveStack, words: Iterable[int]) -> list[Work]:
        found: dict[int, Work] = {}
        try:
            for number, word in enumerate(words):
                if number % CHECKED == 0:
                    self._pages.check_time()
                if (work := self._works.at(word)) and self._is_alive(work, stack):
                    found[work.place] = work
        except SpentError:
            self._pages.grant_grace()
        # One call computes one kernel: others are leftovers in its part of the stack.
        one: dict[tuple[str, int], Work] = {}
        for work in sorted(found.values(), key=lambda work: (self._works.says_context(work), stack.words[work.place])):
            one[self._call_of(work, stack)] = work
        return sorted(one.values(), key=lambda work: _depth(work, stack))

    def _is_alive(self, work: Work, stack: LiveStack) -> bool:
        if not work.is_compute:
            return is_constructing(stack, work.place)
        library = self._pages.mapping(self._works.code_of(work))
        return is_computing(stack, work.place, self._works.classes(work), library.path if library else None)

    def _call_of(self, work: Work, stack: LiveStack) -> tuple[str, int]:
        if stack.holds(work.place):
            return "call", stack.call_of(work.place)
        return "class", self._works.code_of(work)


def _with_simple_attributes(kernel: Kernel) -> Kernel:
    """Without those in which releases differ most, and where a wrong layout cannot be told from a right one."""
    simple = {name: each for name, each in kernel.attributes.items() if each.kind in _SIMPLE}
    return replace(kernel, attributes=simple)


def _agreed(one: Kernel, two: Kernel) -> Kernel:
    attributes = {name: each for name, each in one.attributes.items() if two.attributes.get(name) == each}
    inputs = tuple(first if first == second else None for first, second in zip_longest(one.inputs, two.inputs))
    return replace(one, attributes=attributes, inputs=inputs)


def _depth(work: Work, stack: LiveStack) -> int:
    return work.place if stack.holds(work.place) else stack.place_of(work.place)
