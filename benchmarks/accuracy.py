"""How often the verdict is right, and what other tools tell of the same crashes: writes docs/accuracy.md.

    python benchmarks/accuracy.py CRASHLAB [--peers] [--reproduce] [--results FILE --logs FOLDER]

CRASHLAB is a collection of crash programs with the truth about each: cases/ID/{case.json, run.sh, …} and a program
`score` that runs a tool over them and grades its reports. --results and --logs take those of an earlier run of `score`.
With --reproduce, `faultlens repro` is tried on every crash that an op is to blame for; with --peers,
faulthandler, pystack and gdb are tried on the programs that die by a signal."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parent.parent / "docs" / "accuracy.md"
PEERS = Path(__file__).parent / "peers.json"
REPRODUCED = Path(__file__).parent / "reproduced.json"
TOOL = f"{sys.executable} -m faultlens run --no-save --json {{report}} --timeout {{timeout}} --"
GDB_EVERY = 6  # gdb takes a minute for each
GRADES = {
    "outcome": "how it ended",
    "cause": "cause named first",
    "cause_top3": "cause among the first three",
    "location": "line of the user's code",
    "op": "op or API",
    "status": "ended as without faultlens",
    "explained": "two pieces of evidence and a fix",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crashlab", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--reproduce", action="store_true")
    arguments = parser.parse_args()
    lab = arguments.crashlab.resolve()
    if arguments.peers:
        PEERS.write_text(json.dumps(try_peers(lab), indent=1) + "\n")
    results, logs = arguments.results, arguments.logs
    if results is None:
        results, logs = run_score(lab)
    inside = look_inside(lab, logs) if logs else {}
    if inside and arguments.reproduce:
        REPRODUCED.write_text(json.dumps(reproduce(lab, inside), indent=1) + "\n")
    known = [json.loads(path.read_text()) if path.exists() else {} for path in (PEERS, REPRODUCED)]
    DOCUMENT.write_text(page(json.loads(results.read_text()), *known, inside))
    print(f"written: {DOCUMENT}")


def run_score(lab: Path) -> tuple[Path, Path]:
    folder = Path(tempfile.mkdtemp())
    results, logs = folder / "results.json", folder / "logs"
    subprocess.run([lab / "score", "--tool", TOOL, "--out", results, "--logs", logs], check=True, cwd=lab)
    return results, logs


# --------------------------------------------------------------------------------- inside TensorFlow


def look_inside(lab: Path, logs: Path) -> dict[str, Any]:
    """For every crash with an op in its truth: was that op found in flight, and were all of its inputs read?"""
    found = {}
    for path in sorted(lab.glob("cases/*/case.json")):
        case = json.loads(path.read_text())
        report = logs / case["id"] / "report.json"
        if not case["op"] or "signal:" not in str(case["outcome"]) or not report.exists():
            continue
        kernels = json.loads(report.read_text())["crash"].get("kernels", [])
        kernel = next((kernel for kernel in kernels if kernel.get("at_fault")), None)
        found[case["id"]] = {
            "op": kernel and kernel["op"],
            "inputs": bool(kernel) and all(tensor is not None for tensor in kernel.get("inputs", [])),
            "line": bool(kernel and kernel.get("written")),
        }
    return found


def reproduce(lab: Path, inside: dict[str, Any]) -> dict[str, Any]:
    """Runs each of them once more and lets `faultlens repro` try: its exit code says whether the script dies the same
    way."""
    tried = {}
    for name in inside:
        case = json.loads((lab / "cases" / name / "case.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            job, env = copied(lab, case, Path(folder))
            report, out = Path(folder, "report.json"), Path(folder, "repro")
            wrap = f"{sys.executable} -m faultlens run --no-save --quiet --json {report} --"
            subprocess.run(["bash", "run.sh"], cwd=job, env={**env, "WRAP": wrap}, capture_output=True)
            command = [sys.executable, "-m", "faultlens", "repro", report, "--yes", "--seconds", "15", "--out", out]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            script = out / "reproduce.py"
            lines = len(script.read_text().splitlines()) if script.exists() else None
        tried[name] = {"reproduces": done.returncode == 0, "lines": lines}
        print(name, tried[name], "" if done.returncode == 0 else done.stderr.strip(), flush=True)
    return tried


# ---------------------------------------------------------------------------------------------- peers


def try_peers(lab: Path) -> dict[str, Any]:
    """For every program that dies by a signal: does the output hold the line, does it hold the op, what CPU time."""
    found: dict[str, Any] = {}
    cases = [json.loads(path.read_text()) for path in sorted(lab.glob("cases/*/case.json"))]
    dying = [case for case in cases if str(case["outcome"]).find("signal:") >= 0 and case["location"]]
    for index, case in enumerate(dying):
        with tempfile.TemporaryDirectory() as name:
            found[case["id"]] = try_case(lab, case, Path(name), with_gdb=index % GDB_EVERY == 0)
        print(case["id"], {peer: (said["line"], said["op"]) for peer, said in found[case["id"]].items()}, flush=True)
    return found


def try_case(lab: Path, case: dict[str, Any], scratch: Path, with_gdb: bool) -> dict[str, Any]:
    job, env = copied(lab, case, scratch)
    said: dict[str, Any] = {}
    plain = timed(["bash", "run.sh"], job, {**env, "WRAP": "env PYTHONFAULTHANDLER=1"}, case["timeout_s"], cores=True)
    said["faulthandler"] = judge(case, plain[0], 0.0)
    core = next(iter([*job.glob("core"), *job.glob("core.*")]), None)
    if core is None:
        return said
    text, seconds = timed([sys.executable, "-m", "pystack", "core", core, "--native-all"], job, env, 120)
    said["pystack"] = judge(case, text, seconds)
    if with_gdb and shutil.which("gdb"):
        python = (venvs_of(lab) / case["environment"] / "bin/python").resolve()
        command = ["gdb", "-batch", "-ex", "thread apply all bt", str(python), str(core)]
        said["gdb"] = judge(case, *timed(command, job, env, 180))
    return said


def copied(lab: Path, case: dict[str, Any], scratch: Path) -> tuple[Path, dict[str, str]]:
    """A copy of a case to run, and the environment to run it in."""
    job = scratch / "jobs" / "job"
    shutil.copytree(lab / "cases" / case["id"], job, ignore=shutil.ignore_patterns("case.json"))
    shutil.copy(lab / "cgrun", scratch / "cgrun")
    venvs = venvs_of(lab)
    return job, {**os.environ, "VENVS": str(venvs), "VENV": str(venvs / case["environment"]), "TMPDIR": str(scratch)}


def venvs_of(lab: Path) -> Path:
    return Path(os.environ.get("CRASHLAB_VENVS", lab / "venvs"))


def timed(command: list[Any], cwd: Path, env: dict[str, str], limit: float, cores: bool = False) -> tuple[str, float]:
    """Output and CPU seconds; CPU time tells more than the clock on a machine that does other things."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited)) if cores else None,
        )  # fmt: skip
        text = (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        text = ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return text, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def judge(case: dict[str, Any], text: str, seconds: float) -> dict[str, Any]:
    """Generous to the peer: the line or the op anywhere in its output counts."""
    file, lines = case["location"]["file"], case["location"]["lines"]
    line = any(re.search(rf'{re.escape(file)}", line {number}\b', text) for number in lines)
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    op = any(re.sub(r"[^a-z0-9]", "", name.lower()) in plain for name in case["op"]) if case["op"] else None
    return {"line": line, "op": op, "cpu_seconds": round(seconds, 2)}


# ------------------------------------------------------------------------------------------- document


def page(results: dict[str, Any], peers: dict[str, Any], reproduced: dict[str, Any], inside: dict[str, Any]) -> str:
    summary, cases = results["summary"], results["cases"]
    wrong = [case for case in cases if case["grades"]["cause"] is False]
    sure = [case for case in wrong if (case["confidence"] or 0) > 0.8]
    parts = [
        "# Accuracy",
        f"Measured on {summary['cases']} programs that end badly in TensorFlow, each with its known truth, by "
        "`benchmarks/accuracy.py`. The rules were written with these programs at hand: on crashes never seen "
        "before, expect less.",
        scores("", {GRADES[name]: score for name, score in summary["grades"].items()}),
        "## By family",
        scores("family, cause", summary["cause_by_family"]),
        "## Calibration",
        f"Mean confidence of right verdicts: {summary['confidence_when_right']}; of wrong ones: "
        f"{summary['confidence_when_wrong']}. Wrong verdicts above 0.8: {len(sure)}.",
        calibration(cases),
        "## Where it is wrong",
        "\n".join(f"- `{case['id']}`: said {case['said']}; truth: {case['causes'][0]}" for case in wrong) or "Nowhere.",
    ]
    if inside:
        parts += ["## Inside TensorFlow", inside_table(inside, reproduced)]
    if peers:
        parts += ["## Peers on the same crashes", peer_table(peers, cases)]
    return "\n\n".join(parts) + "\n"


def scores(title: str, rows: dict[str, dict[str, int]]) -> str:
    lines = [f"| {name} | {score['right']} | {score['of']} |" for name, score in rows.items()]
    return "\n".join([f"| {title} | right | of |", "|---|---|---|", *lines])


def calibration(cases: list[dict[str, Any]]) -> str:
    rows = []
    for low, high in ((0.0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
        group = [case for case in cases if case["confidence"] is not None and low <= case["confidence"] < high]
        right = sum(bool(case["grades"]["cause"]) for case in group)
        share = f"{right / len(group):.0%}" if group else "–"
        rows.append(f"| {low:.2f} to {min(high, 1):.2f} | {len(group)} | {right} | {share} |")
    return "| confidence | verdicts | right | share |\n|---|---|---|---|\n" + "\n".join(rows)


def inside_table(inside: dict[str, Any], reproduced: dict[str, Any]) -> str:
    rows = {
        "an op was found in flight": [each["op"] is not None for each in inside.values()],
        "with dtype and shape of all its inputs": [each["inputs"] for each in inside.values()],
        "`faultlens repro` wrote a script that dies the same way": [each["reproduces"] for each in reproduced.values()],
    }
    table = scores("", {name: {"right": sum(said), "of": len(said)} for name, said in rows.items() if said})
    return (
        "Of the crashes that an op or API is to blame for. Some have no op in flight: they happen in an API of "
        f"Python's, while a graph is compiled, or in a destructor.\n\n{table}"
    )


def peer_table(peers: dict[str, Any], cases: list[dict[str, Any]]) -> str:
    ours = {case["id"]: case["grades"] for case in cases}
    rows = []
    for peer in ("faulthandler", "pystack", "gdb"):
        said = [each[peer] for each in peers.values() if peer in each]
        ops = [each for each in said if each["op"] is not None]
        times = sorted(each["cpu_seconds"] for each in said if each["cpu_seconds"])
        cpu = f"{times[len(times) // 2]:.1f} s" if times else "–"
        rows.append(
            f"| {peer} | {sum(each['line'] for each in said)} of {len(said)} "
            f"| {sum(each['op'] for each in ops)} of {len(ops)} | {cpu} |"
        )
    same = [ours[name] for name in peers if name in ours]
    ops_graded = [grades for grades in same if grades["op"] is not None]
    rows.append(
        f"| faultlens | {sum(bool(grades['location']) for grades in same)} of {len(same)} "
        f"| {sum(bool(grades['op']) for grades in ops_graded)} of {len(ops_graded)} | see [benchmarks](benchmarks.md) |"
    )
    return (
        "For peers the line or op counts when it stands anywhere in their output; for faultlens it must be the one "
        "in the verdict.\n\n| tool | line | op | CPU time, median |\n|---|---|---|---|\n" + "\n".join(rows)
    )


if __name__ == "__main__":
    main()
