"""Programs composed of the fragments in benchmarks/fragments: chosen by a seed, written as C."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

FRAGMENTS = Path(__file__).parent / "fragments"
FAULT_SIGNALS = ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS"]
OTHER_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGPIPE"]
OTHER_SIGNALS += ["SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR", "SIGURG", "SIGWINCH", "SIGRTMIN + 5"]
OTHER_SIGNALS += ["SIGRTMIN", "SIGRTMAX"]
ACTION_FLAGS = ["SA_SIGINFO", "SA_ONSTACK", "SA_NODEFER", "SA_RESETHAND", "SA_RESTART", "SA_NOCLDSTOP"]
STACK_SIZES = ["SIGSTKSZ", "16384", "20000", "65536", "262144"]
COUNTS = ["1", "2", "3", "7", "40", "130", "300"]
STATUSES = ["0", "1", "3", "77", "127", "139", "255"]
LONGEST, DEEPEST = 6, 3  # fragments in a row, bodies in bodies
RARELY = 0.02


@dataclass(frozen=True)
class Fragment:
    name: str
    parameters: tuple[str, ...]  # their types
    kind: str  # FRAGMENT, ENDING, RARE


@dataclass(frozen=True)
class Call:
    """A fragment with what was chosen for its parameters; a tuple of calls is a body."""

    name: str
    arguments: tuple[str | tuple[Call, ...], ...]


Program = tuple[Call, ...]


@cache
def fragments() -> tuple[Fragment, ...]:
    """Those that the sources declare, in a stable order."""
    pattern = re.compile(r"^(FRAGMENT|ENDING|RARE) (\w+)\(([^)]*)\)", re.M)
    return tuple(
        Fragment(name, tuple(_type(each) for each in parameters.split(",") if each != "void"), kind)
        for path in sorted(FRAGMENTS.glob("*.c"))
        for kind, name, parameters in pattern.findall(path.read_text())
    )


def _type(parameter: str) -> str:
    return parameter.strip().rpartition(" ")[0]


@cache
def _enums() -> dict[str, list[str]]:
    text = (FRAGMENTS / "fragments.h").read_text()
    return {name: re.findall(r"\w+", members) for name, members in re.findall(r"^(enum \w+) \{([^}]*)\}", text, re.M)}


def program(seed: int, number: int) -> Program:
    """The program of that number; the same in every round with that seed."""
    return _block(random.Random(f"{seed}/{number}"), 0)


def single(seed: int, number: int) -> Program:
    """One fragment alone, each in its turn: differences by mechanism."""
    all_of_them = fragments()
    chance = random.Random(f"{seed}/single/{number}")
    fragment = all_of_them[number % len(all_of_them)]
    return (Call(fragment.name, tuple(_argument(chance, each, DEEPEST - 1) for each in fragment.parameters)),)


def _block(chance: random.Random, depth: int) -> Program:
    length = chance.randint(1, LONGEST - 2 * depth) if depth < DEEPEST else 1
    calls: list[Call] = []
    while len(calls) < length:
        fragment = chance.choice(fragments())
        if fragment.kind == "RARE" and chance.random() > RARELY:
            continue
        if "body" in fragment.parameters and depth == DEEPEST:
            continue
        calls.append(Call(fragment.name, tuple(_argument(chance, each, depth) for each in fragment.parameters)))
        if fragment.kind != "FRAGMENT":
            break
    return tuple(calls)


def _argument(chance: random.Random, kind: str, depth: int) -> str | Program:
    choices: dict[str, Callable[[], str | Program]] = {
        "body": lambda: _block(chance, depth + 1),
        "fault_signal": lambda: chance.choice(FAULT_SIGNALS),
        "any_signal": lambda: chance.choice(FAULT_SIGNALS if chance.random() < 0.6 else OTHER_SIGNALS),
        "action_flags": lambda: " | ".join(chance.sample(ACTION_FLAGS, chance.randint(0, 3))) or "0",
        "stack_size": lambda: chance.choice(STACK_SIZES),
        "count": lambda: chance.choice(COUNTS),
        "status": lambda: chance.choice(STATUSES),
    }
    return choices[kind]() if kind in choices else chance.choice(_enums()[kind])


# ------------------------------------------------------------------------------------------------- as C


def source(programs: Sequence[Program]) -> str:
    """One C file with all of them, for the main of fragments/stages.c."""
    lines = ['#include "fragments.h"', *_prototypes(), ""]
    for number, each in enumerate(programs):
        lines += _function(f"program_{number}", each)
    names = ", ".join(f"program_{number}" for number in range(len(programs)))
    lines += [f"const body programs[] = {{{names}}};", f"const int programs_count = {len(programs)};", ""]
    return "\n".join(lines)


def _prototypes() -> Iterator[str]:
    for each in fragments():
        yield f"void {each.name}({', '.join(each.parameters) or 'void'});"


def _function(name: str, calls: Program) -> list[str]:
    inner: list[str] = []
    lines = []
    for place, call in enumerate(calls):
        words = []
        for argument in call.arguments:
            if isinstance(argument, str):
                words.append(argument)
            else:
                words.append(f"{name}_{place}")
                inner += _function(words[-1], argument)
        lines.append(f"    {call.name}({', '.join(words)});")
    return [*inner, f"static void {name}(void) {{", *lines, "}"]


def smaller(program: Program) -> Iterator[Program]:
    """The same without one of its calls, with a body in place of its call, or with a smaller body."""
    for place, call in enumerate(program):
        before, after = program[:place], program[place + 1 :]
        if before or after:
            yield before + after
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, str):
                continue
            yield before + argument + after
            for less in smaller(argument):
                arguments = call.arguments[:position] + (less,) + call.arguments[position + 1 :]
                yield before + (replace(call, arguments=arguments),) + after


def size(program: Program) -> int:
    return sum(1 + sum(size(each) for each in call.arguments if not isinstance(each, str)) for call in program)
