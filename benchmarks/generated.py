"""Generated programs, alone and under `faultlens run`: they must end the same way and say the same.

    python benchmarks/generated.py --seed 17 --count 2000    # 2,000 programs; those that differ are listed
    python benchmarks/generated.py --seed 17 --only 42 --keep DIR    # one of them: its source and both endings
    python benchmarks/generated.py --seed 17 --count 100 --keep DIR  # what differs, each made as small as possible

The programs are made of benchmarks/fragments, chosen by the seed. Those that do not always end the same way alone are
dropped, and counted."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import grammar
from endings import HUNG, Ending, differences, ending
from grammar import FRAGMENTS, Program

FLAGS = ["-O1", "-g", "-w", "-mno-red-zone", "-fstack-protector-strong", "-pthread"]
TIMES_ALONE, TIMES_TO_BE_SURE = 3, 12
SECONDS_ALONE, SECONDS_UNDER = 10.0, 40.0
MINUTES_SMALLER = 2.0


@dataclass(frozen=True)
class Difference:
    number: int
    program: Program
    what: list[str]
    plain: Ending
    under: Ending

    def __str__(self) -> str:
        calls = " ".join(call.name for call in self.program)
        return f"{', '.join(self.what)} differ, status {self.plain.status} and {self.under.status}: {calls}"


class Laboratory:
    """Builds programs and runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects: list[Path] = []
        self._built = 0

    def build(self, programs: Sequence[Program]) -> Path:
        """A binary that runs the program of the number it is given."""
        self._built += 1
        source, binary = self.folder / f"programs-{self._built}.c", self.folder / f"programs-{self._built}"
        source.write_text(grammar.source(programs))
        command: list[str | Path] = [
            "gcc",
            "-O0",
            "-w",
            "-I",
            FRAGMENTS,
            *self._library(),
            source,
            "-o",
            binary,
            "-pthread",
        ]
        subprocess.run(command, check=True)
        binary.chmod(0o755)
        return binary

    def _library(self) -> list[Path]:
        if not self._objects:
            for path in sorted(FRAGMENTS.glob("*.c")):
                self._objects.append(self.folder / f"{path.stem}.o")
                subprocess.run(["gcc", *FLAGS, "-c", path, "-o", self._objects[-1]], check=True)
        return self._objects

    def alone(self, binary: Path, number: int, times: int) -> Ending | None:
        """How it ends, or None if that is not always the same."""
        endings = {self._run(binary, number, False, SECONDS_ALONE) for _ in range(times)}
        return endings.pop() if len(endings) == 1 else None

    def under(self, binary: Path, number: int) -> Ending:
        return self._run(binary, number, True, SECONDS_UNDER)

    def _run(self, binary: Path, number: int, under: bool, seconds: float) -> Ending:
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            return ending([binary, str(number)], Path(name), under, seconds)


def compare(laboratory: Laboratory, binary: Path, number: int, program: Program) -> Difference | str | None:
    """The difference, None, or why it cannot be told."""
    plain = laboratory.alone(binary, number, TIMES_ALONE)
    if plain is None:
        return "differs alone"
    if plain.status == HUNG:
        return "hangs alone"
    under = laboratory.under(binary, number)
    if not (what := differences(plain, under)):
        return None
    if laboratory.alone(binary, number, TIMES_TO_BE_SURE) != plain:
        return "differs alone"
    return Difference(number, program, what, plain, under)


def smallest(laboratory: Laboratory, difference: Difference) -> Difference:
    """Drops one call after another while a difference of the same kind remains."""
    best, deadline = difference, time.monotonic() + 60 * MINUTES_SMALLER
    improved = True
    while improved and time.monotonic() < deadline:
        improved = False
        for program in grammar.smaller(best.program):
            found = compare(laboratory, laboratory.build([program]), 0, program)
            if isinstance(found, Difference) and set(found.what) & set(best.what):
                best = replace(found, number=difference.number)
                improved = True
                break
            if time.monotonic() > deadline:
                break
    return best


Kept = Callable[[Laboratory, Difference], None]  # what is done with one that differs


@dataclass
class Round:
    """What a round has found."""

    compared: int = 0
    differing: list[Difference] = field(default_factory=list)
    dropped: dict[str, list[int]] = field(default_factory=dict)  # by the reason

    def __str__(self) -> str:
        dropped = [f"{len(those)} dropped, {why}: {_few(those)}" for why, those in self.dropped.items()]
        return "\n".join([f"{self.compared} programs compared", *dropped, f"{len(self.differing)} differ"])


def run_round(choose: Callable[[int], Program], numbers: Sequence[int], jobs: int, kept: Kept | None = None) -> Round:
    found = Round()
    with tempfile.TemporaryDirectory(prefix="generated-") as name, ThreadPoolExecutor(jobs) as pool:
        Path(name).chmod(0o755)  # for programs that become another user
        laboratory = Laboratory(Path(name))
        programs = [choose(number) for number in numbers]
        binary = laboratory.build(programs)
        results = pool.map(lambda place: compare(laboratory, binary, place, programs[place]), range(len(programs)))
        for number, result in zip(numbers, results, strict=True):
            if isinstance(result, str):
                found.dropped.setdefault(result, []).append(number)
                continue
            found.compared += 1
            if result:
                found.differing.append(replace(result, number=number))
                print(f"{number}: {result}", flush=True)
                if kept:
                    kept(laboratory, found.differing[-1])
    return found


def keep(folder: Path, whole: bool, laboratory: Laboratory, difference: Difference) -> None:
    """Source and both endings, of a program that is as small as can be."""
    if not whole:
        difference = smallest(laboratory, difference)
    folder = folder / str(difference.number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.c").write_text(readable(difference.program))
    (folder / "plain").write_text(str(difference.plain))
    (folder / "under").write_text(str(difference.under))


def readable(program: Program) -> str:
    """The source without the declarations."""
    return grammar.source([program]).partition("\n\n")[2]


def _few(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers[:40])) + (" …" if len(numbers) > 40 else "")


def main() -> int:
    arguments = _arguments()
    choose = partial(grammar.single if arguments.single else grammar.program, arguments.seed)
    numbers = [arguments.only] if arguments.only is not None else list(range(arguments.count))
    if arguments.only is not None:
        print(readable(choose(arguments.only)))
    began = time.monotonic()
    kept = partial(keep, arguments.keep, arguments.whole) if arguments.keep else None
    found = run_round(choose, numbers, arguments.jobs, kept)
    print(found)
    print(f"seed {arguments.seed}, {time.monotonic() - began:.0f} s")
    return bool(found.differing)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one program of the round")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="for those that differ: source and both endings")
    parser.add_argument("--single", action="store_true", help="programs of one fragment, each in its turn")
    parser.add_argument("--whole", action="store_true", help="do not make them smaller")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
