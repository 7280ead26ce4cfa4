"""A crash without its secrets: the one place where they are taken out, for every report that is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from faultlens.records.crash import (
    CgroupState,
    Crash,
    Fault,
    FileState,
    Frame,
    Instruction,
    Kernel,
    Library,
    MachineState,
    Mapping,
    MemoryOperand,
    Outcome,
    Package,
    Program,
    PythonInfo,
    Thread,
)
from faultlens.records.diagnosis import Reproducer
from faultlens.text.redaction import redact_command, redact_environment
from faultlens.text.secrets import HIDDEN, Scanner, secret_arguments, secret_values

_SOURCES = {(Crash, "sources"), (Reproducer, "script")}

T = TypeVar("T", bound=msgspec.Struct)

MAX_DEPTH = 40  # of lists in lists; deeper ones are left out

# Their strings are names, paths and code: what the diagnosis needs to the letter.
_NAMES = (
    CgroupState, Fault, FileState, Frame, Instruction, Kernel, Library, MachineState, Mapping, MemoryOperand, Outcome,
    Package, Program, PythonInfo, Thread,
)  # fmt: skip


def scrubbed(crash: Crash, secrets: Iterable[str] = ()) -> Crash:
    """As it may be kept and shown; the crash itself where the user wanted everything. Doing it again changes nothing.

    `secrets` are values known from elsewhere, beside those in the environments of the processes."""
    if not crash.program.redacted:
        return crash
    scanner = Scanner({*secrets, *_known(crash)})
    return _Cleaner(scanner).record(_without_arguments(crash))


def without_secrets(record: T) -> T:
    """Any record whose texts come from elsewhere: less what looks like a secret."""
    return _Cleaner(Scanner()).record(record)


def _known(crash: Crash) -> Iterator[str]:
    """What the environments and the arguments of the processes say."""
    yield from secret_values(crash.program.environment)
    yield from secret_arguments(crash.program.command)
    for child in crash.children:
        yield from _known(child)


def _without_arguments(crash: Crash) -> Crash:
    program = replace(
        crash.program,
        command=redact_command(crash.program.command),
        environment=redact_environment(crash.program.environment),
    )
    return replace(crash, program=program, children=tuple(map(_without_arguments, crash.children)))


class _Cleaner:
    """Looks through every string of a record. What has not changed stays the same object."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._seen: dict[int, tuple[Any, Any]] = {}  # lists by their id: a hostile report may nest one in itself

    def record(self, record: T) -> T:
        clean = self._scanner.name if isinstance(record, _NAMES) else self._scanner.text
        changes = {}
        for name in record.__struct_fields__:
            value = getattr(record, name)
            is_source = (type(record), name) in _SOURCES
            new = self._value(value, self._scanner.source if is_source else clean)
            if new is not value:
                changes[name] = new
        return replace(record, **changes) if changes else record

    def _value(self, value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
        if isinstance(value, str):
            new: Any = clean(value)
        elif isinstance(value, bytes):
            new = self._scanner.data(value)
        elif isinstance(value, msgspec.Struct):
            new = self.record(value)
        elif isinstance(value, tuple | list | dict) and value:
            if id(value) not in self._seen:
                self._seen[id(value)] = value, self._items(value, clean, depth) if depth < MAX_DEPTH else HIDDEN
            return self._seen[id(value)][1]
        else:
            return value
        return value if new == value else new

    def _items(self, value: Any, clean: Callable[[str], str], depth: int) -> Any:
        if isinstance(value, dict):
            pairs = [(self._scanner.name(key), self._value(item, clean, depth + 1)) for key, item in value.items()]
            same = all(key == old and value[old] is item for (key, item), old in zip(pairs, value, strict=True))
            return value if same else dict(pairs)
        items = [self._value(item, clean, depth + 1) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
