"""The op at fault, called by itself with the inputs that were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from faultlens.diagnosis.evidence.kernels import in_words, kernel_at_fault, user_op
from faultlens.diagnosis.signature import Signature, same_death, signature_of, still_the_same
from faultlens.errors import FaultlensError
from faultlens.inspection.owners import custom_libraries
from faultlens.op_model import op_definition, shrink_op
from faultlens.op_model.files import SCRIPT
from faultlens.op_model.op_call import Call, CannotCallError, call_of, forms_for, script_of
from faultlens.records.crash import Crash
from faultlens.repro.surroundings import limits_of
from faultlens.repro.task import PATIENCE_S, Found, Kept, NotReproducedError, Task
from faultlens.sandbox.guest import confinement
from faultlens.sandbox.trial.trial import Bounds, WarmTrials, default_bounds
from faultlens.text.safe import one_line

_CHANGES_FILES = re.compile(r"Write|Save|Merge|Delete|Checkpoint|Dump|Record")


def by_op(task: Task) -> list[Found]:
    kernel = kernel_at_fault(task.crash)
    if kernel is None:
        raise NotReproducedError("No op of TensorFlow was found at work.")
    if not confinement.available().holds_files and _CHANGES_FILES.search(kernel.op):
        task.may_run("call an op that writes files, where this kernel cannot confine it", in_words(kernel))
    trials = task.trials(("numpy", "tensorflow"))
    if "tensorflow" in trials.missing:
        raise FaultlensError(
            f"TensorFlow cannot be imported by {task.surroundings.python}.", "Name another Python with --python."
        )
    name = user_op(kernel)
    definition = _definition(task, trials, [name, kernel.op])
    try:
        call = call_of(kernel, definition)
    except CannotCallError as reason:
        raise NotReproducedError(f"{one_line(name, 80)} cannot be called by itself: {reason}.") from reason
    bounds = default_bounds(PATIENCE_S)
    task.tell(f"calling {name} by itself")
    instead = "does not die"
    for candidate in _variants(call, task.crash):
        seen = signature_of(trials.run(script_of(candidate), bounds))
        if same_death(task.wanted, seen):
            return [_op_found(task, each) for each in _shrunk_calls(task, trials, candidate, seen)]
        instead = f"dies otherwise ({seen})" if seen.signal else instead
    raise NotReproducedError(f"Called by itself with the recorded inputs, {one_line(name, 80)} {instead}.")


def _definition(task: Task, trials: WarmTrials, names: list[str]) -> op_definition.Definition:
    bounds = default_bounds(PATIENCE_S)
    libraries: list[str] = []
    for _ in range(2):
        for name in dict.fromkeys(names):
            if definition := _asked(trials, name, libraries, bounds):
                return definition
        libraries = [path for path in custom_libraries(task.crash) if Path(path).is_file()]
        if not libraries:
            break
    raise NotReproducedError(f"The op {one_line(names[0], 80)} is not known to this TensorFlow.")


def _variants(call: Call, crash: Crash) -> Iterator[Call]:
    kernel = kernel_at_fault(crash)
    assert kernel is not None
    limits = limits_of(crash)
    for bounded in ((), limits) if limits else ((),):
        for form in forms_for(crash, kernel):
            for filled in _fills(call):
                yield filled._replace(form=form, limits=bounded)


def _fills(call: Call) -> Iterator[Call]:
    """Where contents were not recorded they are made up, in three ways."""
    yield call
    if all(array.recorded for array in call.arrays()):
        return
    for fill in (1, "random"):
        arguments = tuple(
            argument._replace(arrays=tuple(a if a.recorded else a._replace(fill=fill) for a in argument.arrays))
            for argument in call.arguments
        )
        yield call._replace(arguments=arguments)


def _shrunk_calls(task: Task, trials: WarmTrials, call: Call, first: Signature) -> list[Call]:
    """The smallest call that was found, and larger ones in case that it dies by chance only."""
    bounds = default_bounds(PATIENCE_S)
    kept = Kept(task, call, lambda each: still_the_same(first, signature_of(trials.run(script_of(each), bounds))))
    shrink_op.shrink(call, kept)
    return kept.best_first()


def _op_found(task: Task, call: Call) -> Found:
    return Found("op", call.op, script_of(call, [f"Dies by {task.wanted}."]), task.wanted)


def _asked(trials: WarmTrials, op: str, libraries: Sequence[str], bounds: Bounds) -> op_definition.Definition | None:
    """Asked of the program's own TensorFlow."""
    script = op_definition.DESCRIBE.read_bytes()
    return op_definition.decode(trials.run({SCRIPT: script}, bounds, arguments=(op, *libraries)).output.stdout or "")
