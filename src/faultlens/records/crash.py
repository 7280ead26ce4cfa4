"""What is known of one process that died or hung: the records every other part reads.

Records are frozen and serialisable. They hold facts only; what the facts mean is said in records/diagnosis.py.
A field that could not be found out is None (or empty), and `gaps` says why.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

# "timeout": it was still running when its time was up; "hang": a core taken of a living process, and older reports.
OutcomeKind = Literal["signal", "exception", "exit", "ok", "hang", "timeout"]
CaptureMethod = Literal["agent", "tracer", "core", "status"]
Access = Literal["read", "write", "execute"]


class Address(int):
    """A machine word that people read in hexadecimal; written as "0x…" in JSON."""

    def __repr__(self) -> str:
        return hex(self)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    """Base of all records: immutable, compared by value, unknown fields of newer versions ignored."""


class Outcome(Record, frozen=True):
    """How the process ended, as its parent saw it."""

    kind: OutcomeKind
    signal: str | None = None
    exit_code: int | None = None
    core_dumped: bool = False


# ------------------------------------------------------------------------------------------ the fault


class MemoryOperand(Record, frozen=True):
    """One memory access of the faulting instruction, with the address it went to."""

    expression: str  # "[rdi+8]"
    access: Access
    size: int  # bytes; 0 when the instruction does not say
    address: Address | None = None
    registers: dict[str, Address] = {}  # those the address was computed from


class Instruction(Record, frozen=True):
    """The instruction at which the process was stopped."""

    address: Address
    code: str  # its bytes in hexadecimal
    text: str = ""  # disassembly
    operands: tuple[MemoryOperand, ...] = ()
    cpu_features: tuple[str, ...] = ()  # CPUID features it needs ("AVX512F")
    library: str | None = None
    offset: Address | None = None  # within the library file


class Fault(Record, frozen=True):
    """The fatal signal, with the facts the kernel gave about it."""

    signal: str
    code: str  # name of si_code: "SEGV_MAPERR", "SI_TKILL"
    thread: int
    address: Address | None = None  # si_addr; None for signals that carry none
    access: Access | None = None  # from the page-fault error code, or from the instruction
    sender_pid: int | None = None
    sender_uid: int | None = None
    trap: int | None = None  # x86 trap number: 14 page fault, 13 general protection, 0 divide, 6 opcode
    error: int | None = None  # x86 page-fault error code
    registers: dict[str, Address] = {}
    instruction: Instruction | None = None
    # "direct": seen as it happened; "chained": seen before the program's own handler, which gave up;
    # "endless": which returned to the instruction, so that it faults again and again;
    # "signal-frame": read back from the frame that an earlier handler left on the stack.
    seen: Literal["direct", "chained", "endless", "signal-frame"] = "direct"


# ------------------------------------------------------------------------------------------- threads


class Frame(Record, frozen=True):
    """One call on a stack, innermost first in `Thread.frames`."""

    kind: Literal["python", "native"]
    function: str
    file: str | None = None  # source file
    line: int | None = None
    column: int | None = None  # of the failing expression, counted from 0
    end_column: int | None = None
    library: str | None = None  # native: the file the code came from
    address: Address | None = None
    offset: Address | None = None  # native: within the library file
    # The symbol is only the nearest exported one before the address and may be wrong.
    approximate: bool = False


class Lock(Record, frozen=True):
    """A lock that a thread waits for, as it lay in memory."""

    kind: Literal["mutex", "rwlock", "RLock"]  # of pthreads, or of Python
    address: Address
    holder: int | None = None  # the thread that it says has it


class SystemCall(Record, frozen=True):
    """What a thread stood in at the time limit, and which processes of the program can end it."""

    name: Literal["read", "write", "wait"]
    target: Literal["pipe", "socket", "file", "process"]
    pipe: str | None = None  # as the kernel names it: "pipe:[4711]"
    # That have the other end of the pipe open; of "wait", whose end is waited for, empty for any child.
    processes: tuple[int, ...] = ()


class Thread(Record, frozen=True):
    id: int
    frames: tuple[Frame, ...] = ()
    name: str | None = None  # as the kernel knows it
    python_name: str | None = None
    crashed: bool = False
    launched: bool = False  # the Python thread whose call started the work that crashed
    holds_gil: bool | None = None
    collecting_garbage: bool = False
    stack_pointer: Address | None = None
    program_counter: Address | None = None
    lock: Lock | None = None  # that it waits for; only where it was still running
    call: SystemCall | None = None  # at its time limit
    cpu: float | None = None  # seconds of CPU time, and …
    moved: int | None = None  # … bytes read or written by system calls, in the time of Crash.activity


class CppException(Record, frozen=True):
    """A C++ exception that was thrown before the death, caught or not."""

    type: str
    thread: int
    seconds_before: float
    message: str | None = None
    frames: tuple[Frame, ...] = ()


# ----------------------------------------------------------------------------------------- the hunt


Misuse = Literal["overflow", "underflow", "use after free", "double free", "invalid free"]


class FencedBlock(Record, frozen=True):
    """A block of memory between guards that was misused: whose it was, and what was done to it."""

    misuse: Misuse
    # "access": at the very instruction; "free": when it was freed; "exit": when the program ended; "death": when it
    # died of something else.
    seen: Literal["access", "free", "exit", "death"]
    start: Address
    size: int
    offset: int  # of what was touched or freed, from the beginning of the block
    made: tuple[Frame, ...] = ()  # who allocated it …
    made_by: int = 0  # … on which thread
    made_before: float | None = None  # … so many seconds before the end
    freed: tuple[Frame, ...] = ()
    freed_by: int | None = None
    freed_before: float | None = None


class Hunt(Record, frozen=True):
    """What `run --hunt` watched for: some of the program's blocks were put between guards."""

    fenced: int = 0  # blocks, ever
    one_of: int | None = None  # of how many allocations each was one, about
    watched: Literal["some", "tensors", "all"] = "some"  # what was to be fenced, as long as there was room
    block: FencedBlock | None = None  # that was misused
    problem: str | None = None  # why there was no fence


# ------------------------------------------------------------------------------------ address space


class Mapping(Record, frozen=True):
    start: Address
    end: Address
    permissions: str  # "r-xp"
    offset: int = 0
    path: str | None = None  # None for anonymous memory; "[stack]" and the like as in /proc


class FileState(Record, frozen=True):
    """A mapped file as it was on disk when the process stopped."""

    path: str
    size: int | None = None
    modified: float | None = None
    mapped_end: int = 0  # highest file offset that is mapped
    state: Literal["same", "shorter than mapped", "deleted", "replaced", "missing"] = "same"
    disk_free: int | None = None  # bytes left in its file system


class Library(Record, frozen=True):
    """A native library in the process."""

    path: str
    start: Address
    build_id: str | None = None


# ----------------------------------------------------------------------------------- memory, limits


class MemoryUse(Record, frozen=True):
    """Sizes in bytes."""

    rss_anonymous: int | None = None
    rss_shared: int | None = None
    rss: int | None = None
    rss_peak: int | None = None
    virtual: int | None = None
    virtual_peak: int | None = None
    swap: int | None = None
    threads: int | None = None
    open_files: int | None = None


class Limit(Record, frozen=True):
    """A resource limit; None means unlimited."""

    soft: int | None
    hard: int | None


class CgroupState(Record, frozen=True):
    """Limits and counters of the control group; the tightest limit up the tree counts."""

    version: Literal[1, 2]
    path: str
    memory_limit: int | None = None
    memory_used: int | None = None
    memory_peak: int | None = None
    memory_failures: int | None = None  # how often the limit was hit
    oom_kills: int | None = None
    pids_limit: int | None = None
    pids_used: int | None = None
    pids_failures: int | None = None


class MachineState(Record, frozen=True):
    memory_total: int | None = None
    memory_available: int | None = None
    shm_size: int | None = None
    shm_free: int | None = None
    cpus: int | None = None
    cpu_model: str | None = None
    cpu_flags: tuple[str, ...] = ()
    kernel: str | None = None
    distribution: str | None = None


class Sample(Record, frozen=True):
    """One point of the memory timeline."""

    seconds: float  # since the start
    rss_anonymous: int | None = None
    rss: int | None = None
    rss_shared: int | None = None
    cgroup_used: int | None = None
    shm_used: int | None = None  # of /dev/shm, by whomever
    gpu_used: int | None = None  # by this program, on all GPUs
    threads: int | None = None
    open_files: int | None = None
    steps: int | None = None  # made since the start, where the program's loop is known


class Activity(Record, frozen=True):
    """What a process did between two looks, the second at its time limit. Sizes in bytes."""

    limit: float  # of the time, in seconds since the start
    seconds: float  # between the looks
    cpu: float  # seconds of CPU time, of all threads
    read: int | None = None  # by system calls and over TCP
    written: int | None = None
    steps: int | None = None  # made, where the program's loop is known
    idle: float | None = None  # seconds before the limit in which it did next to nothing


LimitOf = Literal["control group", "machine", "program"]  # program: the size that the user named for it


class StopRequest(Record, frozen=True):
    """faultlens itself asked the program to end (SIGTERM), before memory would have run out. Sizes in bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    limit_of: LimitOf


GrowthKind = Literal["memory", "shared memory", "GPU memory", "open files", "threads"]
HolderKind = Literal[
    "python objects", "tensors", "tf variables", "graph traces", "native heap", "mappings", "shared memory",
    "open files", "threads",
]  # fmt: skip


class Holder(Record, frozen=True):
    """Something in the program that holds memory, or the like; of a growth, what grew between two looks at it."""

    kind: HolderKind
    text: str  # "the list `history` of train.py has 9,000 items, 40 more with each step"
    count: int | None = None  # how many there were; of a growth, how many more
    size: int | None = None  # bytes, in the same way
    place: Frame | None = None  # the line that makes them, or that owns them


class Growth(Record, frozen=True):
    """Something that grew steadily while the program did the same over and over."""

    what: GrowthKind
    seconds: float  # since the start, when it was seen
    before: int  # bytes, or a number of them, after the warm-up …
    after: int  # … and when it was last seen
    per_second: float
    per_step: float | None = None
    since: int | None = None  # steps that were made before
    steps: int | None = None  # over how many it was watched
    limit: int | None = None  # where it ends
    steps_left: int | None = None  # until then, from the last sample
    seconds_left: float | None = None
    holders: tuple[Holder, ...] = ()  # what grew, the largest first; empty where it could not be seen


class Held(Record, frozen=True):
    """What held the memory when the program was last looked at: something grew, or it was nearly used up. Sizes in
    bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    limit_of: Literal["control group", "machine"]
    inside: bool = True  # the program itself was asked; it answers between two steps or calls. False: seen from outside
    steps: int | None = None  # made until then
    holders: tuple[Holder, ...] = ()  # the largest first


class LastLines(Record, frozen=True):
    """Where the program stood when memory was nearly used up, seen from outside. Sizes in bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    frames: tuple[Frame, ...]  # the innermost of Python


# --------------------------------------------------------------------------------- inside TensorFlow


class Tensor(Record, frozen=True):
    """An input of a kernel, as it lay in memory."""

    dtype: str  # "float32", "string", "resource"
    shape: tuple[int, ...]
    address: Address | None = None  # of its buffer
    size: int | None = None  # of its buffer, in bytes
    # Its contents, where they fit the limit and were not left out: plain values as raw little-endian bytes …
    contents: bytes | None = None
    strings: tuple[bytes, ...] | None = None  # … and strings one by one


class Attribute(Record, frozen=True):
    """An attribute of a node. Types are named as in dtypes, shapes are lists with -1 for an unknown dimension."""

    kind: str  # "int", "float", "bool", "string", "type", "shape", "func", "list(int)", …; "other": value is None
    value: Any = None


class Kernel(Record, frozen=True):
    """An op that was being computed (or its kernel being constructed) on some thread when the process stopped."""

    op: str  # its type: "MatMul"
    node: str  # its name in the graph; the type again for eager ops
    thread: int
    stage: Literal["compute", "construct"] = "compute"
    inputs: tuple[Tensor | None, ...] = ()  # None: not set, or not to be read
    attributes: dict[str, Attribute] = {}
    kernel_class: str | None = None  # the C++ class of the kernel
    function: str | None = None  # the graph function it belongs to, where known
    written: Frame | None = None  # the line of the user's code that made the node
    layer: str | None = None  # the Keras layer it belongs to
    layer_made: Frame | None = None  # the line that made this layer, where its code is not the user's
    at_fault: bool = False  # it is the one that the crash (or the hang) is about


class ProgressMark(Record, frozen=True):
    seconds: float  # since the start of the program
    kind: str  # "epoch", "train", "evaluate", "predict", "save", "saved", "trace", "end"
    text: str = ""  # "epoch 3", the file saved to


class Progress(Record, frozen=True):
    """How far the program had come: the last marks it left. Epochs and steps are counted from 1."""

    phase: str | None = None  # "train", "evaluate", "predict", "save", "data", "trace"
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None  # of the epoch
    steps: int | None = None
    seconds_before: float | None = None  # from the last mark to the end
    detail: str | None = None  # the file being saved
    marks: tuple[ProgressMark, ...] = ()  # oldest first


class SaveState(Record, frozen=True):
    """A save of a model, as it was on the disk."""

    path: str  # what is loaded: a file, a folder, or the prefix of a checkpoint
    generation: int | None = None  # as `faultlens.save` and TensorFlow number them
    current: bool = False  # it bears the name that was saved to
    format: str | None = None
    time: float | None = None  # when it was written, in seconds since 1970
    size: int | None = None
    whole: bool | None = None  # None: it could not be looked at
    checked: bool = False  # its checksums were compared; else its sizes and structure
    damage: str | None = None


class Saving(Record, frozen=True):
    """What the program was saving when it ended, and the saves of that name right after."""

    path: str
    under_way: bool = True  # False: its last save had ended, and left something damaged
    kept: bool = False  # `faultlens.save` keeps generations of it
    saves: tuple[SaveState, ...] = ()  # newest first
    unfinished: int | None = None  # bytes that an interrupted `faultlens.save` left beside them
    disk_free: int | None = None  # bytes left in its file system


# -------------------------------------------------------------------------------- program and output


class Package(Record, frozen=True):
    name: str
    version: str


class PythonInfo(Record, frozen=True):
    version: str | None = None
    executable: str | None = None
    prefix: str | None = None  # its virtual environment
    path: tuple[str, ...] = ()  # its `sys.path`, where that could be read
    packages: tuple[Package, ...] = ()


class Program(Record, frozen=True):
    """What was started. Arguments and environment are redacted in every report, unless the user asked otherwise."""

    command: tuple[str, ...] = ()
    directory: str | None = None
    executable: str | None = None
    environment: dict[str, str] = {}
    redacted: bool = True
    python: PythonInfo | None = None


class Output(Record, frozen=True):
    """The last of what the process wrote; None where it could not be seen."""

    stdout: str | None = None
    stderr: str | None = None


# ------------------------------------------------------------------------------------------ the whole


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


# ---------------------------------------------------------------------------------------------- JSON


def encode_address(value: Any) -> Any:
    if isinstance(value, Address):
        return hex(value)
    raise NotImplementedError(type(value))


def decode_address(kind: type, value: Any) -> Any:
    if kind is Address and isinstance(value, str):
        number = int(value, 16)
        if 0 <= number < 1 << 64:
            return Address(number)
    raise ValueError(f"not an address: {value!r}")


def address_schema(kind: type) -> dict[str, Any]:
    if kind is Address:
        return {"type": "string", "pattern": "^0x[0-9a-f]{1,16}$"}
    raise NotImplementedError(kind)
