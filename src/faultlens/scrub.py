"""A crash without its secrets: the one place where they are taken out, for every report that is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from faultlens.crash import (
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
from faultlens.redaction import redact_command, redact_environment
from faultlens.secret_words import Scanner, secret_values

T = TypeVar("T")

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
    scanner = Scanner({*secrets, *_in_environments(crash)})
    return _clean(_without_arguments(crash), scanner)


def _in_environments(crash: Crash) -> Iterator[str]:
    yield from secret_values(crash.program.environment)
    for child in crash.children:
        yield from _in_environments(child)


def _without_arguments(crash: Crash) -> Crash:
    program = replace(
        crash.program,
        command=redact_command(crash.program.command),
        environment=redact_environment(crash.program.environment),
    )
    return replace(crash, program=program, children=tuple(map(_without_arguments, crash.children)))


def _clean(value: T, scanner: Scanner) -> T:
    """The same with every string in it looked through; what has not changed stays the same object."""
    return _cleaned(value, scanner, scanner.text)  # type: ignore[no-any-return]


def _cleaned(value: Any, scanner: Scanner, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes):
        return scanner.data(value)
    if isinstance(value, tuple | list):
        items = [_cleaned(item, scanner, clean) for item in value]
        return value if all(map(_same, items, value)) else type(value)(items)
    if isinstance(value, dict):
        return {scanner.name(key): _cleaned(item, scanner, clean) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return _cleaned_record(value, scanner)
    return value


def _cleaned_record(record: msgspec.Struct, scanner: Scanner) -> msgspec.Struct:
    clean = scanner.name if isinstance(record, _NAMES) else scanner.text
    changes = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if value and isinstance(value, str | bytes | tuple | list | dict | msgspec.Struct):
            is_source = isinstance(record, Crash) and name == "sources"
            new = _cleaned(value, scanner, scanner.source if is_source else clean)
            if not _same(new, value):
                changes[name] = new
    return replace(record, **changes) if changes else record


def _same(new: Any, old: Any) -> bool:
    return new is old or (type(new) is type(old) and new == old)
