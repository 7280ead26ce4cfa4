"""What the doctor would have said before a crash: asked of the environment that the dead program had."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.doctor.checks import catalogue
from faultlens.doctor.examine import examine
from faultlens.errors import FaultlensError
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import UNKNOWN
from faultlens.records.finding import Finding
from faultlens.records.report_file import Report
from faultlens.report.make import make_report
from faultlens.system.loader_variables import without_ours
from faultlens.target_env.interpreter import find_interpreter
from faultlens.target_env.target import Options, TargetEnvironment
from faultlens.text.redaction import HIDDEN

QUICKLY = 2.0  # seconds: somebody waits for the report
_INTERPRETER = re.compile(r"python[\d.]*$")
_REFUSED = re.compile(r"(/[^\s:]+\.so[\w.]*): undefined symbol")


def with_findings(report: Report) -> Report:
    """The report of a program that died here and now, with what the doctor finds in its environment."""

    causes = [diagnosis.cause for diagnosis in report.diagnoses if diagnosis.cause != UNKNOWN]
    try:
        findings = foreseen(subject_of(report.crash), causes)
    except Exception as error:  # the doctor must not cost the report
        gap = f"doctor: it failed with {type(error).__name__}: {error}"
        return replace(report, crash=replace(report.crash, gaps=(*report.crash.gaps, gap)))
    return make_report(report.crash, findings) if findings else report


def foreseen(crash: Crash, causes: Collection[str]) -> tuple[Finding, ...]:
    """Findings that lead to one of these causes; without causes, all that are errors."""
    target = target_of(crash)
    if target is None:
        return ()
    checks = [check for check in catalogue() if (set(check.causes) & set(causes) if causes else check.causes)]
    return tuple(
        finding
        for finding in examine(target, checks).findings
        if (set(finding.causes) & set(causes) if causes else finding.severity == "error")
    )


def target_of(crash: Crash) -> TargetEnvironment | None:
    """None where the program was not Python, or its Python is gone."""
    python = _python(crash)
    if python is None:
        return None
    variables = _variables(crash)
    try:
        interpreter = find_interpreter(python, variables, QUICKLY)
    except FaultlensError:
        return None
    known = crash.program.python
    if known is not None and known.path:  # a program may look elsewhere than its Python does by itself
        interpreter = replace(interpreter, path=known.path)
    directory = Path(crash.program.directory) if crash.program.directory else Path.cwd()
    limits = {} if _sets_limits(crash) else crash.limits
    facts = {name: value for name, value in (("machine", crash.machine), ("limits", limits)) if value}
    options = Options(ops=tuple(_refused(crash)), models=tuple(_models(crash)))
    return TargetEnvironment(interpreter, options, variables, directory, cgroup=crash.cgroup, **facts)  # type: ignore[arg-type]


def _sets_limits(crash: Crash) -> bool:
    """Then those that it had at its end are not those that it was started with."""
    return Case(crash).mentions(Wording.SETS_LIMIT) is not None


def _refused(crash: Crash) -> set[Path]:
    """Libraries that the loader said it cannot load."""
    paths = map(Path, _REFUSED.findall(crash.output.stderr or ""))
    return {path for path in paths if path.is_file()}


def _models(crash: Crash) -> Iterator[Path]:
    """Saved models that it had mapped."""
    paths = (Path(state.path) for state in crash.files if state.path.endswith(".tflite"))
    return (path for path in paths if path.exists())


def _python(crash: Crash) -> str | None:
    """The executable is the real file behind a virtual environment's link: the environment must be found first.
    Of a program that ended with an exception only the command is known."""
    python = crash.program.python
    if python is None:
        first = crash.program.command[0] if crash.program.command else ""
        return shutil.which(first) if _INTERPRETER.match(Path(first).name) else None
    in_environment = Path(python.prefix) / "bin" / "python" if python.prefix else None
    if in_environment is not None and in_environment.exists():
        return str(in_environment)
    return python.executable if python.executable and Path(python.executable).exists() else None


def _variables(crash: Crash) -> dict[str, str]:
    """Those the program had; where they were redacted or not read, ours, which it inherited."""
    variables = {
        name: os.environ.get(name, "") if value == HIDDEN else value
        for name, value in (crash.program.environment or os.environ).items()
        if not name.startswith("FAULTLENS_")
    }
    preloaded = without_ours(variables.pop("LD_PRELOAD", ""))
    return variables | ({"LD_PRELOAD": preloaded} if preloaded else {})
