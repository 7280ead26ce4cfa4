"""From peaks of short runs to a forecast."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faultlens.forecasting.estimate import HORIZON, Series, estimate, largest_batch
from faultlens.text.sizes import MIB

BASE = 200 * MIB


def run(batch: int, *peaks: int) -> Series:
    return Series(batch, tuple(peak * MIB for peak in peaks))


def flat(batch: int, steps: int, each: float, above: int = 300) -> Series:
    return run(batch, *[round(above + each * batch)] * steps)


def test_what_was_measured_is_what_is_forecast():
    found = estimate([flat(64, 24, 2), flat(256, 8, 2)], 256, BASE)
    assert found.measured
    assert found.peak == (300 + 512) * MIB
    assert found.low < found.peak < found.high


def test_a_larger_batch_is_reached_by_the_slope_of_the_two_largest_runs():
    found = estimate([flat(64, 24, 2), flat(128, 8, 2)], 512, BASE)
    assert not found.measured
    assert found.per_example == 2 * MIB
    assert found.peak == (300 + 1024) * MIB


def test_the_further_it_reaches_the_wider_it_is():
    runs = [flat(64, 24, 2), flat(128, 8, 2)]
    widths = [
        (found.high - found.low) / found.peak for found in (estimate(runs, size, BASE) for size in (128, 256, 1024))
    ]
    assert widths[0] < widths[1] < widths[2]


def test_what_many_small_steps_showed_is_added_to_a_few_large_ones():
    creeping = run(64, *(300 + 5 * step for step in range(HORIZON)))
    found = estimate([creeping, flat(256, 10, 2)], 256, BASE)
    assert found.peak == (300 + 512 + 5 * 20) * MIB


def test_the_upper_bound_reaches_further_than_the_runs():
    creeping = [run(64, *(300 + 5 * step for step in range(HORIZON)))]
    quiet = [flat(64, HORIZON, 0, 445)]
    assert estimate(creeping, 64, BASE).high > estimate(quiet, 64, BASE).high


def test_growth_that_no_run_shows_is_known_from_sizes():
    """A process that has had as much before, and kept it, does not grow."""
    hidden = [flat(16, 16, 0), flat(64, 10, 0)]
    assert estimate(hidden, 1024, BASE, known=MIB).peak == (300 + 960) * MIB
    assert largest_batch(hidden, BASE, 8192 * MIB, 1 << 20, known=MIB) < 8192
    seen = [flat(64, 24, 2), flat(128, 8, 2)]
    assert estimate(seen, 512, BASE, known=9 * MIB) == estimate(seen, 512, BASE)  # of which most need not be kept


def test_one_run_alone_grows_from_what_was_there_before():
    found = estimate([run(8, 280)], 16, BASE)
    assert found.per_example == 10 * MIB
    assert found.peak >= 360 * MIB


def test_the_largest_batch_fits_and_the_next_one_does_not():
    runs = [flat(64, 24, 2), flat(256, 8, 2)]
    found = largest_batch(runs, BASE, 2048 * MIB, 1 << 20)
    assert found is not None
    assert estimate(runs, found, BASE).high <= 2048 * MIB < estimate(runs, found + 1, BASE).high


def test_no_batch_fits_where_the_model_does_not():
    assert largest_batch([flat(1, 8, 2)], BASE, 100 * MIB, 1 << 20) is None


@given(
    st.lists(
        st.tuples(st.integers(1, 4096), st.lists(st.integers(1, 1 << 40), min_size=1, max_size=40)),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0],
    ),
    st.integers(1, 1 << 16),
    st.integers(0, 1 << 40),
)
def test_whatever_was_measured_the_bounds_are_in_order(measured, batch, base):
    runs = [Series(size, tuple(sorted(peaks))) for size, peaks in measured]  # a peak never sinks
    found = estimate(runs, batch, base)
    assert base <= found.low <= found.peak <= found.high
    assert found.per_example >= 0
