"""`faultlens op test` on real ops: what they do wrong is found, and those that harm others harm nobody."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from faultlens.custom_op.building import build, target_of
from faultlens.custom_op.fuzz import minimising, plans, testing, wire
from faultlens.custom_op.fuzz.blame import is_to_blame
from faultlens.custom_op.fuzz.campaign import Campaign, Effort
from faultlens.custom_op.fuzz.minimising import Minimiser, Smallest, proven
from faultlens.custom_op.fuzz.session import Limits, Modules, Outcome, Reference, Session, Setup
from faultlens.custom_op.fuzz.suspects import Suspect, suspects_of
from faultlens.custom_op.fuzz.testing import Options, fuzz
from faultlens.custom_op.fuzz.vast import vast
from faultlens.custom_op.fuzz.verdicts import finding_of
from faultlens.errors import FaultlensError
from faultlens.sandbox.trial.trial import SCRIPT

SOURCE = Path(__file__).parent / "harmful" / "ops.cc"
LIMITS = Limits(seconds=3.0, memory=512 << 20)
MUST_STAY = Path("/tmp/faultlens-harmful-must-stay")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("harmful") / "harmful.so"
    build([SOURCE], path, target_of(sys.executable), ["-g1", "-O1", "-w"])
    return path


@pytest.fixture(scope="module")
def session(library: Path) -> Iterator[Session]:
    with Session(Setup(library, sys.executable, LIMITS)) as session:
        yield session


def called(session: Session, name: str, library: Path) -> tuple[list[str], Outcome]:
    op = next(op for op in session.ops if op.name == name)
    call = plans.call_of(op, plans.plainest(op))
    outcome = session.one(wire.asked(call, "eager"))
    return [each.rule for each in suspects_of(call, "eager", {}, outcome, library)], outcome


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("KillsItsParent", "signals-others"),
        ("KillsItsGroup", "signals-others"),
        ("KillsEveryone", "signals-others"),
        ("Leaves", "exits"),
        ("ClosesEverything", "closes-descriptors"),
        ("Hogs", "memory"),
        ("LocksTwice", "hang"),
    ],
)
def test_ops_that_harm_others_are_told_and_the_next_is_tried(
    session: Session, library: Path, name: str, rule: str
) -> None:
    rules, _ = called(session, name, library)
    assert rules == [rule]
    assert called(session, "Counts", library)[1].accepted


def test_noise_and_wandering_harm_nobody(session: Session, library: Path, capfd: pytest.CaptureFixture[str]) -> None:
    MUST_STAY.touch()
    try:
        for name in ("Chatters", "Wanders", "Chatters"):
            assert called(session, name, library)[1].accepted
        session.fresh()  # with the process ends what it had forked
        assert MUST_STAY.exists()
    finally:
        MUST_STAY.unlink()
    assert capfd.readouterr() == ("", "")


def tried(session: Session, library: Path, name: str, inputs: int) -> Campaign:
    op = next(op for op in session.ops if op.name == name)
    campaign = Campaign(op, session, library, Effort(seconds=60.0, inputs=inputs), lambda _: None)
    campaign.run()
    return campaign


def size(suspect: Suspect) -> int:
    return sum(array.size for array in suspect.call.arrays())


def test_what_is_forgotten_and_kept_is_found(session: Session, library: Path) -> None:
    campaign = tried(session, library, "Forgets", 120)
    assert {"uninitialised-output", "shape-disagrees", "leak"} <= {each.rule for each in campaign.suspects.values()}


@pytest.mark.parametrize(("name", "rule"), [("KeepsFiles", "leaks-files"), ("KeepsThreads", "leaks-threads")])
def test_files_and_threads_that_are_kept(session: Session, library: Path, name: str, rule: str) -> None:
    op = next(op for op in session.ops if op.name == name)
    call = plans.call_of(op, plans.plainest(op))
    outcome = session.one(wire.asked(call, "leak"))
    assert rule in {each.rule for each in suspects_of(call, "leak", {}, outcome, library)}
    session.fresh()


def test_gradients_that_a_module_of_the_user_registers(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMFUL", str(library))
    setup = Setup(library, sys.executable, LIMITS, modules=Modules(str(SOURCE.parent), ("gradients",)))
    found: dict[str, set[str]] = {}
    with Session(setup) as session:
        for op in (each for each in session.ops if each.gradient):
            for plan in islice(plans.first(op), 8):
                call = plans.call_of(op, plan)
                outcome = session.one(wire.asked(call, "gradient"))
                suspects = list(suspects_of(call, "gradient", {}, outcome, library))
                found.setdefault(op.name, set()).update(each.rule for each in suspects)
                for suspect in suspects:
                    proof = minimising.written(minimising.Smallest(suspect), setup.modules)
                    assert proof is not None and b"import gradients  # registers the gradient" in proof.files[SCRIPT]
    assert found == {
        "Squares": set(),
        "SquaresWithWrongGradient": {"wrong-gradient"},
        "SquaresWithFlatGradient": {"gradient-shape"},
    }


def test_a_module_that_cannot_be_imported_is_told(library: Path) -> None:
    modules = Modules(str(SOURCE.parent), ("no_such_module",))
    with Session(Setup(library, sys.executable, LIMITS, modules=modules)) as session:
        assert session.refused_importing == "ModuleNotFoundError: No module named 'no_such_module'"


def test_a_module_that_loads_another_build_is_told(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copy(library, tmp_path / "other.so")
    monkeypatch.setenv("HARMFUL", str(other))
    modules = Modules(str(SOURCE.parent), ("gradients",))
    with Session(Setup(library, sys.executable, LIMITS, modules=modules)) as session:
        assert session.refused_importing == "it loads another library with kernels of the same ops"


def test_an_op_with_a_state_is_fine(session: Session, library: Path) -> None:
    assert not tried(session, library, "Counts", 30).suspects


@pytest.mark.parametrize(("name", "rules"), [("KeepsFirst", set()), ("SharesScratch", {"threads-differ"})])
@pytest.mark.parametrize("sizes", [(64, 3, 16), (3, 16, 64)])
def test_what_an_op_keeps_on_purpose_is_no_quarrel_of_threads(
    session: Session, library: Path, name: str, rules: set[str], sizes: tuple[int, ...]
) -> None:
    op = next(op for op in session.ops if op.name == name)
    call, *others = (plans.call_of(op, plans.Plan((), ((plans.Slot((size,), "ramp"),),))) for size in sizes)
    options = {"others": [wire.plain(each) for each in others], "steady": True}
    session.fresh()
    outcome = session.one(wire.asked(call, "threads", **options))
    assert {each.rule for each in suspects_of(call, "threads", options, outcome, library)} == rules


@pytest.mark.parametrize(("name", "dies"), [("FlattensInInt", True), ("FlattensInInt64", False)])
def test_sizes_whose_product_no_int_holds_take_no_memory(session: Session, name: str, dies: bool) -> None:
    op = next(op for op in session.ops if op.name == name)
    found = vast(plans.Plan((), ((plans.Slot((4, 4), "ramp"),),)))
    (plan,) = (each for each in found if each.slots[0][0].shape == (1 << 16, 1 << 16))
    outcome = session.one(wire.asked(plans.call_of(op, plan), "eager", room=LIMITS.memory // 2))
    assert (outcome.death is not None and outcome.death.kind == "deadly") if dies else "error" in outcome.told, outcome
    session.fresh()


def test_a_crash_becomes_a_few_lines_that_die_the_same_way(
    session: Session, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path))
    monkeypatch.setattr(minimising, "SECONDS", 2.0)
    campaign = tried(session, library, "Picks", 100)
    crashes = [each for each in campaign.suspects.values() if each.rule == "crash"]
    (suspect,) = [
        each for each in crashes if is_to_blame(each, session, library)
    ]  # not for memory that nobody may give it
    found = Minimiser(session, Setup(library, sys.executable, LIMITS)).smallest(suspect)
    assert size(found.suspect) <= size(suspect) and found.suspect.key == suspect.key
    proof = proven(found, Setup(library, sys.executable, LIMITS))
    assert proof is not None and proof.crash is not None
    finding = finding_of(found, proof, library)
    assert finding.severity == "error" and finding.code == "OP301"
    assert finding.span is not None and os.path.basename(finding.span.path) == SOURCE.name
    assert "from.data()[places" in finding.span.text
    assert finding.report and list(tmp_path.rglob(f"*{finding.report}*"))


def crash_of(session: Session, library: Path, name: str, plan: plans.Plan) -> Smallest:
    """Where a guard stands is chance: some calls may be needed."""
    op = next(op for op in session.ops if op.name == name)
    call = plans.call_of(op, plan)
    session.fresh()
    outcomes = (session.one(wire.asked(call, "eager")) for _ in range(200))
    outcome = next(each for each in outcomes if each.death)
    return Smallest(next(suspects_of(call, "eager", {}, outcome, library)))


@pytest.mark.parametrize(
    ("name", "slots", "says", "fix"),
    [
        ("KeepsPointer", [plans.Slot((3,))], "used a block of 12 bytes that had been freed", "keep the Tensor"),
        (
            "Picks",
            [plans.Slot((3,)), plans.Slot((1,), ("exactly", (-1,)))],
            "read 4 bytes before a block of 12 bytes",
            "OP_REQUIRES",
        ),
        (
            "Picks",
            [plans.Slot((16,)), plans.Slot((1,), ("exactly", (16,)))],
            "read right behind the end of a block of 64 bytes",
            "OP_REQUIRES",
        ),
    ],
)
def test_the_guard_allocator_decides_what_is_said(
    session: Session, library: Path, name: str, slots: list[plans.Slot], says: str, fix: str
) -> None:
    """Also of the twentieth process that dies the same way: its block is its own."""
    plan = plans.Plan((), tuple((slot,) for slot in slots))
    for _ in range(20 if says.startswith("read 4") else 1):
        found = crash_of(session, library, name, plan)
    finding = finding_of(found, minimising.written(found, Modules()), library)
    assert says in finding.title and fix in finding.fixes[0].title
    assert "faultlens run --hunt=tensors" in finding.reproducer


def test_sizes_whose_product_overflows_are_named(session: Session, library: Path) -> None:
    plan = plans.Plan((), ((plans.Slot((1 << 16, 1 << 16), "zeros"),),))
    op = next(op for op in session.ops if op.name == "FlattensInInt")
    call, options = plans.call_of(op, plan), {"room": LIMITS.memory // 2}
    outcome = session.one(wire.asked(call, "eager", **options))
    (suspect,) = suspects_of(call, "eager", options, outcome, library)
    found = Minimiser(session, Setup(library, sys.executable, LIMITS)).smallest(suspect, 5.0)
    finding = finding_of(found, None, library)
    assert "when the product of sizes does not fit in 32 bits (65536 × 65536)" in finding.title
    assert "int64_t" in finding.fixes[0].title


@pytest.mark.parametrize("function", ["no_such_module:f", "right:no_such_function"])
def test_a_reference_that_cannot_be_imported_is_refused(library: Path, tmp_path: Path, function: str) -> None:
    (tmp_path / "right.py").write_text("def f(x):\n    return x\n")
    effort = Effort(seconds=5.0, reference=Reference(str(tmp_path), *function.split(":")))
    with pytest.raises(FaultlensError, match=f"The reference {function} cannot be used"):
        fuzz(library, target_of(sys.executable), Options(("Squares",), effort, LIMITS), lambda _: None)


def test_a_reference_that_raises_hides_nothing(library: Path, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text("def f(*arrays):\n    raise ValueError('not today')\n")
    reference = Reference(str(tmp_path), "raising", "f")
    with Session(Setup(library, sys.executable, LIMITS, reference=reference)) as session:
        op = next(op for op in session.ops if op.name == "Forgets")
        effort = Effort(seconds=60.0, inputs=120, reference=reference)
        campaign = Campaign(op, session, library, effort, lambda _: None)
        campaign.run()
    assert {"uninitialised-output", "leak"} <= {each.rule for each in campaign.suspects.values()}
    left = testing._left_out(op, campaign)
    assert any("for any input: the reference raises ValueError: not today" in each for each in left)
    assert not any("refused or died of all" in each for each in left)


DEADLY = """\
#include "tensorflow/core/framework/op_kernel.h"
using namespace tensorflow;
class Deadly : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override { *reinterpret_cast<volatile int*>(ctx->num_inputs()) = 1; }
};
REGISTER_OP("Deadly").Input("x: float").Output("y: float");
REGISTER_KERNEL_BUILDER(Name("Deadly").Device(DEVICE_CPU), Deadly);
"""


def test_what_is_printed_for_a_source_runs_later_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(testing, "FIRST_SECONDS", 0.1)
    (tmp_path / "deadly.cc").write_text(DEADLY)
    options = Options(effort=Effort(seconds=1.0, inputs=1), limits=LIMITS)
    found = fuzz(tmp_path / "deadly.cc", target_of(sys.executable), options, lambda _: None)
    (text,) = (each.reproducer for each in found.findings if each.code == "OP301")
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path / "elsewhere", capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGSEGV, done.stderr
