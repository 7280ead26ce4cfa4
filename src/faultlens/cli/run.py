"""`faultlens run`: the program as always, and a report when it dies."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from faultlens.cli import output, own_imports
from faultlens.cli.deaths import Deaths, say
from faultlens.cli.shortage import shortage
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.guard_alloc.hunting import HuntOptions
    from faultlens.supervise.supervisor import Ending, Options

STOP_BEFORE_OOM = "--stop-before-oom"
HUNT = "--hunt"
DEFAULTS = {STOP_BEFORE_OOM: "95%", HUNT: "fence"}  # of options that may stand alone
# Options whose value follows.
WITH_VALUE = {"--python", "--timeout", "--capture", "--json", "--html", "--markdown", "--sarif"}
OF_PYTHON = re.compile(r"-([BEIOPRSWXbcdimsux].*)?$")  # `-m pytest`, `-c CODE`, `-`, `-u train.py`

DESCRIPTION = """\
Runs a program exactly as it would run without faultlens: same output, terminal, signals, exit status. When it
dies, everything about its death is recorded, shown on stderr and kept for `faultlens show`.

  faultlens run train.py --epochs 3       as `python train.py --epochs 3` in your environment
  faultlens run -m pytest -x              what `python` takes: -m MODULE, -c CODE, - (standard input), its options
  faultlens run -- python -u train.py     any command, taken as it is

The Python is the one named with --python, else that of the active environment (VIRTUAL_ENV, CONDA_PREFIX), else that
of the environment faultlens is installed in, if it has TensorFlow or is a virtual environment, else the first on PATH;
-v says which.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "run",
        help="run a program and record its death",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment to run a script in")
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
        help="ask the program to save and end (SIGTERM) when so much of the limit is used (=90%%), or when it and its "
        "children hold so much themselves (=7GiB)",
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
    """What argparse does not understand: `--stop-before-oom` and `--hunt` may stand alone, where it would take the
    program's name for their value; and the program may begin with an option, which is Python's."""
    spelled = list(words)
    for place, word in enumerate(spelled[1:] if spelled[:1] == ["run"] else (), start=1):
        if word in DEFAULTS:
            spelled[place] = f"{word}={DEFAULTS[word]}"
        elif spelled[place - 1] in WITH_VALUE:
            continue
        elif OF_PYTHON.match(word):
            spelled.insert(place, "--")
            break
        elif word == "--" or not word.startswith("-"):
            break
    return spelled


def handle(arguments: argparse.Namespace) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        raise FaultlensError("There is no program to run.", "Try: faultlens run train.py")
    own_imports.check()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    deaths = Deaths(arguments)
    try:
        ending = _supervised(words, arguments, deaths)
    except (OSError, RuntimeError, MemoryError) as error:
        reason = shortage(error)
        if reason is None or _has_started():
            raise
        if not arguments.quiet:
            say(f"the program runs without faultlens. {reason}")
        _become(_command(words, arguments), mask)
    try:
        from faultlens.cli.telling import tell

        tell(ending.crash, arguments, deaths)
    except Exception as error:
        # Whatever goes wrong here must not change how the program's end is passed on.
        say(str(error))
    except KeyboardInterrupt:
        pass
    end_like(ending.status)
    return 0


def _supervised(words: list[str], arguments: argparse.Namespace, deaths: Deaths) -> Ending:
    from faultlens.supervise.supervisor import supervise

    command = _command(words, arguments)
    options = _options(arguments, command)
    return supervise(command, options, deaths.tell, _nothing if arguments.quiet else say)


def _command(words: list[str], arguments: argparse.Namespace) -> list[str]:
    from faultlens.target_env.command import resolve_command

    command = resolve_command(words, arguments.python)
    if command.python is not None:
        output.say_python(command.python, arguments)
    elif arguments.python is not None:
        raise FaultlensError(
            f"--python is for what Python runs, and {words[0]} is started as it is.",
            "Leave --python out, or name a script, `-m MODULE` or `-c CODE`.",
        )
    return command.words


def _has_started() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def _become(command: list[str], mask: Iterable[signal.Signals | int]) -> NoReturn:
    """The program takes our place: it needs no process and no descriptor more than without us."""
    sys.stdout.flush()
    sys.stderr.flush()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, at its own start
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.execvp(command[0], command)


def _options(arguments: argparse.Namespace, command: list[str]) -> Options:
    from faultlens.agent import launch
    from faultlens.supervise.oom_stop import read_stop_at
    from faultlens.supervise.supervisor import Options

    capture = {"ptrace": "tracer", "none": "status"}.get(arguments.capture, "agent")
    if capture == "agent" and (problem := launch.agent_problem(command[0])):
        if arguments.capture == "agent":
            raise FaultlensError(f"The agent cannot be used: {problem.reason}.", "Use --capture=ptrace.")
        if not arguments.quiet:
            way = "using ptrace" if problem.instead == "tracer" else "watching the exit status alone"
            say(f"{way}, because {problem.reason}")
        capture = problem.instead
    return Options(
        capture=capture,  # type: ignore[arg-type]
        timeout=arguments.timeout,
        follow_children=not arguments.no_children,
        redact=not arguments.unredacted,
        contents=not arguments.no_contents,
        stop_at=read_stop_at(arguments.stop_before_oom) if arguments.stop_before_oom is not None else None,
        hunt=_hunt_options(arguments),
    )


def _hunt_options(arguments: argparse.Namespace) -> HuntOptions | None:
    if arguments.hunt is None:
        return None
    from faultlens.guard_alloc import hunting

    options, problem = hunting.read_options(arguments.hunt), hunting.problem()
    if problem and not arguments.quiet:
        say(f"nothing is hunted, because {problem}")
    return None if problem else options


def _nothing(_: object) -> None:
    pass


def end_like(status: int) -> None:
    """End as the program ended: by the same signal, or with the same exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    from faultlens.system import own_process

    number = os.WTERMSIG(status)
    # The core file, if any, is the program's: ours must not replace it.
    own_process.no_core_file()
    own_process.not_dumpable()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)
