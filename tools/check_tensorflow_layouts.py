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

from faultlens.records import report_file
from faultlens.records.crash import Crash, Kernel, Tensor

OP = Path(__file__).with_name("everything_op.cc")
PROGRAM = OP.with_suffix(".py")
MODES = ("eager", "graph", "construct")
FLAGS = "import tensorflow as tf; print(*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="+", help="an interpreter with TensorFlow")
    failed = False
    for python in parser.parse_args().python:
        with tempfile.TemporaryDirectory() as folder:
            library = build(python, Path(folder))
            for mode in MODES:
                crash, truth = die(python, mode, library, Path(folder))
                wrong = differences(crash, truth)
                facts = f"{len(truth['attributes'])} attributes, {len(truth['inputs'])} inputs, {len(wrong)} wrong"
                print(f"{truth['version']} {mode}: {facts}", *wrong, sep="\n  ", flush=True)
                failed |= bool(wrong)
    sys.exit(failed)


def build(python: str, folder: Path) -> Path:
    library = folder / "everything.so"
    flags = subprocess.check_output([python, "-c", FLAGS], env={**os.environ, **QUIET}, text=True).split()
    subprocess.run(["g++", "-shared", "-fPIC", "-w", OP, "-o", library, *flags], check=True)
    return library


def die(python: str, mode: str, library: Path, folder: Path) -> tuple[Crash, dict[str, Any]]:
    """What was recorded, and what the op was given."""
    truth, report = folder / f"{mode}-truth.json", folder / f"{mode}.json"
    recording = [sys.executable, "-m", "faultlens", "run", "--no-save", "--json", report, "--"]
    program = [python, PROGRAM, mode, library, truth]
    command = [str(word) for word in recording + program]
    done = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, errors="replace")
    if not truth.exists():
        sys.exit(f"{python} {mode}: the program did not come to the op\n{done.stderr}")
    return report_file.read(report).crash, json.loads(truth.read_text())


def differences(crash: Crash, truth: dict[str, Any]) -> list[str]:
    found = in_words(crash.kernels[0]) if crash.kernels else {}
    given = {
        **{name: truth[name] for name in ("op", "node", "stage", "at_fault")},
        **{f"attribute {name}": value for name, value in truth["attributes"].items()},
        **{f"input {index}": tensor for index, tensor in enumerate(truth["inputs"])},
    }
    return [
        f"{what}: {found.get(what, 'not found')!r:.200} instead of {given.get(what, 'nothing')!r:.200}"
        for what in dict.fromkeys([*given, *found])
        if found.get(what, ...) != given.get(what, ...)
    ]


def in_words(kernel: Kernel) -> dict[str, Any]:
    return {
        **{name: getattr(kernel, name) for name in ("op", "node", "stage", "at_fault")},
        **{f"attribute {name}": attribute.value for name, attribute in kernel.attributes.items()},
        **{f"input {index}": tensor_in_words(tensor) for index, tensor in enumerate(kernel.inputs)},
    }


def tensor_in_words(tensor: Tensor | None) -> dict[str, Any] | None:
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
