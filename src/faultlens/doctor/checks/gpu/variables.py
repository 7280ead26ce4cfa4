from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from faultlens.doctor.check import Check, fix
from faultlens.records.crash import Record
from faultlens.records.finding import Examination, Finding
from faultlens.system.gpus import Gpus
from faultlens.system.nvidia_smi import Gpu
from faultlens.target_env.target import TargetEnvironment
from faultlens.target_env.tensorflow_build import read_build
from faultlens.target_env.xla_flags import FOREIGN, FlagFault, faults, known_names, split
from faultlens.text.safe import one_line

VISIBLE = "CUDA_VISIBLE_DEVICES"
GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
LOOKED_AT = (VISIBLE, GROWTH, *FOREIGN)
# What people write to hide all GPUs; any negative number does too.
HIDING = ("", "none", "nodevfiles")
# When a flag that XLA does not know ends the program.
ENDS = {"XLA_FLAGS": "compiling with XLA (jit_compile=True)", "TF_XLA_FLAGS": "the first op"}
_NUMBER = re.compile(r"\s*([+-]?\d{1,9})", re.ASCII)


class Visible(Record, frozen=True):
    """What CUDA makes of CUDA_VISIBLE_DEVICES."""

    seen: tuple[str, ...] = ()
    wrong: str | None = None  # the entry that ends the list
    twice: str | None = None
    hidden: bool = False  # all GPUs, on purpose


class GpuVariables(Check):
    """
    The variables that decide about GPUs and XLA: CUDA_VISIBLE_DEVICES, TF_FORCE_GPU_ALLOW_GROWTH, XLA_FLAGS,
    TF_XLA_FLAGS.

    XLA ends the program for a flag that it does not know, without an exception: TF_XLA_FLAGS is read at the first op,
    so nothing works (seen with TensorFlow 2.12 and 2.15, which abort, and 2.21, exit status 1); XLA_FLAGS when the
    first function is compiled (seen with 2.15 and 2.21). The names of flags stand in TensorFlow's libraries: all those
    in the lists that 2.21 prints (the longer one is cut) were found there. Values are not judged: types are not told.

    CUDA reads its list up to the first entry that names no GPU, and sees none of those after it (measured: "0,7" on a
    machine with one GPU sees one, "7,0" none; a quote sign makes an entry that names no GPU; an entry given twice is
    an error). Hiding all GPUs (-1, or nothing) is what many want, and no finding.
    """

    name = "gpu-variables"
    looks_at = "CUDA_VISIBLE_DEVICES, TF_FORCE_GPU_ALLOW_GROWTH, XLA_FLAGS, TF_XLA_FLAGS"
    position = 64
    causes = ("op-check-failed",)  # what the abort of XLA looks like

    def examine(self, target: TargetEnvironment) -> Examination:
        tensorflow = target.tensorflow
        knows = known_names(tensorflow.folder) if tensorflow else None
        wrong: list[FlagFault] = []
        for variable in FOREIGN:
            value = target.variables.get(variable)
            if value and knows:
                wrong += faults(variable, value, target.directory, knows)
        build = read_build(tensorflow) if tensorflow else None
        used = build is None or build.cuda is not None
        return self.judge(target.variables, target.gpus if used else Gpus(), wrong)

    def judge(self, variables: Mapping[str, str], gpus: Gpus, wrong: Sequence[FlagFault]) -> Examination:
        values = {name: variables[name] for name in LOOKED_AT if name in variables}
        findings = [self._flag(each, values[each.variable], wrong) for each in wrong]
        details = [f"{name}={one_line(value, 120)}" for name, value in values.items()]
        if VISIBLE in values and gpus.driven:
            visible = what_cuda_sees(values[VISIBLE], gpus)
            findings += self._visible(values[VISIBLE], visible, gpus)
            if visible.hidden:
                details.append(f"{VISIBLE} hides all GPUs: TensorFlow will use the CPU")
        if gpus.driven and values.get(GROWTH, "true") not in ("true", "false"):
            findings.append(
                self.warning(
                    f"{GROWTH}={one_line(values[GROWTH], 9)} is ignored (true and false count): all memory is taken",
                    [(f"{GROWTH}={one_line(values[GROWTH], 60)}", "environment")],
                    [fix("write it out", f"export {GROWTH}=true")],
                    causes=("gpu-out-of-memory",),
                )
            )
        return self.judged(findings, f"{', '.join(values)}: fine" if values else "none is set", details)

    def _flag(self, fault: FlagFault, value: str, wrong: Sequence[FlagFault]) -> Finding:
        flag, variable = one_line(fault.value, 60), fault.variable
        severe = self.error if variable == "TF_XLA_FLAGS" else self.warning
        bad = {each.value for each in wrong if each.variable == variable}
        mended = " ".join(each for each in split(value) if each not in bad)
        if fault.value in value:
            remedy = fix("leave it out", f"export {variable}={shlex.quote(mended)}" if mended else f"unset {variable}")
        else:
            remedy = fix("take it out of the file", f"grep -n -e {shlex.quote(fault.value)} {shlex.quote(value)}")
        return severe(
            f"{variable}: {flag} {fault.why}; {ENDS[variable]} ends the program",
            [(f"{variable}={one_line(value, 160)}", "environment"), ("XLA ends programs for it", "measured")],
            [remedy],
        )

    def _visible(self, value: str, visible: Visible, gpus: Gpus) -> Iterable[Finding]:
        there = len(gpus.survey.gpus) if gpus.survey and gpus.survey.gpus else len(gpus.cards)
        evidence = [
            (f"{VISIBLE}={one_line(value, 100)}", "environment"),
            (f"{there} GPU(s): 0{f' to {there - 1}' if there > 1 else ''}", "nvidia-smi" if gpus.survey else "/dev"),
        ]
        remedy = [fix("name GPUs that there are", f"export {VISIBLE}={','.join(visible.seen) or '0'}")]
        shown = one_line(value, 40)
        if visible.twice is not None:
            title = f"{VISIBLE}={shown} names GPU {visible.twice} twice: CUDA refuses to start"
            yield self.error(title, evidence, remedy, causes=())
        elif visible.wrong is not None:
            seen = f"only {', '.join(visible.seen)} will be seen" if visible.seen else "no GPU will be seen"
            wrong = one_line(visible.wrong, 30)
            yield self.warning(f"{VISIBLE}={shown}: there is no GPU {wrong!r}, {seen}", evidence, remedy, causes=())


def what_cuda_sees(value: str, gpus: Gpus) -> Visible:
    """By the rules that were measured."""
    cards = gpus.survey.gpus if gpus.survey else ()
    if any(card.mig for card in cards):  # numbers and names then stand for instances, which are not listed
        return Visible()
    seen: list[str] = []
    for entry in value.rstrip(", ").split(",") if value.strip().lower() not in HIDING else ():
        match = _NUMBER.match(entry)
        if match and int(match[1]) < 0:
            break
        name = str(int(match[1])) if match else entry.strip()
        exists = int(name) < (len(cards) or len(gpus.cards)) if match else _begins_a_uuid(name, cards)
        if not exists or (seen and seen[0].isdecimal() != name.isdecimal()):  # numbers and UUIDs do not mix
            return Visible(tuple(seen), wrong=entry)
        if name in seen:
            return Visible(tuple(seen), twice=name)
        seen.append(name)
    return Visible(tuple(seen), hidden=not seen)


def _begins_a_uuid(name: str, cards: tuple[Gpu, ...]) -> bool:
    """Without nvidia-smi the UUIDs are not known, and any will do."""
    uuids = [card.uuid or "" for card in cards] or [name]
    return name.startswith("GPU-") and len(name) > len("GPU-") and any(uuid.startswith(name) for uuid in uuids)
