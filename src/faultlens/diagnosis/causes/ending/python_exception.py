from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.ops import named_in
from faultlens.diagnosis.evidence.shortages import is_messenger
from faultlens.inspection.frames import is_own
from faultlens.text.safe import last_lines, one_line


class PythonExceptionEnded(Cause):
    """
    ## What it is
    The program ended with an uncaught Python exception. No signal was involved and nothing crashed in native code,
    even if the exception was raised by TensorFlow's C++ code and its message speaks of kernels and nodes.

    ## How it looks
    A traceback on stderr and exit code 1. Where the exception only passes on that memory, threads, files or space
    could not be had, or that data are damaged, the cause is that, and this one comes second.

    ## How to prove it
    The wait status holds an exit code, no signal. The last line of the traceback names the exception; the innermost
    line of your own code in it is the place to look at.

    ## How to fix it
    Read the last line of the traceback: it says what was expected and what it got. In a `tf.function` or a
    `tf.data` pipeline the line that built the op may be further up; `tf.config.run_functions_eagerly(True)` or
    `tf.data.experimental.enable_debug_mode()` makes the exception appear at that line.
    """

    slug = "python-exception"
    code = "FL101"
    headline = "An uncaught Python exception ended the program"

    def examine(self, case: Case) -> Finding | None:
        error, outcome = case.exception, case.crash.outcome
        if outcome.kind != "exception":
            return None
        if error is None:
            return _unread(case)
        own = next((frame for frame in error.frames if is_own(frame)), None)
        where = f"raised below {own.file}:{own.line} in {own.function}" if own else f"raised in {error.frames[0].file}"
        return Finding(
            strength=POSSIBLE if is_messenger(error) else LIKELY,
            title=one_line(f"uncaught {error.type.rpartition('.')[2]}: {error.message}".rstrip(": "), 160),
            op=named_in(error.details),
            evidence=evidence(
                (f"exit code {outcome.exit_code}, no signal", "wait status"),
                (one_line(f"{error.type}: {error.message}", 240), "traceback"),
                (where, "traceback"),
            ),
            fixes=(
                consider("correct what the exception complains about", "the traceback shows the line and the values"),
                safe("make the failing op report its own line", "tf.config.run_functions_eagerly(True) while searching")
                if "{{" in error.details
                else consider("catch the exception where the program can go on without the result"),
            ),
        )


def _unread(case: Case) -> Finding:
    """The traceback could not be made out: its last line still says most."""
    last = next(iter(last_lines(case.crash.output.stderr or "", 1)), "nothing")
    return Finding(
        strength=LIKELY,
        title="an uncaught Python exception ended the program",
        evidence=evidence(
            (f"exit code {case.crash.outcome.exit_code}, no signal", "wait status"),
            (f"the last line on stderr: {last}", "stderr"),
        ),
        fixes=(consider("read the traceback on stderr", "its last line says what went wrong"),),
    )
