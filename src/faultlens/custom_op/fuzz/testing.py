"""Fuzzes the ops of a library, and says what was found and what was tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.custom_op.building import SOURCES, Target
from faultlens.custom_op.fuzz import kept, plans, shapes
from faultlens.custom_op.fuzz.blame import is_to_blame
from faultlens.custom_op.fuzz.campaign import Campaign, Effort
from faultlens.custom_op.fuzz.minimising import SECONDS, Minimiser, proven, written
from faultlens.custom_op.fuzz.rules import RULES
from faultlens.custom_op.fuzz.session import Limits, Modules, Session, Setup
from faultlens.custom_op.fuzz.suspects import Suspect
from faultlens.custom_op.fuzz.tested import OpUnderTest
from faultlens.custom_op.fuzz.verdicts import finding_of, severity_of
from faultlens.custom_op.op_files import refuse_other_files
from faultlens.errors import FaultlensError
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.op_finding import OpFinding, OpReport
from faultlens.records.severity import rank
from faultlens.sandbox.guest import confinement
from faultlens.text.quantities import count

MOST_FINDINGS = 8  # of one op, that are made smaller and proven
MORE_TIME = 0.5  # of what trying took, for making small and proving what was found
FIRST_SECONDS, LEAST_SECONDS = 8.0, 0.5  # for making one smaller, whatever the time
NAMES_OF_FORMS = {"leak": "", "repeat": "", "dataset": "tf.data", "threads": "8 threads", "compiled": "XLA"}

Tell = Callable[[str], None]


class Options(NamedTuple):
    only: tuple[str, ...] = ()  # names of ops
    effort: Effort = Effort()
    limits: Limits = Limits()
    fenced: bool = True
    modules: Modules = Modules()


def fuzz(subject: Path, target: Target, options: Options, tell: Tell) -> OpReport:
    """`subject`: a library, or a source, which is built first."""
    if subject.suffix not in SOURCES:
        refuse_other_files(subject)
        return _tested(subject, subject, target, options, tell)
    tell(f"building {subject.name}")
    library = kept.built(subject, target)
    needed = False
    try:
        found = _tested(subject, library.path, target, options, tell)
        needed = any(each.reproducer or each.report for each in found.findings)
    finally:
        library.drop(needed)
    findings = (replace(each, reproducer=library.text(each.reproducer)) for each in found.findings)
    return replace(found, findings=tuple(findings))


def _tested(subject: Path, library: Path, target: Target, options: Options, tell: Tell) -> OpReport:
    start = time.monotonic()
    tell("starting TensorFlow")
    reference = options.effort.reference
    setup = Setup(library.resolve(), target.python, options.limits, options.fenced, options.modules, reference)
    with Session(setup) as session:
        if (why := session.refused_loading) is not None:
            return OpReport(verb="test", subject=str(subject), findings=(_loading(why),))
        _refuse_unusable(session, setup)
        ops = _chosen(session.ops, options.only, subject)
        findings: list[OpFinding] = []
        done, skipped, tried = [], [], 0
        for op in ops:
            if reason := plans.why_not(op):
                skipped.append(f"{op.name}: {reason}")
                continue
            effort = options.effort._replace(seconds=options.effort.seconds / len(ops))
            campaign = Campaign(op, session, setup.library, effort, tell)
            campaign.run()
            findings += _judged(campaign, op, session, setup, tell)
            tried += campaign.inputs
            done.append(_told(op, campaign))
            skipped += _left_out(op, campaign)
    return OpReport(
        verb="test",
        subject=str(subject),
        ops=tuple(op.name for op in ops),
        findings=tuple(findings),
        done=tuple(done),
        skipped=tuple(skipped),
        not_held=confinement.available().not_held(),
        tried=tried,
        seconds=round(time.monotonic() - start, 1),
    )


def _refuse_unusable(session: Session, setup: Setup) -> None:
    if (why := session.refused_importing) is not None:
        raise FaultlensError(
            f"{', '.join(setup.modules.names)} cannot be imported: {why.rstrip('.')}.",
            "Name the very library that it loads, from the folder that it is imported from.",
        )
    if (why := session.refused_reference) is not None and setup.reference:
        named = f"{setup.reference.module}:{setup.reference.function}"
        raise FaultlensError(
            f"The reference {named} cannot be used: {why.rstrip('.')}.",
            "Name MODULE:FUNCTION, from the folder that the module is imported from.",
        )


def _chosen(ops: Sequence[OpUnderTest], only: Sequence[str], subject: Path) -> list[OpUnderTest]:
    if not ops:
        raise FaultlensError(f"{subject} registers no op.", "Name the library that has REGISTER_OP in it.")
    known = {op.name: op for op in ops}
    for name in only:
        if name not in known:
            raise FaultlensError(f"{subject} has no op {name}.", f"It has: {', '.join(known)}")
    return [known[name] for name in only] or list(ops)


def _judged(campaign: Campaign, op: OpUnderTest, session: Session, setup: Setup, tell: Tell) -> list[OpFinding]:
    """The first is made small and proven in any case, the others while there is time."""
    minimiser = Minimiser(session, setup)
    findings: list[OpFinding] = []
    deadline = time.monotonic() + MORE_TIME * campaign.effort.seconds
    proofs = 0
    for number, suspect in enumerate(sorted(campaign.suspects.values(), key=_worst_first)[:MOST_FINDINGS]):
        if suspect.rule not in RULES or not is_to_blame(suspect, session, setup.library):
            continue
        tell(f"{op.name}: making what was found smaller, {number + 1} of {len(campaign.suspects)}")
        left = deadline - time.monotonic()
        found = minimiser.smallest(suspect, min(max(left, LEAST_SECONDS if proofs else FIRST_SECONDS), SECONDS))
        if not found.again and suspect.outcome.death is None:
            continue  # what is not seen twice is not said
        tell(f"{op.name}: proving what was found, {number + 1} of {len(campaign.suspects)}")
        worth = severity_of(found.suspect, again=found.again) != "note"
        if worth and (not proofs or time.monotonic() < deadline):
            proofs += 1
            proof = proven(found, setup)
        else:
            proof = written(found, setup.modules) if worth else None
        findings.append(finding_of(found, proof, setup.library))
    return [*findings, *shapes.findings(op, campaign), *_notes(op, campaign)]


def _worst_first(suspect: Suspect) -> tuple[int, bool]:
    """Hangs last: each look at one takes seconds."""
    severity = RULES[suspect.rule].severity if suspect.rule in RULES else "note"
    return rank(severity), suspect.rule == "hang"


def _notes(op: OpUnderTest, campaign: Campaign) -> list[OpFinding]:
    found = []
    for error, words in campaign.refusals.items():
        rule = RULES["internal-error"]
        title = rule.title.format(op=op.name, words=error)
        evidence = (Evidence(words, "op test"),)
        found.append(OpFinding(rule.code, "internal-error", "note", title, op=op.name, evidence=evidence))
    if campaign.steady is False and not op.stateful:
        rule = RULES["varies"]
        found.append(
            OpFinding(rule.code, "varies", "note", rule.title.format(op=op.name), op=op.name, fixes=(Fix(rule.fix),))
        )
    return found


def _loading(why: str) -> OpFinding:
    rule = RULES["loading"]
    return OpFinding(rule.code, "loading", "error", rule.title.format(words=why), fixes=(Fix(rule.fix),))


def _told(op: OpUnderTest, campaign: Campaign) -> str:
    tried = campaign.tried()
    names = [name for form in tried.forms if (name := NAMES_OF_FORMS.get(form, form))]
    ranks = f"ranks {tried.ranks[0]} to {tried.ranks[-1]}" if tried.ranks else "no inputs"
    parts = [count(len(tried.dtypes), "dtype"), ranks, *names]
    return f"{op.name}: {count(tried.inputs, 'input')} ({tried.accepted:,} accepted): {', '.join(parts)}"


def _left_out(op: OpUnderTest, campaign: Campaign) -> list[str]:
    left = []
    if not op.has_xla_kernel:
        left.append(f"XLA, no kernel of {op.name} for it")
    if not op.gradient:
        left.append(f"the gradient of {op.name}, none is registered: --import the module that does")
    if campaign.unreferenced:
        which = "any input" if len(campaign.unreferenced) == campaign.returned else "some inputs"
        left.append(f"the results of {op.name} for {which}: {campaign.unreferenced[0]}")
    if campaign.stopped:
        left.append(f"more inputs of {op.name}: {campaign.stopped}")
    if not campaign.returned:
        left.append(f"what {op.name} does with inputs that it accepts: it refused or died of all that were tried")
    elif not campaign.accepted:
        left.append(f"other forms of calling {op.name}: every input that it accepted shows something wrong")
    return left
