"""What a TensorFlow wheel was built for: its build_info.py and its metadata are read, nothing is imported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from faultlens.records.crash import Record
from faultlens.system.procfs import read_text
from faultlens.target_env.target import TensorFlow

MAX_CHARACTERS = 1 << 20
_MINIMUM = ("==", ">=", "~=")


class Build(Record, frozen=True):
    cuda: str | None = None  # "12.5.1"; None for a build without CUDA
    cudnn: str | None = None  # "9": the name of the library has it
    cudnn_at_least: str | None = None  # "9.3.0": what the wheel itself asks for
    capabilities: tuple[str, ...] = ()  # "sm_80": machine code; "compute_90": machine code and PTX for newer GPUs
    rocm: bool = False

    @property
    def cuda_major(self) -> int:
        match = re.match(r"\d{1,4}", self.cuda or "", re.ASCII)
        return int(match[0]) if match else 0


def read_build(tensorflow: TensorFlow) -> Build | None:
    """None where the file is not there or is not what TensorFlow's build writes."""
    said = build_info(tensorflow.folder / "python" / "platform" / "build_info.py")
    if said is None:
        return None
    listed = said.get("cuda_compute_capabilities")
    return Build(
        cuda=str(said.get("cuda_version") or "unknown") if said.get("is_cuda_build") is True else None,
        cudnn=str(said["cudnn_version"]) if said.get("cudnn_version") else None,
        cudnn_at_least=_cudnn_asked_for(tensorflow),
        capabilities=tuple(map(str, listed)) if isinstance(listed, list) else (),
        rocm=said.get("is_rocm_build") is True,
    )


def build_info(path: Path) -> dict[object, object] | None:
    """`build_info = collections.OrderedDict([('cuda_version', '12.5.1'), …])`: literals, so it can be read as data."""
    text = read_text(path)
    if text is None or len(text) > MAX_CHARACTERS:
        return None
    try:
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "build_info":
                value = statement.value
                return dict(ast.literal_eval(value.args[0] if isinstance(value, ast.Call) else value))
    except (SyntaxError, ValueError, TypeError, IndexError, RecursionError, MemoryError):
        return None
    return None


def _cudnn_asked_for(tensorflow: TensorFlow) -> str | None:
    """From the extra `and-cuda`, which releases have since 2.14."""
    for line in tensorflow.distribution.requires:
        if line.startswith("nvidia-cudnn"):
            try:
                wanted = [Version(each.version) for each in Requirement(line).specifier if each.operator in _MINIMUM]
            except ValueError:  # both say so in classes of their own
                continue
            if wanted:
                return ".".join(map(str, max(wanted).release[:3]))
    return None
