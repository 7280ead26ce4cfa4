from __future__ import annotations

from faultlens.diagnosis.causes.base import Cause, Finding
from faultlens.diagnosis.evidence.case import Case
from faultlens.records.diagnosis import UNKNOWN


class Unknown(Cause):
    """
    ## What it is
    The program died, and what was recorded fits no known cause, or several equally badly. A wrong answer would cost
    more time than none, so none is given.

    ## How it looks
    The report names the fault, the line and the native code where the process stood, and, under "next", what to try so
    that the next report decides. "missing" says what could not be looked at: a core file without its libraries, a
    container without ptrace, an end of which only the exit status was seen.

    ## How to prove it
    Run it again so that more is seen: `faultlens run` instead of a core file or a log, `faultlens run --hunt` where
    memory may have been damaged long before the crash, a custom library built with `-g -fsanitize=address`.

    ## How to fix it
    `faultlens show -v` has every fact, and what was ruled out. `faultlens repro` may find a smaller program that dies
    the same way. `faultlens show --markdown PATH` writes the report so that it can be put into a bug report.
    """

    slug = UNKNOWN
    code = "FL000"
    headline = "The recorded facts do not decide what caused the end"

    def examine(self, case: Case) -> Finding | None:  # noqa: ARG002
        """It is the verdict where no other cause finds anything."""
        return None
