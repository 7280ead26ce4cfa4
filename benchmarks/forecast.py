"""How far off is `faultlens forecast`, on models it has never seen, and how far are others?

    python benchmarks/forecast.py RESULTS.json [--kinds truth,rivals,phases,forecast] [MODEL …]

Every result is kept in RESULTS.json as it comes; what is there is not measured again."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import forecast_errors
from measure import FAULTLENS, HERE, PROGRAMS, Bench, Table, clean_environment

TRUTH, RIVALS, MODELS = (PROGRAMS / f"forecast_{name}.py" for name in ("truth", "rivals", "models"))
KINDS = ("truth", "rivals", "phases", "forecast")
STEPS = 10  # of each of two epochs: see forecast_truth.py on how the peak moves
PATIENCE_S = 900
NICE = ("nice", "-n", "0")
KEPT = HERE / "forecast.json"  # measured in several sittings: remove it to begin anew
# Of a forecast.
WORTH_KEEPING = {
    "training", "evaluation", "inference", "saving", "points", "seconds", "import_seconds", "error", "wall_s",
}  # fmt: skip
Results = dict[str, dict[str, Any]]  # by "model batch kind"


class Model(NamedTuple):
    name: str
    build: str
    data_spec: str | None
    batches: tuple[int, ...]


def run(bench: Bench) -> Table:
    chosen = models(bench.python)[: 3 if bench.quick else None]
    kept = bench.folder / "forecast.json" if bench.quick else KEPT
    return forecast_errors.table(Measuring(bench.python, kept).all(chosen))


def models(python: str) -> list[Model]:
    script = "import json, forecast_models as f; print(json.dumps([[name, *each] for name, each in f.MODELS.items()]))"
    found = subprocess.run(
        [python, "-c", script], cwd=PROGRAMS, env=clean_environment(), capture_output=True, check=True
    )
    return [Model(*each) for each in json.loads(found.stdout.splitlines()[-1])]


class Measuring:
    """Measures what is not yet in the file of results."""

    def __init__(self, python: str, path: Path) -> None:
        self.python, self.path = python, path
        self.results: Results = json.loads(path.read_text()) if path.exists() else {}

    def all(self, chosen: Iterable[Model], kinds: Iterable[str] = KINDS) -> Results:
        for model, kind, position in itertools.product(list(chosen), list(kinds), range(3)):
            for key, command in self._commands(kind, model, position):
                if key not in self.results:
                    start = time.perf_counter()
                    self._keep(key, {**self._said(command), "wall_s": time.perf_counter() - start})
        return self.results

    def _commands(self, kind: str, model: Model, position: int) -> Iterator[tuple[str, list[str]]]:
        batch, middle = model.batches[position], position == 1
        key = f"{model.name} {batch}"
        words = [model.name, str(batch), "--steps", str(STEPS)]
        if kind == "truth":
            yield f"{key} truth", [self.python, str(TRUTH), *words]
        elif kind == "rivals" and middle:  # XLA takes long to compile
            yield f"{key} rivals", [self.python, str(RIVALS), *words[:2]]
        elif kind == "forecast":
            yield f"{key} forecast", forecast_command(model, batch)
        elif kind == "phases" and middle:
            yield f"{key} saving", [self.python, str(TRUTH), *words, "--save"]
            for phase in ("evaluation", "prediction"):  # in programs that do nothing else
                yield f"{key} {phase}", [self.python, str(TRUTH), *words, "--phase", phase]

    def _said(self, command: list[str]) -> dict[str, Any]:
        """The JSON that a program prints last, or why there is none."""
        try:
            done = subprocess.run(
                [*NICE, *command], env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            return {"error": f"not ready after {PATIENCE_S} s"}
        try:
            said: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        except ValueError:
            return {"error": f"status {done.returncode}: {done.stderr[-400:]}"}
        return said

    def _keep(self, key: str, said: dict[str, Any]) -> None:
        if key.endswith("forecast"):
            said = {name: value for name, value in said.items() if name in WORTH_KEEPING}
        self.results[key] = said
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.results, indent=1) + "\n")
        os.replace(beside, self.path)
        print(key, _short(said), flush=True)


def forecast_command(model: Model, batch: int) -> list[str]:
    spec = ["--data-spec", model.data_spec] if model.data_spec else []
    return [*FAULTLENS, "forecast", f"{MODELS}:{model.build}", "--batch", str(batch), *spec, "--json", "-"]


def _short(said: dict[str, Any]) -> str:
    if "error" in said:
        return str(said["error"])[-150:]
    return " ".join(f"{name}={said[name]}" for name in ("peak", "step_s", "xla", "xla_error", "wall_s") if name in said)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--python", default=sys.executable, help="the interpreter with TensorFlow")
    arguments = parser.parse_args()
    known = {each.name: each for each in models(arguments.python)}
    chosen = [known[name] for name in arguments.models or known]
    results = Measuring(arguments.python, arguments.results).all(chosen, filter(None, arguments.kinds.split(",")))
    table = forecast_errors.table(results)
    for row in (table.header, *table.rows):
        print(" | ".join(row))
    print(table.text)


if __name__ == "__main__":
    main()
