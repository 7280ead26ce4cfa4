"""Fits how sure verdicts are to crashes whose cause is known, and writes diagnosis/confidence.json.

    python tools/fit_confidence.py REPORTS … --truths CASES … [--asserted FOLDER] [--first REPORTS … [--keep FILE]]

REPORTS are folders of ID/report.json (what benchmarks/accuracy.py keeps by --logs), CASES folders of ID/case.json. In
the folders of --asserted are NAME.json whose verdicts the tests assert. Every report is judged twice: by all causes,
and by all but the true ones, as if its kind of crash had never been seen. What is then named first is wrong, and should
come out unsure. All of these together weigh as much as wrong verdicts do at first contact with unseen programs.

--first are reports of programs that the rules which judge them now were not written with. They tell how often claims
come true; the others count for less, for rules are right about the crashes they were written with. Once the rules are
mended that is past, so --keep writes these verdicts to a file, which --first takes as well as a folder.

The check leaves out one fifth of the defects at a time (programs with the same cause and op are one defect), fits to
the rest, and looks at those that were left out. Its numbers go to benchmarks/accuracy/confidence.fit.json, for
docs/accuracy.md. --check stops there."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from faultlens.diagnosis import confidence, rank
from faultlens.diagnosis.causes import catalogue
from faultlens.diagnosis.confidence import Model
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.records import report_file
from faultlens.records.report_file import Report

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import reliability  # noqa: E402

MODEL = ROOT / "src" / "faultlens" / "diagnosis" / "confidence.json"
NUMBERS = ROOT / "benchmarks" / "accuracy" / "confidence.fit.json"
WRONG = 0.14  # share of wrong verdicts at first contact with 117 unseen programs
KNOWN = 0.3  # what a verdict on a crash that its rule was written with weighs
FOLDS = 5
LEFT_OUT = "true cause left out"
# What a model is that has seen nothing: the claim of the rule, less where there is a rival. Data move it from there.
PRIOR = {"claim": 1.0, "contested": -0.7}
TRUST = 0.3  # in the prior, in crashes
STEPS, RATE = 4000, 0.5
RISES = {"claim", "proved", "witnesses", "op known", "line known", "seen dying"}  # more of it makes nothing less likely
FALLS = {"doubted", "contested", "general"}


@dataclass(frozen=True)
class Verdict:
    """What was named first, of one crash."""

    defect: str
    facts: dict[str, float]  # none where nothing was named
    claimed: float
    right: bool
    left_out: bool  # its true cause was
    first: bool = False  # at first contact


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--truths", nargs="+", type=Path, required=True)
    parser.add_argument("--asserted", nargs="*", type=Path, default=[])
    parser.add_argument("--first", nargs="*", type=Path, default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    first = list(first_contact(arguments.first, arguments.truths))
    if arguments.keep:
        lines = ",\n".join(f" {json.dumps(asdict(each))}" for each in first)
        arguments.keep.write_text(f"[\n{lines}\n]\n")
    known = [*judged(arguments.reports, arguments.truths), *asserted(arguments.asserted, arguments.reports)]
    numbers = checked([*known, *first])
    print(json.dumps(numbers, indent=1))
    if not arguments.check:
        model = fit([each for each in (*known, *first) if each.facts])
        rounded = {name: round(weight, 3) for name, weight in model.weights.items()}
        MODEL.write_text(json.dumps({"intercept": round(model.intercept, 3), "weights": rounded}, indent=1) + "\n")
        NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
        print(MODEL.read_text())


# ------------------------------------------------------------------------------------------- what is known


def judged(folders: Sequence[Path], truths: Sequence[Path]) -> Iterator[Verdict]:
    for folder in folders:
        for path in sorted(folder.glob("*/report.json")):
            name = path.parent.name
            truth = next((each / name / "case.json" for each in truths if (each / name / "case.json").exists()), None)
            if truth is None:
                raise SystemExit(f"there is no truth about {name}")
            case = json.loads(truth.read_text())
            yield from both(report_file.read(path), case["causes"], defect_of(name, case))


def first_contact(sources: Sequence[Path], truths: Sequence[Path]) -> Iterator[Verdict]:
    for source in sources:
        if source.is_file():
            yield from (Verdict(**each) for each in json.loads(source.read_text()))
        else:
            yield from (replace(each, first=True) for each in judged([source], truths))


def defect_of(name: str, case: dict[str, Any]) -> str:
    """Programs that call the same op wrongly differ in clothing only."""
    return f"{case['causes'][0]} {case['op'][0]}" if case.get("op") else name.removeprefix("keras_")


def asserted(folders: Sequence[Path], known: Sequence[Path]) -> Iterator[Verdict]:
    """Reports that tests hold to the verdict they have now."""
    for path in sorted(path for folder in folders for path in folder.glob("*.json")):
        if any((folder / path.stem).exists() for folder in known):
            continue
        report = report_file.read(path)
        diagnoses = rank.diagnose(report.crash, report.findings).diagnoses
        if diagnoses:
            yield from both(report, [diagnoses[0].cause], f"{diagnoses[0].cause} {diagnoses[0].op or path.stem}")


def both(report: Report, causes: Sequence[str], defect: str) -> Iterator[Verdict]:
    case = Case(subject_of(report.crash))
    for left_out in (False, True):
        chosen = [cause for cause in catalogue() if not left_out or cause.slug not in causes]
        ranked = rank.findings(case, chosen, report.findings)
        if not rank.decides(ranked):
            yield Verdict(defect, {}, 0.0, False, left_out)
        else:
            cause, found = ranked[0]
            facts = confidence.features(case, ranked)
            yield Verdict(defect, facts, confidence.claimed(found), cause.slug in causes, left_out)


# --------------------------------------------------------------------------------------------------- fitting


def fit(verdicts: Sequence[Verdict]) -> Model:
    """Gradient descent; a weight of the wrong sign is set to nothing after each step."""
    names = list(verdicts[0].facts)
    prior = [0.0, *(PRIOR.get(name, 0.0) for name in names)]
    rows = [([1.0, *(each.facts.get(name, 0.0) for name in names)], float(each.right)) for each in verdicts]
    weights, weighs = list(prior), importance(verdicts)
    for _ in range(STEPS):
        slope = [TRUST * (weight - before) for weight, before in zip(weights, prior, strict=True)]
        for (row, right), weigh in zip(rows, weighs, strict=True):
            off = 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, row, strict=True)))) - right
            slope = [s + weigh * off * x for s, x in zip(slope, row, strict=True)]
        weights = [w - RATE * s / len(rows) for w, s in zip(weights, slope, strict=True)]
        weights = [weights[0], *(signed(name, w) for name, w in zip(names, weights[1:], strict=True))]
    return Model(weights[0], dict(zip(names, weights[1:], strict=True)))


def signed(name: str, weight: float) -> float:
    return max(weight, 0.0) if name in RISES else min(weight, 0.0) if name in FALLS else weight


def importance(verdicts: Sequence[Verdict]) -> list[float]:
    """Verdicts on what nobody knows are as many as were made to be: together they weigh what wrong ones do in life."""
    known = sum(not each.left_out and not each.first for each in verdicts) * KNOWN
    left_out = sum(each.left_out for each in verdicts)
    each_left_out = known * WRONG / (1 - WRONG) / max(left_out, 1)
    return [each_left_out if each.left_out else 1.0 if each.first else KNOWN for each in verdicts]


# -------------------------------------------------------------------------------------------------- checking


def checked(judged: Sequence[Verdict]) -> dict[str, Any]:
    """Verdicts on defects that the model was not fitted to."""
    verdicts = [each for each in judged if each.facts]
    defects = sorted({each.defect for each in verdicts})
    fold = {defect: index % FOLDS for index, defect in enumerate(defects)}
    told: list[tuple[Verdict, float]] = []
    for number in range(FOLDS):
        model = fit([each for each in verdicts if fold[each.defect] != number])
        told += [(each, confidence.probability(each.facts, model)) for each in verdicts if fold[each.defect] == number]
    groups = {
        "first contact": [pair for pair in told if pair[0].first and not pair[0].left_out],
        "known crashes": [pair for pair in told if not pair[0].first and not pair[0].left_out],
        LEFT_OUT: [pair for pair in told if pair[0].left_out],
    }
    numbers: dict[str, Any] = {"defects": len(defects), "folds": FOLDS}
    for name, group in groups.items():
        if not group:
            continue
        fitted = [(sure, each.right) for each, sure in group]
        before = [(each.claimed, each.right) for each, _ in group]
        numbers[name] = {"claimed": figures(before), "fitted": figures(fitted)}
        if name == LEFT_OUT:
            numbers[name]["nothing named"] = sum(each.left_out and not each.facts for each in judged)
        print(f"{name}, fitted\n{reliability.table({'verdicts': fitted})}\n")
    return numbers


def figures(verdicts: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    return {
        "verdicts": len(verdicts),
        "right": sum(right for _, right in verdicts),
        "mean confidence": round(sum(sure for sure, _ in verdicts) / len(verdicts), 3),
        "above 0.8 and wrong": sum(sure > 0.8 and not right for sure, right in verdicts),
        "expected calibration error": round(reliability.error(verdicts), 3),
    }


if __name__ == "__main__":
    main()
