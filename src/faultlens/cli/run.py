"""`faultlens run`: the program as always, and a report when it dies."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from faultlens.cli import output
from faultlens.errors import FaultlensError
from faultlens.shortage import shortage

if TYPE_CHECKING:
    from faultlens.capture.fence.hunting import Wish
    from faultlens.capture.supervisor import Ending, Options
    from faultlens.crash import Crash
    from faultlens.reportfile import Report

PR_SET_DUMPABLE = 4
# Ends that people and schedulers bring about on purpose: one line is enough.
ASKED_FOR = {"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE"}
SPEAK_FOR_THEMSELVES = {"python-exception", "clean-exit", "killed-from-outside", "signal-raised-by-program"}
SURE = 0.7
MAX_CHILDREN_SHOWN = 3
STOP_BEFORE_OOM = "--stop-before-oom"
HUNT = "--hunt"
DEFAULTS = {STOP_BEFORE_OOM: "95%", HUNT: "fence"}  # of options that may stand alone
WITH_VALUE = {"--timeout", "--capture", "--json", "--html", "--markdown", "--sarif"}  # options whose value follows

DESCRIPTION = """\
Runs a program exactly as it would run without faultlens: same output, terminal, signals, exit status. When it
dies, everything about its death is recorded, shown on stderr and kept for `faultlens show`.

  faultlens run train.py --epochs 3       the Python of the active environment runs train.py
  faultlens run -- python -u train.py     any command, taken as it is
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "run",
        help="run a program and record its death",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--timeout", type=output.positive_seconds, metavar="SECONDS", help="record all stacks and end it after so long"
    )
    parser.add_argument(
        "--capture",
        choices=("auto", "agent", "ptrace", "none"),
        default="auto",
        help="how to see the death: the preloaded agent, ptrace, or the exit status only (default: what works)",
    )
    parser.add_argument(
        STOP_BEFORE_OOM,
        metavar="[=95%]",
        help="ask the program to save and end (SIGTERM) when so much of the memory it may have is used (=90%%, =7GiB)",
    )
    parser.add_argument(
        HUNT,
        metavar="[=fence]",
        help="catch heap damage in the act: some blocks are put between guards; =all: every block, "
        "slowly; =tensors: every tensor; =malloc: glibc's own checks; several with commas",
    )
    parser.add_argument("--no-children", action="store_true", help="do not watch processes that the program starts")
    parser.add_argument("--no-sources", action="store_true", help="leave every line of the program out of the report")
    parser.add_argument("--unredacted", action="store_true", help="keep what may be secret, and whole source files")
    parser.add_argument("--no-contents", action="store_true", help="leave the values of tensors out of the report")
    parser.add_argument("--no-save", action="store_true", help="do not keep the report")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing of our own")
    output.add_arguments(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM …", help="the program and its arguments")
    parser.set_defaults(handler=handle)


def with_default(words: Sequence[str]) -> list[str]:
    """`--stop-before-oom` and `--hunt` may stand alone: argparse would take the program's name for their value."""
    spelled = list(words)
    for place, word in enumerate(spelled[1:] if spelled[:1] == ["run"] else (), start=1):
        if word in DEFAULTS:
            spelled[place] = f"{word}={DEFAULTS[word]}"
        elif word == "--" or (not word.startswith("-") and spelled[place - 1] not in WITH_VALUE):
            break
    return spelled


def handle(arguments: argparse.Namespace) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        raise FaultlensError("There is no program to run.", "Try: faultlens run train.py")
    output.check_targets(arguments)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        ending = _supervised(words, arguments)
    except (OSError, RuntimeError, MemoryError) as error:
        reason = shortage(error)
        if reason is None or _has_started():
            raise
        if not arguments.quiet:
            _say(f"the program runs without faultlens. {reason}")
        _become(words, mask)
    try:
        _report(ending.crash, arguments)
    except Exception as error:
        # Whatever goes wrong here must not change how the program's end is passed on.
        _say(str(error))
    except KeyboardInterrupt:
        pass
    end_like(ending.status)
    return 0


def _supervised(words: list[str], arguments: argparse.Namespace) -> Ending:
    from faultlens.capture import launch
    from faultlens.capture.supervisor import supervise

    command = launch.resolve_command(words)
    options = _options(arguments, command)
    quiet = arguments.quiet
    return supervise(command, options, _nothing if quiet else _announce, _nothing if quiet else _say)


def _has_started() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def _become(words: list[str], mask: Iterable[signal.Signals | int]) -> NoReturn:
    """The program takes our place: it needs no process and no descriptor more than without us."""
    from faultlens.capture import launch

    command = launch.resolve_command(words)
    sys.stdout.flush()
    sys.stderr.flush()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, at its own start
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.execvp(command[0], command)


def _options(arguments: argparse.Namespace, command: list[str]) -> Options:
    from faultlens.capture import launch
    from faultlens.capture.brink import read_stop_at
    from faultlens.capture.supervisor import Options

    capture = {"ptrace": "tracer", "none": "status"}.get(arguments.capture, "agent")
    if capture == "agent" and (problem := launch.agent_problem(command[0])):
        if arguments.capture == "agent":
            raise FaultlensError(f"The agent cannot be used: {problem.reason}.", "Use --capture=ptrace.")
        if not arguments.quiet:
            way = "using ptrace" if problem.instead == "tracer" else "watching the exit status alone"
            _say(f"{way}, because {problem.reason}")
        capture = problem.instead
    return Options(
        capture=capture,  # type: ignore[arg-type]
        timeout=arguments.timeout,
        follow_children=not arguments.no_children,
        redact=not arguments.unredacted,
        contents=not arguments.no_contents,
        stop_at=read_stop_at(arguments.stop_before_oom) if arguments.stop_before_oom is not None else None,
        hunt=_wish(arguments),
    )


def _wish(arguments: argparse.Namespace) -> Wish | None:
    if arguments.hunt is None:
        return None
    from faultlens.capture.fence import hunting

    wish, problem = hunting.read_wish(arguments.hunt), hunting.problem()
    if problem and not arguments.quiet:
        _say(f"nothing is hunted, because {problem}")
    return None if problem else wish


def _nothing(_: object) -> None:
    pass


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody may read it any more: the program goes on
        print(f"faultlens: {text}", file=sys.stderr)


def _announce(crash: Crash) -> None:
    """A process below the program died; the program itself lives on, and so does its output."""
    signal_name = crash.outcome.signal or "a signal"
    _say(f"process {crash.pid} died by {signal_name}; the report follows at the end")


def _report(crash: Crash, arguments: argparse.Namespace) -> None:
    if arguments.no_sources:
        from faultlens.capture.sources import without_sources

        crash = without_sources(crash)
    report = _examined(crash)
    try:
        output.write_files(report, arguments)
    finally:  # a file that cannot be written does not cost the rest
        # A program that ended well needs no verdict, but its children that died do.
        survived = crash.outcome.kind == "ok" and crash.children
        for each in map(_examined, crash.children[:MAX_CHILDREN_SHOWN]) if survived else (report,):
            _tell(each, arguments)


def _examined(crash: Crash) -> Report:
    """The doctor is asked only where there is something to tell."""
    from faultlens.capture.dotenv import secrets_beside
    from faultlens.reporting import make_report, with_findings

    report = make_report(crash, secrets=secrets_beside(crash.program.directory))
    return with_findings(report) if worth_telling(report) else report


def _tell(report: Report, arguments: argparse.Namespace) -> None:
    if not (worth_telling(report) or arguments.verbose):
        return
    stored = None if arguments.no_save else output.save(report)
    if not arguments.quiet:
        sys.stdout.flush()
        output.render(report, sys.stderr, verbose=arguments.verbose, stored=stored)


def worth_telling(report: Report) -> bool:
    """Exit codes and Python exceptions speak for themselves, unless there is more behind them than they say; so do
    ends that somebody asked for."""
    crash = report.crash
    if crash.stop_request and crash.outcome.kind != "ok":
        return True
    if (
        (crash.hunt and crash.hunt.block)
        or crash.children
        or crash.fault
        or crash.outcome.kind == "hang"
        or _lost_a_save(crash)
    ):
        return True
    if crash.outcome.kind == "signal":
        return crash.outcome.signal not in ASKED_FOR
    best = report.diagnoses[0] if report.diagnoses else None
    return best is not None and best.cause not in SPEAK_FOR_THEMSELVES and best.confidence >= SURE


def _lost_a_save(crash: Crash) -> bool:
    """Whoever asked for the end did not ask for that."""
    return crash.saving is not None and any(save.current and save.whole is False for save in crash.saving.saves)


def end_like(status: int) -> None:
    """End as the program ended: by the same signal, or with the same exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    number = os.WTERMSIG(status)
    # The core file, if any, is the program's: ours must not replace it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)
