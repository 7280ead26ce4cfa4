"""Tries the table of layouts on real crashes: python tools/check_tensorflow_layouts.py PYTHON …

Each PYTHON is an interpreter with TensorFlow. An op with inputs and attributes of every kind (everything_op.cc) is
built for it and dies under faultlens: in an eager call, in a graph, and while it is constructed. What the report says
of it is compared with what it was given."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from faultlens import reportfile
from faultlens.crash import Kernel, Tensor

OP = Path(__file__).with_name("everything_op.cc")
PROGRAM = OP.with_suffix(".py")
MODES = ("eager", "graph", "construct")
FLAGS = "import tensorflow as tf; print(*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="+", help="an interpreter with TensorFlow")
    wrong = 0
    for python in parser.parse_args().python:
        with tempfile.TemporaryDirectory() as folder:
            library = build(python, Path(folder))
            for mode in MODES:
                wrong += check(python, mode, library, Path(folder))
    sys.exit(1 if wrong else 0)


def build(python: str, folder: Path) -> Path:
    library = folder / "everything.so"
    asked = subprocess.run(
        [python, "-c", FLAGS], env={**os.environ, **QUIET}, check=True, capture_output=True, text=True
    )
    flags = asked.stdout.splitlines()[-1].split()
    subprocess.run(["g++", "-shared", "-fPIC", "-w", OP, "-o", library, *flags], check=True)
    return library


def check(python: str, mode: str, library: Path, folder: Path) -> int:
    """Prints one line, and one for each thing that is wrong; returns their number."""
    truth_file, report_file = folder / "truth.json", folder / "report.json"
    truth_file.unlink(missing_ok=True)
    report_file.unlink(missing_ok=True)
    recording = [sys.executable, "-m", "faultlens", "run", "--no-save", "--json", str(report_file), "--"]
    program = [python, PROGRAM, mode, library, truth_file]
    done = subprocess.run(
        [*recording, *map(str, program)], env={**os.environ, **QUIET}, capture_output=True, text=True, errors="replace"
    )
    if not truth_file.exists():
        sys.exit(f"{python} {mode}: the program did not come to the op\n{done.stderr[-4000:]}")
    truth = json.loads(truth_file.read_text())
    crash = reportfile.read(report_file).crash
    kernel = next((kernel for kernel in crash.kernels if kernel.op == "Everything"), None)
    if kernel is None:
        print(f"{truth['version']} {mode}: the op was not found; {'; '.join(crash.gaps)}", flush=True)
        return 1
    wrong = list(differences(kernel, truth, mode))
    facts = f"{len(kernel.attributes)} attributes, {len(kernel.inputs)} inputs"
    print(f"{truth['version']} {mode}: {facts}, {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)
    return len(wrong)


def differences(kernel: Kernel, truth: dict[str, Any], mode: str) -> list[str]:
    expected: dict[str, Any] = {
        "node": truth["node"],
        "stage": "construct" if mode == "construct" else "compute",
        "first": True,
        **{f"attribute {name}": value for name, value in truth["attributes"].items()},
    }
    found: dict[str, Any] = {
        "node": kernel.node,
        "stage": kernel.stage,
        "first": kernel.at_fault,
        **{f"attribute {name}": attribute.value for name, attribute in kernel.attributes.items()},
    }
    if mode != "construct":
        expected |= {f"input {index}": tensor for index, tensor in enumerate(truth["inputs"])}
        found |= {f"input {index}": in_words(tensor) for index, tensor in enumerate(kernel.inputs)}
    return [
        f"{what}: {found.get(what)!r:.200} is {expected.get(what)!r:.200}"
        for what in dict.fromkeys([*expected, *found])
        if found.get(what, ...) != expected.get(what, ...)
    ]


def in_words(tensor: Tensor | None) -> dict[str, Any] | None:
    """As everything_op.py has them."""
    if tensor is None:
        return None
    words: dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    if tensor.strings is not None:
        words["strings"] = [text.decode() for text in tensor.strings]
    elif tensor.contents is not None:
        words["contents"] = tensor.contents.hex()
    return words


if __name__ == "__main__":
    main()
