"""Saves that are killed, cut, starved and disturbed at every call: what was saved once is never lost."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from injector import ALL, SPACE, Action, Kind, Operation, Plan
from memory_limit import can_be_limited
from subjects import FORMATS, Format, Subject
from trials import AFTER, BEFORE, SAVED, Outcome, Trial
from warm import Warm

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]

INSTANTS = 100  # 1,000 in benchmarks/losses.py
WRITES = 6  # HDF5 writes in a hundred small steps: of writes in a row, every so many are enough in most tests
EVERY = {"keras": 1, "weights": 1, "saved_model": 4, "checkpoint": 1}  # call: a SavedModel takes half a second
KEPT = 2
MIB = 1 << 20
NFS_OR_FAT = [
    pytest.param(Kind.LINK, errno.EPERM, id="links EPERM"),
    pytest.param(Kind.LINK, errno.EXDEV, id="links EXDEV"),
    pytest.param(Kind.LINK, errno.EOPNOTSUPP, id="links EOPNOTSUPP"),
    pytest.param(Kind.EXCHANGE, errno.ENOSYS, id="exchange ENOSYS"),
    pytest.param(Kind.EXCHANGE, errno.EINVAL, id="exchange EINVAL"),
    pytest.param(Kind.LOCK, errno.ENOLCK, id="locks ENOLCK"),
    pytest.param(Kind.LOCK, errno.ENOSYS, id="locks ENOSYS"),
]

formats = pytest.mark.parametrize("form", FORMATS)
but_for_weights = pytest.mark.parametrize("form", ["keras", "saved_model", "checkpoint"])  # a file, as the first
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def complaints(outcome: Outcome, *, may_die: bool = False) -> list[str]:
    """What is wrong with how a save through faultlens ended."""
    found = []
    if outcome.lost:
        words = outcome.why or ("" if outcome.intact else "a file beside it changed")
        found.append(f"found {outcome.found}, allowed {outcome.allowed}: {words}")
    if outcome.hung:
        found.append("hung")
    if outcome.ended and not may_die:
        found.append(f"ended with {outcome.ended}")
    if outcome.error and not outcome.error.startswith("SaveError: "):
        found.append(f"raised {outcome.error}")
    if outcome.again not in ("", SAVED):
        found.append(f"the next save failed: {outcome.again}")
    if outcome.again == SAVED and outcome.left:
        found.append(f"left {', '.join(outcome.left)}")
    return found


def calls_of(warm: Warm, subject: Subject) -> list[Operation]:
    """In the order in which they are counted."""
    return [operation for operation in warm.record(subject).operations if operation.kind in ALL]


def at_calls(
    warm: Warm,
    subject: Subject,
    trial: Callable[[int], Trial],
    every: int = 1,
    first: int = 1,
    writes: int = 1,
    **options: bool,
) -> list[str]:
    """All complaints, each with the call at which it happened."""
    calls = calls_of(warm, subject)
    found = []
    for at in range(first, len(calls) + 1, every):
        call, previous = calls[at - 1], calls[at - 2] if at > 1 else None
        if call.data and previous and previous.data and previous.path == call.path and at % writes:
            continue
        outcome = warm.trial(subject, trial(at))
        found += [f"call {at}, {call}: {words}" for words in complaints(outcome, **options)]
    return found


def through_faultlens(form: Format) -> Subject:
    return Subject("faultlens", form)


# ------------------------------------------------------------------------------------- the harness itself


@formats
@pytest.mark.parametrize("way", ["plain", "faultlens"])
def test_the_recording_has_every_call(warm: Warm, way: str, form: Format, tmp_path: Path) -> None:
    recording = warm.record(Subject(way, form))  # type: ignore[arg-type]
    recording.disk().after_all().build(tmp_path / "rebuilt")
    assert contents(tmp_path / "rebuilt") == contents(recording.after)


def contents(folder: Path) -> dict[str, bytes | None]:
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else None for name, path in paths.items()}


def test_plain_keras_loses_what_was_there(warm: Warm) -> None:
    plain = Subject("plain", "keras")
    calls = warm.trial(plain, Trial()).calls
    killed = [warm.trial(plain, Trial(Plan(Action.KILL_BEFORE, at))) for at in range(1, calls + 1)]
    assert [outcome.lost for outcome in killed] == [False, *[True] * (calls - 1)]  # it begins by emptying the file


@pytest.mark.parametrize("form", ["keras", "checkpoint"])
def test_without_its_syncs_a_save_would_be_lost(warm: Warm, form: Format) -> None:
    assert any(
        verdict.lost for verdict in warm.power_cuts(through_faultlens(form), samples=1, writes=WRITES, synced=False)
    )


# -------------------------------------------------------------------------------------------------- killed


@formats
def test_killed_before_every_call(warm: Warm, form: Format) -> None:
    found = at_calls(
        warm,
        through_faultlens(form),
        lambda at: Trial(Plan(Action.KILL_BEFORE, at)),
        EVERY[form],
        writes=1 if form == "keras" else WRITES,
        may_die=True,
    )
    assert not found, "\n".join(found)


def test_killed_halfway_through_writes(warm: Warm) -> None:
    found = at_calls(warm, through_faultlens("keras"), lambda at: Trial(Plan(Action.KILL_HALFWAY, at)), 5, may_die=True)
    assert not found, "\n".join(found)


def test_killed_at_any_instant(warm: Warm) -> None:
    subject, chance = through_faultlens("keras"), random.Random(0)
    longest = 1.2 * warm.seconds(subject)
    trials = [Trial(kill_in=chance.uniform(0, longest)) for _ in range(INSTANTS)]
    outcomes = [(trial, warm.trial(subject, trial)) for trial in trials]
    found = [f"{trial}: {words}" for trial, outcome in outcomes for words in complaints(outcome, may_die=True)]
    assert not found, "\n".join(found)
    # Fewer where the machine was busier when a save was timed than it is now.
    assert sum(outcome.ended < 0 for _, outcome in outcomes) > INSTANTS / 10


@needs_root
@but_for_weights
def test_a_killed_program_saves_again_after_its_restart(warm: Warm, form: Format) -> None:
    """In a container it has the same process number every time."""
    subject = through_faultlens(form)
    calls = calls_of(warm, subject)
    last_write = max(number for number, call in enumerate(calls, 1) if "unfinished" in call.path and call.data)
    found = at_calls(
        warm,
        subject,
        lambda at: Trial(Plan(Action.KILL_BEFORE, at), again="after a restart"),
        EVERY[form],
        first=last_write,  # before that, nothing but its unfinished file is there
        may_die=True,
    )
    assert not found, "\n".join(found)


@but_for_weights
def test_a_crash_loop_fills_no_disk(warm: Warm, form: Format) -> None:
    subject, chance = through_faultlens(form), random.Random(0)
    calls = len(calls_of(warm, subject))
    *killed, last = warm.crash_loop(subject, [chance.randint(1, calls) for _ in range(12)])
    found = [each.found for each in killed]
    assert found == sorted(each for each in found if each), "a newer save was lost"
    assert last.found == AFTER
    assert last.left == ()


def test_a_killed_background_writer_leaves_the_program_alive(warm: Warm) -> None:
    found = at_calls(
        warm,
        through_faultlens("keras"),
        lambda at: Trial(Plan(Action.KILL_BEFORE, at), background=True, again="in the same process"),
        every=20,
    )
    assert not found, "\n".join(found)


# -------------------------------------------------------------------------------------------- refused calls


@formats
def test_disk_full_from_every_call_on(warm: Warm, form: Format) -> None:
    found = at_calls(
        warm,
        through_faultlens(form),
        lambda at: Trial(
            Plan(Action.FAIL_HALFWAY, at, errno.ENOSPC, later=SPACE),
            again="in the same process" if at % 4 == 0 else None,
        ),
        EVERY[form],
        first=EVERY[form] // 2 + 1,  # other calls than those that are killed
        writes=2 if form == "keras" else WRITES,
    )
    assert not found, "\n".join(found)


@but_for_weights
def test_an_error_of_the_disk_at_any_call(warm: Warm, form: Format) -> None:
    found = at_calls(
        warm,
        through_faultlens(form),
        lambda at: Trial(Plan(Action.FAIL, at, errno.EIO), again="in the same process"),
        every=11,
    )
    assert not found, "\n".join(found)


@but_for_weights
def test_a_file_system_that_becomes_read_only(warm: Warm, form: Format) -> None:
    """As ext4 does when it finds an error."""
    found = at_calls(
        warm,
        through_faultlens(form),
        lambda at: Trial(Plan(Action.FAIL, at, errno.EROFS, later=ALL), again="in the same process"),
        every=9,
    )
    assert not found, "\n".join(found)


@formats
@pytest.mark.parametrize(("kind", "error"), NFS_OR_FAT)
def test_file_systems_that_cannot_do_everything(warm: Warm, form: Format, kind: Kind, error: int) -> None:
    outcome = warm.trial(through_faultlens(form), Trial(Plan(error=error, never=kind), again="in the same process"))
    assert outcome.saved, outcome.error
    assert not complaints(outcome)


def test_a_lock_that_fails_is_told_as_such(warm: Warm) -> None:
    plan = Plan(error=errno.EIO, never=Kind.LOCK)
    outcome = warm.trial(through_faultlens("keras"), Trial(plan, again="in the same process"))
    assert not complaints(outcome)


@pytest.mark.parametrize("form", ["keras", "saved_model"])
def test_killed_on_a_file_system_that_cannot_do_everything(warm: Warm, form: Format) -> None:
    """The longer way round, with copies instead of links and two renames instead of one exchange."""
    subject, lacking = through_faultlens(form), Kind.LINK | Kind.EXCHANGE
    calls = warm.trial(subject, Trial(Plan(error=errno.EPERM, never=lacking))).calls
    found = []
    for at in range(calls - 25, calls + 1, EVERY[form]):
        outcome = warm.trial(subject, Trial(Plan(Action.KILL_BEFORE, at, errno.EPERM, never=lacking)))
        found += [f"call {at} of {calls}, {outcome.hit!r}: {words}" for words in complaints(outcome, may_die=True)]
    assert not found, "\n".join(found)


@formats
def test_short_writes_are_continued(warm: Warm, form: Format) -> None:
    found = at_calls(
        warm, through_faultlens(form), lambda at: Trial(Plan(Action.FAIL_HALFWAY, at, errno.EINTR)), every=21
    )
    assert not found, "\n".join(found)


@needs_root
@formats
def test_a_read_only_file_system(warm: Warm, form: Format) -> None:
    try:
        error, found = warm.read_only(through_faultlens(form))
    except (OSError, RuntimeError) as reason:
        pytest.skip(f"may not mount: {reason}")
    assert error.startswith("SaveError: ")
    assert "read-only" in error
    assert found == BEFORE


@formats
def test_the_folder_is_removed_meanwhile(warm: Warm, form: Format) -> None:
    """The next save is whole where Keras would make the folder, and refused where Keras would refuse it."""
    subject = through_faultlens(form)
    calls = warm.trial(subject, Trial()).calls
    for at in (2, calls // 2, calls - 8):
        outcome = warm.trial(
            subject, Trial(Plan(Action.STOP_BEFORE, at), meanwhile="the folder is removed", again="in the same process")
        )
        assert outcome.ended == 0
        assert outcome.error == "" or outcome.error.startswith("SaveError: "), outcome.error
        if form in ("keras", "weights"):
            assert "there is no folder" in outcome.again
        else:
            assert (outcome.again, outcome.found) == (SAVED, AFTER)


# ------------------------------------------------------------------------------------------------ two writers


@formats
def test_two_writers_at_once(warm: Warm, form: Format) -> None:
    errors, found = warm.two_writers(through_faultlens(form), saves=3)
    assert (errors, found) == ([], AFTER)


@pytest.mark.parametrize("form", ["keras", "checkpoint"])
@pytest.mark.parametrize("meanwhile", ["another saves", "another saves, and it dies"])
def test_another_writer_in_the_middle_of_a_save(warm: Warm, form: Format, meanwhile: str) -> None:
    subject = through_faultlens(form)
    calls = warm.trial(subject, Trial()).calls
    for at in (2, calls // 2, calls - 5):
        plan = Plan(Action.STOP_BEFORE, at)
        outcome = warm.trial(subject, Trial(plan, meanwhile=meanwhile))  # type: ignore[arg-type]
        assert outcome.other == SAVED
        assert not complaints(outcome, may_die=meanwhile.endswith("dies"))


def test_another_writer_where_there_are_no_locks(warm: Warm) -> None:
    subject = through_faultlens("keras")
    calls = warm.trial(subject, Trial()).calls
    for at in range(calls - 16, calls + 1, 2):
        plan = Plan(Action.STOP_BEFORE, at, errno.ENOLCK, never=Kind.LOCK)
        outcome = warm.trial(subject, Trial(plan, meanwhile="another saves"))
        assert outcome.found == AFTER, (at, outcome)


# -------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("form", ["keras", "checkpoint"])
def test_too_little_memory(warm: Warm, form: Format) -> None:
    """Refused before, or killed in the middle by the kernel."""
    if not can_be_limited():
        pytest.skip("may not make a control group")
    found = []
    for limit in (4, 8, 12, 16, 20, 24, 32, 64, 128):
        outcome = warm.trial(through_faultlens(form), Trial(memory=limit * MIB))
        found += [f"{limit} MiB: {words}" for words in complaints(outcome, may_die=True)]
    assert not found, "\n".join(found)


# ----------------------------------------------------------------------------------------------- power cuts


@but_for_weights
def test_the_power_fails(warm: Warm, form: Format) -> None:
    verdicts = warm.power_cuts(through_faultlens(form), samples=2, writes=WRITES)
    lost = [f"{verdict.state}: found {verdict.found}, {verdict.why}" for verdict in verdicts if verdict.lost]
    assert not lost, "\n".join(lost)


@but_for_weights
def test_the_power_fails_from_the_first_save_on(warm: Warm, form: Format) -> None:
    verdicts = warm.power_cuts(through_faultlens(form), samples=1, writes=WRITES, from_nothing=True)
    lost = [f"{verdict.state}: found {verdict.found}, {verdict.why}" for verdict in verdicts if verdict.lost]
    assert not lost, "\n".join(lost)
    done = [verdict for verdict in verdicts if verdict.allowed == (AFTER,)]
    fewer = [f"{verdict.state}: {verdict.whole} of {KEPT} are whole" for verdict in done if verdict.whole < KEPT]
    assert not fewer, "\n".join(fewer)
