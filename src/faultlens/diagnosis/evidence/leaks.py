"""What grew while the program ran, in words."""

from __future__ import annotations

from faultlens.records.crash import Crash, Growth, GrowthKind, HolderKind
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.sizes import in_words

# How far one may look ahead, in times of what was watched.
FARTHEST, FARTHEST_WITHOUT_STEPS = 20, 3
COUNTED: frozenset[GrowthKind] = frozenset({"open files", "threads"})


def growth_of(crash: Crash, *kinds: GrowthKind) -> Growth | None:
    return next((growth for growth in crash.growth if growth.what in kinds), None)


def in_short(growth: Growth) -> str:
    """ "memory grew by 1.1 MiB a step (since step 40)"."""
    what = f"its number of {growth.what}" if growth.what in COUNTED else growth.what
    since = f" (since step {growth.since:,})" if growth.since and growth.per_step is not None else ""
    return f"{what} grew by {rate(growth)}{since}"


def rate(growth: Growth) -> str:
    """ "1.1 MiB a step"."""
    value, unit = (growth.per_second, "second") if growth.per_step is None else (growth.per_step, "step")
    if growth.what in COUNTED:
        return (
            f"{value:.0f} a {unit}"
            if value >= 9.5 or abs(value - round(value)) < 0.1 <= value
            else f"{value:.2g} a {unit}"
        )
    return f"{in_words(round(value))} a {unit}"


def told(growth: Growth) -> str:
    """One line for the user, while the program runs."""
    held = f": {growth.holders[0].text}" if growth.holders else ", and what holds it could not be seen"
    return in_short(growth).replace(" grew by ", " grows by ", 1) + held


def end_foretold(growth: Growth) -> str | None:
    """ "the limit of 2 GiB will be reached in about 1,400 steps"; None where that is too far away to be told."""
    by_steps = growth.per_step is not None
    left = growth.steps_left if by_steps else growth.seconds_left
    watched = growth.steps if by_steps else (growth.after - growth.before) / (growth.per_second or 1)
    if (
        growth.limit is None
        or left is None
        or left > (FARTHEST if by_steps else FARTHEST_WITHOUT_STEPS) * (watched or 0)
    ):
        return None
    limit = f"{growth.limit:,}" if growth.what in COUNTED else in_words(growth.limit)
    about = round(left, 2 - len(str(int(left))))  # two digits are all that is known
    return f"the limit of {limit} will be reached in about {about:,.0f} {'steps' if by_steps else 'seconds'}"


def span(growth: Growth) -> str:
    """ "from 410 MiB to 1.9 GiB in 1,400 steps"."""
    before, after = (
        (f"{growth.before:,}", f"{growth.after:,}")
        if growth.what in COUNTED
        else (in_words(growth.before), in_words(growth.after))
    )
    over = f" in {growth.steps:,} steps" if growth.steps else ""
    return f"from {before} to {after}{over}"


def in_full(growth: Growth) -> str:
    """With what is left until the limit."""
    left = ""
    if growth.limit is not None and growth.steps_left:
        limit = f"{growth.limit:,}" if growth.what in COUNTED else in_words(growth.limit)
        left = f"; about {growth.steps_left:,} steps were left until the limit of {limit}"
    return f"{in_short(growth)}, {span(growth)}{left}"


def evidence_of(growth: Growth | None) -> tuple[Evidence, ...]:
    """The growth, and what held it."""
    if growth is None:
        return ()
    grew = Evidence(fact=f"{in_short(growth)}: {span(growth)}", source="timeline")
    return (grew, *(Evidence(fact=holder.text, source=f"census: {holder.kind}") for holder in growth.holders))


def fixes_of(growth: Growth | None) -> tuple[Fix, ...]:
    """What stops it, for each kind of holder."""
    kinds = dict.fromkeys(holder.kind for holder in growth.holders) if growth is not None else ()
    return tuple(_FIXES[kind] for kind in kinds)


_FIXES: dict[HolderKind, Fix] = {
    "tensors": Fix(
        title="keep numbers instead of tensors", detail="float(loss) or loss.numpy(); or clear the list now and then"
    ),
    "python objects": Fix(
        title="clear what is kept from step to step, or keep less of it",
        detail="collections.deque(maxlen=…) forgets the oldest; write results to a file instead of a list",
    ),
    "graph traces": Fix(
        title="let the tf.function be traced once",
        detail="pass tensors instead of Python numbers, give it an input_signature or reduce_retracing=True, and do not"
        " make it inside the loop",
    ),
    "tf variables": Fix(
        title="make variables once", detail="in __init__ or build, not in the loop; assign() gives them new values"
    ),
    "native heap": Fix(
        title="look for what native code does not free",
        detail="run a few steps under `valgrind --leak-check=full`, or build it with -fsanitize=leak",
    ),
    "mappings": Fix(
        title="look for memory that is mapped and not unmapped",
        detail="`strace -f -e trace=mmap,munmap` shows who does",
    ),
    "shared memory": Fix(
        title="close() and unlink() shared memory when it is no longer used",
        detail="`with SharedMemoryManager()` of multiprocessing does it by itself",
    ),
    "open files": Fix(title="close files when they are done", detail="`with` closes them on every way out"),
    "threads": Fix(
        title="end threads when their work is done", detail="join() them, or use one ThreadPoolExecutor for all of it"
    ),
}
