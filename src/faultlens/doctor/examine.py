"""Runs the checks over an environment; one that fails costs its own line only."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence

from faultlens.doctor.check import Check
from faultlens.doctor.checks import catalogue
from faultlens.errors import FaultlensError
from faultlens.records.finding import Checkup, Examination
from faultlens.system.loader import OUR_WANT
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.safe import one_line

NO_MEMORY = "could not look: there is too little memory for it under this limit (ulimit -v)"


def examine(target: TargetEnvironment, checks: Iterable[Check] | None = None) -> Checkup:
    chosen = catalogue() if checks is None else tuple(checks)
    version = target.interpreter.version
    return Checkup(
        python=target.interpreter.executable,
        examinations=tuple(_examined(check, target) for check in chosen),
        version=".".join(map(str, version)) if version else None,
        tensorflow=target.tensorflow.version if target.tensorflow else None,
        cpu=target.options.cpu or target.machine.cpu_model,
        deep=target.options.deep,
    )


def named(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these names, in the order of the screen; all of them without names."""
    known = {check.name: check for check in catalogue()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower()[:60], known, 3)
            advice = f"Did you mean {' or '.join(near)}?" if near else "`faultlens doctor --list` names them."
            raise FaultlensError(f"There is no check {one_line(name, 60)!r}.", advice)
    return tuple(check for check in catalogue() if not names or check.name in names)


def _examined(check: Check, target: TargetEnvironment) -> Examination:
    try:
        return check.examine(target)
    except FaultlensError:  # the user asked for what is not there
        raise
    except MemoryError:
        return check.skipped(NO_MEMORY)
    except Exception as error:  # a check that fails must not cost the others
        if isinstance(error, OSError) and error.errno in OUR_WANT:
            return check.skipped(NO_MEMORY if error.errno == errno.ENOMEM else f"could not look: {error.strerror}")
        return check.skipped(one_line(f"this check failed: {type(error).__name__}: {error}", 200))
