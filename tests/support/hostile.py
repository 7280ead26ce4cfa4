"""A report whose every text is an attack: on terminals, on browsers, on Markdown, on anything that measures it."""

from __future__ import annotations

import recorded
from faultlens.records.crash import (
    Address,
    Attribute,
    CppException,
    Crash,
    Fault,
    FencedBlock,
    Frame,
    Hunt,
    Instruction,
    Kernel,
    Library,
    Limit,
    Mapping,
    MemoryUse,
    Outcome,
    Output,
    Package,
    Program,
    Progress,
    ProgressMark,
    PythonInfo,
    Sample,
    SaveState,
    Saving,
    Tensor,
    Thread,
)
from faultlens.records.diagnosis import Diagnosis, Evidence, Fix, Location, Reproducer, RuledOut
from faultlens.records.report_file import Report

EVIL = (
    "\x1b[31m\x1b]0;owned\x07\x1b[2J[red]<script>alert(1)</script>[/red]\u202egnp\x00\x07\r\n[link=http://x]"
    "\udcff\ud800 日本語 [/]"
)
# What pages and Markdown must not obey.
MARKUP = (
    "\"'><img src=http://evil.example/x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "</style></title></pre>{{ 7*7 }}{% raw %}```\n```\n# heading\n![x](http://evil.example/y) [l](javascript:1)"
    " @someone #1 |`a|b` <!-- --> &lt; http://evil.example www.evil.example"
)


def kernels() -> tuple[Kernel, ...]:
    """Thousands of ops with inputs that cannot be, of types that are not there, and attributes of any shape."""
    endless: list[object] = []
    for _ in range(200):
        endless = [endless] * 9
    inputs = (
        Tensor(dtype=EVIL, shape=(10**4000, -(10**300), *range(1000)), contents=bytes(100)),
        Tensor(dtype="float32", shape=(2**62, 2**62), contents=bytes(12)),
        Tensor(dtype="bfloat16", shape=(1 << 20,), contents=bytes(2 << 20)),
        Tensor(dtype="complex64", shape=(), contents=b"\xff" * 8),
        Tensor(dtype="string", shape=(3,), strings=(EVIL.encode(errors="replace"), b"\xff\x1b[2J" * 9999, b"") * 9),
        None,
    )
    attributes = {EVIL: Attribute(kind=EVIL, value=EVIL), MARKUP: Attribute(kind="func", value={MARKUP: endless})}
    kernel = Kernel(
        op=f"{EVIL}{MARKUP}",
        node=MARKUP * 100,
        thread=10**30,
        stage="construct",
        inputs=inputs * 50,
        attributes=attributes | {str(number): Attribute(kind="int", value=number) for number in range(2000)},
        kernel_class="C<" * 9999,
        function=EVIL,
        written=Frame(kind="python", function=MARKUP, file=EVIL, line=2**70),
        layer=EVIL,
        at_fault=True,
    )
    return (*[kernel] * 30, *[Kernel(op=MARKUP, node=EVIL, thread=-1)] * 3000)


def progress() -> Progress:
    kinds = ("epoch", "save", "epoch", "saved", EVIL)
    marks = [
        ProgressMark(seconds=seconds, kind=kind, text=EVIL)
        for seconds in (float("nan"), float("inf"), -1e300, 0.5, 1e300)
        for kind in kinds * 300
    ]
    return Progress(
        phase=MARKUP, epoch=-(10**4000), epochs=0, step=2**70, seconds_before=1e300, detail=EVIL, marks=tuple(marks)
    )


def saving() -> Saving:
    states = (
        SaveState(path=EVIL, format=MARKUP, time=1e300, size=-(2**70), whole=False, damage=EVIL, current=True),
        SaveState(path=MARKUP, generation=10**4000, time=float("nan"), size=10**40, whole=True),
        *[SaveState(path="/" + "x/" * 9000, damage=MARKUP)] * 2000,
    )
    return Saving(path=f"/data/{EVIL}{MARKUP}", kept=True, saves=states, unfinished=-1, disk_free=10**300)


def hunt() -> Hunt:
    frames = tuple(
        Frame(kind="native", function=text, library=f"/{text}.so", file=text, line=-1) for text in (EVIL, MARKUP)
    )
    block = FencedBlock(
        misuse="use after free", seen="access", start=Address(2**64 - 1), size=-5, offset=-(10**18), made=frames * 30,
        freed=frames, freed_by=-1, freed_before=1e300,
    )  # fmt: skip
    return Hunt(fenced=-1, one_of=0, block=block, problem=EVIL)


def hostile() -> Report:
    place = Address(0x1000)
    stack = (
        Frame(kind="native", function=EVIL, library=f"/lib/{EVIL}.so", offset=place),
        Frame(kind="native", function="f<" * 5000, approximate=True),
        Frame(kind="python", function=EVIL, file=EVIL, line=-5, column=3, end_column=1),
        Frame(kind="python", function="g" * 50_000, file="/home/u/" + "d/" * 3000 + "x.py", line=10**12),
    )
    crash = Crash(
        outcome=Outcome(kind="signal", signal="SIGSEGV"),
        method="core",
        pid=7,
        time=1e300,
        seconds=-1.0,
        program=Program(
            command=(EVIL, "x" * 100_000),
            directory=EVIL,
            environment={EVIL: EVIL, MARKUP: MARKUP, "A": "B" * 300_000},
            python=PythonInfo(version=MARKUP, packages=(Package(name=f"tensorflow{MARKUP}", version=MARKUP),) * 1000),
        ),
        fault=Fault(
            signal="SIGSEGV",
            code="SEGV_ACCERR",
            thread=7,
            address=place,
            access="write",
            registers={EVIL: place},
            instruction=Instruction(address=place, code="zz" * 500, text=EVIL),
        ),
        also_faulted=(Fault(signal=EVIL, code=EVIL, thread=8),),
        threads=(
            Thread(id=7, name=EVIL, python_name=EVIL, crashed=True, frames=stack),
            Thread(id=8, name="[bold]x[/bold]" + "y" * 1000),
            *(Thread(id=number, name=f"{MARKUP}{number}x", frames=stack * 20) for number in range(9, 300)),
        ),
        kernels=kernels(),
        progress=progress(),
        saving=saving(),
        mappings=(Mapping(start=place, end=Address(0x2000), permissions="r--p", path=f"/data/{EVIL}"),),
        libraries=(Library(path=EVIL, start=place, build_id=EVIL),),
        abort_message=EVIL,
        exceptions=(CppException(type=EVIL, message="m" * 90_000, thread=7, seconds_before=1e30),),
        hunt=hunt(),
        output=Output(stderr=EVIL * 50 + "Check failed: " + EVIL, stdout=f"{EVIL}\n{MARKUP}\n" * 5000),
        kernel_log=(EVIL,),
        gaps=(EVIL,),
        limits={EVIL: Limit(soft=10**18, hard=None)},
        sources={MARKUP: MARKUP, EVIL: EVIL},
        timeline=(
            Sample(seconds=0, rss_anonymous=-5),
            Sample(seconds=-9, rss_anonymous=10**18),
            Sample(seconds=float("nan"), rss_anonymous=1),
            Sample(seconds=1e300, rss_anonymous=10**40),
        ),
        memory=MemoryUse(rss_anonymous=-1, threads=-3),
        children=(recorded.ended(program=Program(command=(EVIL,))),),
    )
    diagnosis = Diagnosis(
        cause=EVIL,
        code="FL1[red]",
        confidence=1e9,
        title=EVIL + MARKUP,
        location=Location(file=MARKUP, line=2**70, function=EVIL),
        called_from=Location(file=EVIL, line=-1, function=MARKUP),
        op=MARKUP,
        evidence=(Evidence(fact=EVIL, source=EVIL), *[Evidence(fact=MARKUP, source=f"registers {MARKUP}")] * 200),
        fixes=(Fix(title=EVIL, detail=EVIL), Fix(title=MARKUP, detail=MARKUP * 500), *[Fix(title="x")] * 100),
    )
    ruled_out = (RuledOut(cause=EVIL, because=EVIL), *[RuledOut(cause=MARKUP, because=MARKUP)] * 300)
    reproducer = Reproducer(
        kind="op",
        script=f"{MARKUP}\n{EVIL}\n\t``````\n" * 20,
        files={MARKUP + str(number): bytes(10) for number in range(500)},
        runs=-1,
        same=10**300,
        signature=EVIL,
    )
    return Report(
        outcome=crash.outcome, crash=crash, diagnoses=(diagnosis,), ruled_out=ruled_out, reproducer=reproducer
    )
