"""What is known of one process that died or hung: the records every other part reads.

Records are frozen and serialisable. They hold facts only; what the facts mean is said in records/diagnosis.py.
A field that could not be found out is None (or empty), and `gaps` says why. All records that a Crash is made of can be
imported from here.
"""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Address, Record, address_schema, decode_address, encode_address
from faultlens.records.fault import Access, Fault, Instruction, MemoryOperand
from faultlens.records.hunt import FencedBlock, Hunt, Misuse
from faultlens.records.kernels import Attribute, Kernel, Tensor
from faultlens.records.memory import CgroupState, FileState, Library, Limit, MachineState, Mapping, MemoryUse
from faultlens.records.program import Output, Package, Program, PythonInfo
from faultlens.records.progress import Progress, ProgressMark, SaveState, Saving
from faultlens.records.threads import CppException, Frame, Lock, SystemCall, Thread, Variable
from faultlens.records.watched import (
    Activity,
    Growth,
    GrowthKind,
    Held,
    Holder,
    HolderKind,
    LastLines,
    LimitOf,
    Sample,
    StopRequest,
)

__all__ = [
    "Access",
    "Activity",
    "Address",
    "Attribute",
    "CaptureMethod",
    "CgroupState",
    "CppException",
    "Crash",
    "Fault",
    "FencedBlock",
    "FileState",
    "Frame",
    "Growth",
    "GrowthKind",
    "Held",
    "Holder",
    "HolderKind",
    "Hunt",
    "Instruction",
    "Kernel",
    "LastLines",
    "Library",
    "Limit",
    "LimitOf",
    "Lock",
    "MachineState",
    "Mapping",
    "MemoryOperand",
    "MemoryUse",
    "Misuse",
    "Outcome",
    "OutcomeKind",
    "Output",
    "Package",
    "Program",
    "Progress",
    "ProgressMark",
    "PythonInfo",
    "Record",
    "Sample",
    "SaveState",
    "Saving",
    "StopRequest",
    "SystemCall",
    "Tensor",
    "Thread",
    "Variable",
    "address_schema",
    "decode_address",
    "encode_address",
]

# "timeout": it was still running when its time was up; "hang": a core taken of a living process, and older reports.
OutcomeKind = Literal["signal", "exception", "exit", "ok", "hang", "timeout"]
CaptureMethod = Literal["agent", "tracer", "core", "status"]


class Outcome(Record, frozen=True):
    """How the process ended, as its parent saw it."""

    kind: OutcomeKind
    signal: str | None = None
    exit_code: int | None = None
    core_dumped: bool = False


class Crash(Record, frozen=True):
    """One process that died or hung, and the related ones in `children`."""

    outcome: Outcome
    method: CaptureMethod
    pid: int | None = None
    parent_pid: int | None = None
    time: float | None = None  # of the end, seconds since 1970
    seconds: float | None = None  # how long it ran
    exiting: bool | None = None  # it had begun to shut down
    program: Program = Program()
    fault: Fault | None = None
    also_faulted: tuple[Fault, ...] = ()  # other threads that crashed at the same time
    threads: tuple[Thread, ...] = ()  # the crashed one first
    kernels: tuple[Kernel, ...] = ()  # TensorFlow's ops in flight, the one at fault first
    progress: Progress | None = None
    activity: Activity | None = None  # of a program that was still running at its time limit
    saving: Saving | None = None
    exceptions: tuple[CppException, ...] = ()  # latest first
    hunt: Hunt | None = None  # of `run --hunt`
    abort_message: str | None = None  # what glibc said before it aborted
    mappings: tuple[Mapping, ...] = ()
    libraries: tuple[Library, ...] = ()
    files: tuple[FileState, ...] = ()  # mapped data files, and libraries that changed on disk
    memory: MemoryUse | None = None
    limits: dict[str, Limit] = {}
    cgroup_before: CgroupState | None = None
    cgroup: CgroupState | None = None
    machine: MachineState | None = None
    timeline: tuple[Sample, ...] = ()
    growth: tuple[Growth, ...] = ()  # leaks, the worst first
    held: Held | None = None
    last_lines: LastLines | None = None
    stop_request: StopRequest | None = None  # of `run --stop-before-oom`
    output: Output = Output()
    kernel_log: tuple[str, ...] = ()
    handed_on: tuple[str, ...] = ()  # signals that were sent to faultlens for the program: "SIGTERM from process 7"
    # The user's own files on the stacks: path -> text, with all lines blank but those around frames and those that
    # rules look at; whole where nothing was redacted, and in reports without digests.
    sources: dict[str, str] = {}
    source_digests: dict[str, str] = {}  # path -> SHA-256 of the whole file
    children: tuple[Crash, ...] = ()
    times: int = 1  # how many processes of the program died in the same place; the first one is described
    gaps: tuple[str, ...] = ()  # what could not be recorded, and why

    @property
    def was_running(self) -> bool:
        """It had not ended by itself when it was looked at."""
        return self.outcome.kind in ("timeout", "hang")

    @property
    def crashed_thread(self) -> Thread | None:
        return next((thread for thread in self.threads if thread.crashed), None)

    @property
    def launching_thread(self) -> Thread | None:
        """The thread whose Python code led to the crash: often not the one that crashed."""
        return next((thread for thread in self.threads if thread.launched), None)
