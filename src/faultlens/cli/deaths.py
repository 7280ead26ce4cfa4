"""Processes that die below a program which lives on: each crash is kept and told at once, and told once.

A server that loses its workers may run for weeks, and faultlens may be killed before it ends. The report is made in a
process of its own: the program goes on, and signals and further crashes do not wait for it."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from faultlens.text.safe import one_line

if TYPE_CHECKING:
    from faultlens.records.crash import Crash
    from faultlens.records.report_file import Report

NICENESS = 10
TOLD = b"\0"  # between the path of a report and the word that it was told
TELL_AFTER_S = 1.0  # often the program ends because of it, and all is told
REPEATS_TOLD = {10**power for power in range(1, 9)}


class _Writer(NamedTuple):
    pid: int
    answer: int  # a pipe, in which it names the report that it kept
    program_lives: int  # another, which is closed when all is about to be told anyway


class Deaths:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._writers: dict[int, _Writer] = {}  # by the process that died
        self._kept: dict[int, Path] = {}
        self._told: set[int] = set()

    def tell(self, crash: Crash) -> None:
        """Called once for every death, with the number of those that were the same so far."""
        if crash.times > 1:
            if crash.times in REPEATS_TOLD and not self._arguments.quiet:
                say(f"{crash.times} processes died by {crash.outcome.signal} in the same place so far")
            return
        try:
            self._writers[crash.pid or 0] = self._start_writer(crash)
        except OSError as error:  # it is told and kept at the end
            if not self._arguments.quiet:
                say(f"process {crash.pid} died by {crash.outcome.signal}; more at the end ({error.strerror})")

    def _start_writer(self, crash: Crash) -> _Writer:
        with contextlib.ExitStack() as pipes:
            ends = [end for _ in range(2) for end in os.pipe()]
            for end in ends:
                pipes.callback(os.close, end)
            answer, question, program_ends, program_lives = ends
            pid = os.fork()
            if pid == 0:
                os.close(program_lives)
                _write(crash, self._arguments, question, program_ends)
            pipes.pop_all()
        os.close(question)
        os.close(program_ends)
        return _Writer(pid, answer, program_lives)

    def kept(self, pid: int | None) -> Path | None:
        """The report of this process; waits until it is written."""
        if writer := self._writers.pop(pid or 0, None):
            os.close(writer.program_lives)
            with open(writer.answer, "rb") as answer:
                path, _, told = answer.read().partition(TOLD)
            if path:
                self._kept[pid or 0] = Path(os.fsdecode(path))
            if told:
                self._told.add(pid or 0)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(writer.pid, 0)
        return self._kept.get(pid or 0)

    def was_told(self, pid: int | None) -> bool:
        self.kept(pid)
        return (pid or 0) in self._told

    def settle(self) -> None:
        """Nobody is left writing."""
        for pid in list(self._writers):
            self.kept(pid)


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody may read it any more: the program goes on
        print(f"faultlens: {text}", file=sys.stderr, flush=True)


def _write(crash: Crash, arguments: argparse.Namespace, answer: int, program_ends: int) -> None:
    """In the forked child. Never returns: nothing of the parent may run twice."""
    try:
        from faultlens.system import own_process

        os.nice(NICENESS)
        own_process.killed_first()
        report, path = _kept_report(crash, arguments)
        if path is not None:
            os.write(answer, os.fsencode(path))
        ended, _, _ = select.select([program_ends], [], [], TELL_AFTER_S)
        if not ended and not arguments.quiet:
            say(in_one_line(report, path))
            os.write(answer, TOLD + b"1")
    except Exception as error:
        say(f"process {crash.pid} died by {crash.outcome.signal}; more at the end ({one_line(str(error), 200)})")
    finally:
        os._exit(0)


def _kept_report(crash: Crash, arguments: argparse.Namespace) -> tuple[Report, Path | None]:
    from faultlens.cli import output
    from faultlens.report.make import make_report
    from faultlens.supervise.dotenv import secrets_beside

    if arguments.no_sources:
        from faultlens.supervise.sources import without_sources

        crash = without_sources(crash)
    report = make_report(crash, secrets=secrets_beside(crash.program.directory))
    return report, None if arguments.no_save else output.save(report)


def in_one_line(report: Report, stored: Path | None, again: str = "") -> str:
    """`again`: how often it happened, if more than once."""
    from faultlens.report.headline import headline, line_of
    from faultlens.report.verdict import is_unknown, pointed_at, subject, sure, verdict
    from faultlens.store.folder import identity

    crash, found, frame = subject(report), verdict(report), pointed_at(report)
    if found is None or is_unknown(found):
        told = f"{headline(report.crash)}{again}"
    else:
        at = f" at {line_of(frame, crash)}" if frame else ""
        signal = crash.outcome.signal or (crash.fault.signal if crash.fault else "a signal")
        died = f"process {crash.pid} died by {signal}{at}{again}"
        told = f"{died}: {one_line(found.title, 300)} ({found.code}, {sure(found)})"
    return f"{told}. Read on: faultlens show {identity(stored)}" if stored else told
