"""What nvidia-smi says of the GPUs, asked once and within a time limit."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING

from faultlens.records.crash import Record
from faultlens.text.safe import one_line
from faultlens.text.sizes import from_words

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SECONDS = 8.0  # 0.1 s where the driver is kept loaded, some seconds where each start loads it again
MAX_BYTES = 32 << 20


class Gpu(Record, frozen=True):
    bus: str  # "0000:00:06.0"
    name: str
    architecture: str | None = None  # "Hopper"
    uuid: str | None = None
    memory: int | None = None  # bytes that programs can have
    compute_mode: str | None = None  # "Default", "Exclusive_Process", "Prohibited"
    mig: bool = False
    mig_devices: int = 0
    uncorrected: int = 0  # ECC errors since the driver was loaded
    uncorrected_ever: int = 0
    remap_pending: bool = False  # rows or pages of its memory that a reset would take out of use
    remap_failed: bool = False
    recovery: str | None = None  # what the driver asks for: "GPU Reset", "Node Reboot"


class Survey(Record, frozen=True):
    driver: str | None = None
    cuda: str | None = None  # the newest that the driver supports
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None  # what it said, or did, instead


def survey(variables: Mapping[str, str]) -> Survey | None:
    """As the program would see it: LD_LIBRARY_PATH decides which driver library nvidia-smi loads. None without one."""
    program = shutil.which("nvidia-smi", path=variables.get("PATH"))
    return ask([program, "-q", "-x"], variables) if program else None


def ask(command: list[str], variables: Mapping[str, str], seconds: float = SECONDS) -> Survey:
    try:
        process = subprocess.Popen(
            command, env=dict(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return Survey(problem=f"nvidia-smi cannot be run: {error.strerror}")
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()  # and no wait for its end: a hung driver holds its callers in the kernel
        return Survey(problem=f"nvidia-smi gave no answer within {seconds:g} s")
    if process.returncode:
        words = one_line(said.decode("utf-8", "replace").strip(), 200)
        return Survey(problem=words or f"nvidia-smi ended with status {process.returncode}")
    return parse(said)


def parse(data: bytes) -> Survey:
    """The XML of `nvidia-smi -q -x`; tags that a driver does not have are taken as nothing to tell."""
    from xml.etree import ElementTree  # only machines with a GPU pay for it

    # Real answers declare no entities; those that do could expand without end.
    if len(data) > MAX_BYTES or b"<!ENTITY" in data:
        return Survey(problem="nvidia-smi gave an answer that is not its own")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError):
        return Survey(problem="nvidia-smi gave an answer that is no XML")
    return Survey(
        driver=_text(root, "driver_version"),
        cuda=_text(root, "cuda_version"),
        gpus=tuple(_gpu(node) for node in root.findall("gpu")),
    )


def _gpu(node: Element) -> Gpu:
    pending = (
        "remapped_rows/remapped_row_pending",
        "retired_pages/pending_retirement",
        "retired_pages/pending_blacklist",
    )
    return Gpu(
        bus=_bus(node.get("id", "")),
        name=_text(node, "product_name") or "NVIDIA GPU",
        architecture=_text(node, "product_architecture"),
        uuid=_text(node, "uuid"),
        memory=_memory(node),
        compute_mode=_text(node, "compute_mode"),
        mig=_text(node, "mig_mode/current_mig") == "Enabled",
        mig_devices=len(node.findall("mig_devices/mig_device")),
        uncorrected=_uncorrected(node.find("ecc_errors/volatile")),
        uncorrected_ever=_uncorrected(node.find("ecc_errors/aggregate")),
        remap_pending=any(_text(node, path) == "Yes" for path in pending),
        remap_failed=_text(node, "remapped_rows/remapped_row_failure") == "Yes",
        recovery=_text(node, "gpu_recovery_action"),
    )


def _text(node: Element, path: str) -> str | None:
    """ "N/A" and "None" are no answers."""
    text = one_line((node.findtext(path) or "").strip(), 120)
    return None if text in ("", "N/A", "None") or text.startswith(("[N/A", "Requested functionality")) else text


def _memory(node: Element) -> int | None:
    total, reserved = (_text(node, f"fb_memory_usage/{name}") or "" for name in ("total", "reserved"))
    return (from_words(total) or 0) - (from_words(reserved) or 0) or None


def _bus(text: str) -> str:
    """ "00000000:00:06.0" as /sys writes it."""
    domain, _, rest = text.partition(":")
    return one_line(f"{domain[-4:]}:{rest}".lower(), 20)


def _uncorrected(counters: Element | None) -> int:
    """Since Ampere by kind of memory; before, as double bit errors with a total."""
    if counters is None:
        return 0
    named = [each for each in counters if "uncorrectable" in each.tag]
    totals = named or counters.findall("double_bit/total")
    return sum(int(text) for each in totals if re.fullmatch(r"\d{1,18}", text := (each.text or "").strip(), re.ASCII))
