"""When memory runs out, and when a program must be asked to end: over samples as they are taken."""

from __future__ import annotations

from collections.abc import Callable

from faultlens.inspection.progress import Loop
from faultlens.records.crash import Sample
from faultlens.supervise.memory_forecast import Forecast, MemoryForecast, forecast, steps_to_go, use_in_words, warning
from faultlens.supervise.oom_stop import StopAt, StopRule
from faultlens.system.cgroup import Room
from faultlens.text.sizes import GIB, MIB

LIMIT = 8 * GIB
EPOCHS, STEPS = 1000, 500
SHARE = StopAt(share=0.95)


def room(used: float, limit: int = LIMIT) -> Room:
    return Room(limit=limit, used=int(used), where="/sys/fs/cgroup/memory.max")


def watched(use: Callable[[int], float], last: int, epochs: int = EPOCHS, step_s: float = 0.1) -> Forecast | None:
    """What is foretold of a training that uses so many bytes at each step; the first thing that is, or nothing."""
    samples: list[Sample] = []
    memory_forecast = MemoryForecast()
    for step in range(1, last, 5):
        seconds = 20 + step * step_s
        samples.append(Sample(seconds=seconds, rss_anonymous=int(use(step)), rss=1, steps=step))
        if step % 20 == 1:
            loop = Loop("train", (step - 1) // STEPS + 1, epochs, STEPS, (step - 1) % STEPS + 1, step)
            memory_forecast.take(samples, room(use(step)), loop)
            if memory_forecast.forecast:
                return memory_forecast.forecast
    return None


def test_a_steady_growth_is_foretold() -> None:
    found = watched(lambda step: GIB + 2 * MIB * step, 3000)
    assert found is not None
    assert 1.9 * MIB < found.per_step < 2.1 * MIB and 19 * MIB < found.per_second < 21 * MIB
    dies = (LIMIT - GIB) / (2 * MIB)
    assert abs(found.loop.made + found.steps_left - dies) < 0.1 * dies
    assert found.loop.made < 0.7 * dies  # early


def test_it_is_said_in_one_sentence() -> None:
    loop = Loop("train", 3, 10, 500, 450, 1450)
    text = warning(Forecast(room(6 * GIB), loop, per_step=4 * MIB, per_second=8 * MIB))
    assert text == (
        "memory is at 6 GiB (75%) of the 8 GiB that the control group may have, and grows by 4 MiB with every step:"
        " the kernel will kill the program in about 4 minutes, near step 460 of epoch 4"
    )
    own_loop = Forecast(room(6 * GIB), Loop("data", 0, 0, 0, 7, 1450), per_step=4 * MIB, per_second=8 * MIB)
    assert warning(own_loop).endswith("in about 4 minutes, after about 510 more steps")
    machine = Room(limit=LIMIT, used=GIB, where="/proc/meminfo")
    assert use_in_words(machine) == "1 GiB (12%) of the 8 GiB that the machine has"


def test_healthy_programs_are_not_told_of() -> None:
    flat = 7.8 * GIB
    assert watched(lambda _: flat, 3000) is None
    assert watched(lambda step: min(GIB + 200 * MIB * step, flat), 3000) is None  # filled in 35 steps
    assert watched(lambda step: GIB + 13 * MIB * min(step, STEPS), 3000) is None  # a cache, full after one epoch
    assert watched(lambda step: 5 * GIB + 2 * GIB * (step % 50 > 40), 3000) is None  # comes and goes
    assert watched(lambda step: 7 * GIB * (1 - 0.5 ** (step / 300)), 3000) is None  # ever slower


def test_a_cache_that_will_not_fit_is_told_of_in_the_first_epoch() -> None:
    found = watched(lambda step: GIB + 20 * MIB * min(step, STEPS), STEPS)
    assert found is not None and found.loop.epoch == 1


def test_a_training_that_ends_before_is_not_told_of() -> None:
    def use(step: int) -> float:
        return GIB + 2 * MIB * step  # dies after 3,584 steps

    assert watched(use, 3000, epochs=6) is None
    assert watched(use, 3000, epochs=8) is not None


def test_without_steps_there_is_no_forecast() -> None:
    samples = [Sample(seconds=second, rss_anonymous=second * 50 * MIB, rss=1) for second in range(120)]
    assert forecast(samples, room(6 * GIB), Loop("train", 2, 10, 0, 0, 0)) is None
    memory_forecast = MemoryForecast()
    memory_forecast.take(samples, room(6 * GIB), None)
    assert memory_forecast.forecast is None


def test_how_many_steps_are_to_go() -> None:
    assert steps_to_go(Loop("train", 1, 10, 500, 100, 100)) == 400  # then a cache is full
    assert steps_to_go(Loop("train", 9, 10, 500, 100, 4100)) == 900
    assert steps_to_go(Loop("train", 2, 10, 0, 100, 300)) == float("inf")
    assert steps_to_go(Loop("predict", 0, 0, 50, 20, 20)) == 30
    assert steps_to_go(Loop("data", 0, 0, 0, 20, 20)) == 0  # its first pass, whose length nobody knows
    assert steps_to_go(Loop("data", 0, 0, 0, 20, 120)) == float("inf")


# ------------------------------------------------------------------------------------------- the rule


def stopped(uses: list[float], steps: list[int] | None = None, stop_at: StopAt = SHARE) -> int | None:
    """At which look the program is asked to end; they come a tenth of a second apart."""
    rule = StopRule(stop_at)
    for number, use in enumerate(uses):
        if rule.reached(number / 10, room(use), steps[number] if steps else None, int(use)):
            return number
    return None


def test_the_share_or_the_size_that_was_named() -> None:
    slow = [GIB + number * 4 * MIB for number in range(3000)]
    named = {SHARE: 0.95 * LIMIT, StopAt(share=0.5): LIMIT / 2, StopAt(own=3 * GIB): 3 * GIB}
    for stop_at, most in named.items():
        look = stopped(slow, stop_at=stop_at)
        assert look is not None and slow[look - 1] < most <= slow[look]


def test_a_size_is_about_the_program_whatever_others_use() -> None:
    rule = StopRule(StopAt(own=GIB))
    assert rule.reached(0.0, room(7 * GIB), None, 3 * MIB) is None
    assert rule.reached(0.5, room(7 * GIB), None, GIB) == "size"
    assert rule.reached(1.0, room(LIMIT - MIB), None, 3 * MIB) == "limit"


def test_two_steps_more_must_fit() -> None:
    uses = [GIB * number for number in range(1, 9)]
    look = stopped(uses, list(range(1, 9)))
    assert look is not None and 5 * GIB <= uses[look] <= 6 * GIB


def test_a_step_that_was_not_seen_to_its_end_counts_in_full() -> None:
    """Each is seen twice, at its beginning and when it has taken a tenth of its memory."""
    uses = [GIB * (number + part) for number in range(1, 9) for part in (0, 0.1)]
    steps = [number for number in range(1, 9) for _ in range(2)]
    look = stopped(uses, steps)
    assert look is not None and uses[look] <= 6.1 * GIB


def test_what_is_taken_once_or_comes_and_goes_is_no_climb() -> None:
    steps = list(range(1, 401))
    assert stopped([6 * GIB, 7 * GIB, 7.5 * GIB] + [7.5 * GIB] * 300) is None
    assert stopped([5 * GIB + (number * 7 + 3) % 4 * 0.8 * GIB for number in range(300)], steps) is None


def test_it_looks_more_often_when_it_is_near() -> None:
    rule = StopRule(SHARE)
    for number in range(5):
        rule.reached(number / 10, room(GIB), 1)
    usual = rule.interval
    for number in range(5, 10):
        rule.reached(number / 10, room(7 * GIB), 1)
    near = rule.interval
    for number in range(10, 15):
        rule.reached(number / 10, room(7 * GIB + number * 20 * MIB), 1)
    assert rule.interval < near < usual
