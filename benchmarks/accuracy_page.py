"""docs/accuracy.md, from the results that are kept in benchmarks/accuracy/."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reliability
from crash_grades import GRADES

DOCS = Path(__file__).parent.parent / "docs"
SURE = 0.8  # a wrong verdict above this is the worst that can happen
FIT = "confidence.fit.json"  # by tools/fit_confidence.py
PEERS = ("faulthandler", "faulthandler with C stacks", "pystack", "gdb")
GRADE_WORDS = {2: "what an expert would say", 1: "partly useful", 0: "useless"}
ABOUT = """# Accuracy

Measured by `benchmarks/accuracy.py` on programs that end badly in TensorFlow, each with its known truth. `crashlab` \
is the collection that the rules were written with: what it shows is that nothing was lost. The rounds of other sets \
are first contact: programs by authors who had read neither rules nor programs, measured once, before anything was \
mended. A round is never measured again under its own name; where it was measured after mending, that is said. The \
`variants` are calls that kill TensorFlow, put into programs by a machine (`benchmarks/corpus_variants.py`): rules may \
be mended with the ops of `variants_train`, those of `variants_heldout` tell whether that helps elsewhere."""


@dataclass(frozen=True)
class Results:
    """One set and round, with what else is known of it."""

    name: str
    raw: dict[str, Any]
    usefulness: dict[str, Any]
    peers: dict[str, Any]
    reproduced: dict[str, Any]

    @property
    def title(self) -> str:
        raw = self.raw
        if raw["round"] is None:
            return raw["set"]
        again = "" if raw["first_contact"] else f", again at {raw['commit']}, after mending"
        return f"{raw['set']}, round {raw['round']}{again}"

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        return self.raw["cases"]

    @property
    def verdicts(self) -> list[tuple[float, bool]]:
        """How sure it was, and whether it was right; where nothing was said there is nothing to be sure of."""
        return verdicts(self.raw)


def verdicts(results: dict[str, Any]) -> list[tuple[float, bool]]:
    told = [(case["said"]["confidence"], case["grades"]["cause"]) for case in results["cases"].values()]
    return [(float(sure), bool(right)) for sure, right in told if sure is not None]


def load(folder: Path) -> list[Results]:
    found = []
    for path in folder.glob("*.json"):
        if "." in path.stem:
            continue
        beside = [path.with_name(f"{path.stem}.{what}.json") for what in ("usefulness", "peers", "reproduced")]
        known = [json.loads(each.read_text()) if each.exists() else {} for each in beside]
        found.append(Results(path.stem, json.loads(path.read_text()), *known))
    order = lambda each: (each.raw["set"], each.raw["round"] or 0, not each.raw["first_contact"], each.raw["measured"])
    return sorted(found, key=order)


def write(folder: Path) -> None:
    found = [each for each in load(folder) if each.cases]
    numbers = folder / FIT
    fit = json.loads(numbers.read_text()) if numbers.exists() else {}
    (DOCS / "accuracy.svg").write_text(reliability.diagram({each.title: each.verdicts for each in found}))
    (DOCS / "accuracy.md").write_text("\n\n".join(page(found, fit)) + "\n")
    print(f"written: {DOCS / 'accuracy.md'}")


def summary(results: dict[str, Any]) -> str:
    """For the terminal."""
    lines = [f"{len(results['cases'])} cases, {len(results['left_out'])} left out"]
    for name, told in GRADES.items():
        right, of = _count(list(results["cases"].values()), name)
        lines.append(f"  {told:36s} {_share(right, of)}")
    said = verdicts(results)
    wrong = sum(sure > SURE and not right for sure, right in said)
    lines.append(f"  wrong above {SURE}: {wrong}; expected calibration error: {reliability.error(said):.3f}")
    return "\n".join(lines)


def page(found: Sequence[Results], fit: dict[str, Any]) -> list[str]:
    parts = [
        ABOUT,
        overview(found),
        *(text for each in found if (text := left_out(each))),
        *(f"{each.title}: {each.raw['note']}" for each in found if each.raw.get("note")),
        "## By family of causes",
        "The cause named first, right of all.",
        grouped(found, "family", lambda case: case["family"]),
        "## By capture method",
        "How the process that died was looked at; of programs that ended by themselves only the status is known.",
        grouped(found, "method", lambda case: case["method"] or "no report"),
        "## Calibration",
        "How often verdicts of each confidence are right. The expected calibration error is the mean distance between "
        "the two, over ten steps of confidence.",
        "![Reliability diagram](accuracy.svg)",
        reliability.table({each.title: each.verdicts for each in found}),
        *(["### How it is fitted", fitted(fit)] if fit else []),
        f"## Wrong verdicts above {SURE}",
        wrong(found, above=True),
        "## Other wrong verdicts",
        wrong(found, above=False),
    ]
    for title, text in (
        ("Usefulness", usefulness(found)),
        ("Inside TensorFlow", inside(found)),
        ("Peers on the same crashes", peers(found)),
    ):
        if text:
            parts += [f"## {title}", text]
    return parts


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def _count(cases: Sequence[dict[str, Any]], grade: str) -> tuple[int, int]:
    applied = [case["grades"][grade] for case in cases if case["grades"][grade] is not None]
    return sum(applied), len(applied)


def _share(right: int, of: int) -> str:
    return f"{right} of {of} ({right / of:.0%})" if of else "–"


def overview(found: Sequence[Results]) -> str:
    rows: list[list[str]] = [["measured", *(f"{each.raw['measured']}, {each.raw['commit']}" for each in found)]]
    rows.append(["programs", *(str(len(each.cases)) for each in found)])
    for name, told in GRADES.items():
        rows.append([told, *(_share(*_count(list(each.cases.values()), name)) for each in found)])
    confident = [sum(sure > SURE and not right for sure, right in each.verdicts) for each in found]
    rows.append([f"wrong verdicts above {SURE}", *map(str, confident)])
    rows.append(["expected calibration error", *(f"{reliability.error(each.verdicts):.3f}" for each in found)])
    if any(each.usefulness for each in found):
        rows.append(["usefulness, 0 to 2", *(_mean_use(each) for each in found)])
    return table(["", *(each.title for each in found)], rows)


def left_out(results: Results) -> str:
    """Programs whose truth does not hold on the machine grade nothing, and are named."""
    reasons: dict[str, list[str]] = {}
    for name, reason in results.raw["left_out"].items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"Left out of {results.title}: {told}." if told else ""


def grouped(found: Sequence[Results], head: str, of: Callable[[dict[str, Any]], str]) -> str:
    names = sorted({of(case) for each in found for case in each.cases.values()})
    rows = []
    for name in names:
        groups = [[case for case in each.cases.values() if of(case) == name] for each in found]
        rows.append([name, *(_share(*_count(group, "cause")) for group in groups)])
    return table([head, *(each.title for each in found)], rows)


def fitted(fit: dict[str, Any]) -> str:
    """What tools/fit_confidence.py found on the defects that it did not fit to."""
    rows = []
    for group, told in fit.items():
        if not isinstance(told, dict):
            continue
        for how in ("claimed", "fitted"):
            numbers = told[how]
            share = _share(numbers["right"], numbers["verdicts"])
            mean, sure = numbers["mean confidence"], numbers["above 0.8 and wrong"]
            rows.append([f"{group}, {how}", share, mean, sure, numbers["expected calibration error"]])
    unnamed = fit["true cause left out"]["nothing named"]
    about = (
        "A rule claims how strong its findings are; a logistic model turns the claim and what it rests on into a "
        f"probability (`tools/fit_confidence.py`). It was fitted to {fit['defects']} defects and checked, a fifth at a "
        "time, on those that were left out of the fit. For the rows `true cause left out` each crash was judged by all "
        "causes but its own, as if nobody had seen its kind before: whatever is then named is wrong. In "
        f"{unnamed} more of these nothing was named."
    )
    return f"{about}\n\n{table(['', 'right', 'mean confidence', 'wrong above 0.8', 'calibration error'], rows)}"


def wrong(found: Sequence[Results], above: bool) -> str:
    lines = []
    for each in found:
        for name, case in each.cases.items():
            sure = case["said"]["confidence"] or 0.0
            if not case["grades"]["cause"] and (sure > SURE) == above:
                said = case["said"]["cause"] or case.get("problem") or "nothing"
                lines.append(f"- {each.title}, `{name}`: said {said} ({sure:.2f}); truth: {case['truth']['causes'][0]}")
    return "\n".join(lines) or "None."


def _mean_use(results: Results) -> str:
    grades = [each["grade"] for each in results.usefulness.values()]
    return f"{sum(grades) / len(grades):.2f}" if grades else "–"


def usefulness(found: Sequence[Results]) -> str:
    graded = [each for each in found if each.usefulness]
    if not graded:
        return ""
    rows = []
    for grade, words in GRADE_WORDS.items():
        counts = [sum(use["grade"] == grade for use in each.usefulness.values()) for each in graded]
        rows.append([f"{grade}: {words}", *map(str, counts)])
    rows.append(["mean", *map(_mean_use, graded)])
    lines = [
        f"- {each.title}, `{name}`: {use['why']}"
        for each in graded
        for name, use in each.usefulness.items()
        if use["grade"] == 0
    ]
    about = "The explanation with its first fix, graded as the person with the crash would, by a grader who did not " \
        "write it (`benchmarks/accuracy/*.usefulness.json` has a sentence for each)."  # fmt: skip
    parts = [about, table(["", *(each.title for each in graded)], rows)]
    return "\n\n".join([*parts, *(["Useless were:", "\n".join(lines)] if lines else [])])


def inside(found: Sequence[Results]) -> str:
    rows = []
    for each in found:
        kernels = [case["kernel"] for case in each.cases.values() if "kernel" in case]
        again = [tried["reproduces"] for tried in each.reproduced.values()]
        if kernels:
            told = [[kernel["op"] is not None for kernel in kernels], [kernel["inputs"] for kernel in kernels], again]
            rows.append([each.title, *(_share(sum(group), len(group)) for group in told)])
    if not rows:
        return ""
    head = [
        "",
        "an op was found in flight",
        "with dtype and shape of all its inputs",
        "`repro` dies the same way",
    ]
    return (
        "Of the crashes that an op or API is to blame for. Some have no op in flight: they happen in an API of "
        f"Python's, while a graph is compiled, or in a destructor.\n\n{table(head, rows)}"
    )


def peers(found: Sequence[Results]) -> str:
    parts = [_peer_table(each) for each in found if each.peers]
    if not parts:
        return ""
    about = (
        "For peers the line or op counts when it stands anywhere in their output; for faultlens it must be the one "
        "in the verdict."
    )
    if not any(PEERS[1] in said for each in found for said in each.peers.values()):
        about += (
            " faulthandler prints C stacks too from Python 3.14 on: no virtual environment of these programs has "
            "such a Python."
        )
    return "\n\n".join([about, *parts])


def _peer_table(results: Results) -> str:
    rows = []
    for peer in PEERS:
        said = [each[peer] for each in results.peers.values() if peer in each]
        if not said:
            continue
        ops = [each["op"] for each in said if each["op"] is not None]
        times = sorted(each["cpu_seconds"] for each in said if each["cpu_seconds"])
        cpu = f"{times[len(times) // 2]:.1f} s" if times else "–"
        rows.append([peer, _share(sum(each["line"] for each in said), len(said)), _share(sum(ops), len(ops)), cpu])
    same = [results.cases[name] for name in results.peers if name in results.cases]
    ours = [_share(*_count(same, grade)) for grade in ("location", "op")]
    rows.append(["faultlens", *ours, "see [benchmarks](benchmarks.md)"])
    return table([results.title, "line", "op", "CPU time, median"], rows)
