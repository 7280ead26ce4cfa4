"""What follows from measured runs: peaks, parts, verdicts."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from faultlens.forecasting import judge
from faultlens.forecasting.account import Account, Options
from faultlens.forecasting.data_spec import DataSpec
from faultlens.forecasting.estimate import Series
from faultlens.forecasting.runs import Ran
from faultlens.records.forecast import Advice, Bound, Forecast, Point
from faultlens.report.forecast import render
from faultlens.text.sizes import GIB, MIB

PARTS = ("weights", "gradients", "optimizer", "activations", "input_pipeline", "runtime")
MODEL = {
    "name": "functional",
    "weights": 100 * MIB,
    "trainable": 100 * MIB,
    "optimizer": 200 * MIB,
    "optimizer_name": "adam",
    "accumulates": 1,
    "outputs": 1 * MIB,
    "policy": "float32",
    "mixed": False,
    "jit": False,
    "parameters": 25 * MIB,
}
LARGEST = {
    "built": 300 * MIB,
    "example": MIB // 2,
    "model": MODEL,
    "train": {"peaks": [1600 * MIB] * 10, "seconds": [1.0] * 10, "after": 900 * MIB},
}
SERIES = [Series(64, (1000 * MIB,) * 16), Series(256, (1600 * MIB,) * 10)]
INFERRED = Ran(
    256,
    {"built": 300 * MIB, "predict": {"peaks": [700 * MIB]}, "evaluate": {"peaks": [720 * MIB]}},
    killed="",
    highest=720 * MIB,
)


def account(limit: int = 4 * GIB, batch: int = 256, spec: DataSpec = DataSpec({}), **more: object) -> Account:  # noqa: B008
    known = Account(
        subject="train.py:build",
        options=Options(batch=batch, python="python", bound=Bound(limit=limit, what="as given"), spec=spec),
        series=SERIES,
        base=300 * MIB,
        largest=LARGEST,
        saves={".keras": {"peak": 1000 * MIB, "before": 850 * MIB}},
        inference=INFERRED,
        points=[Point(phase="training", batch=256, steps=10, peak=1600 * MIB, seconds_per_step=0.5)],
        too_much=None,
    )
    return known._replace(**more)  # type: ignore[arg-type]


def test_parts_add_up_and_what_is_known_is_told_as_it_is():
    found = judge.forecast(account())
    for peak in (found.training, found.evaluation, found.inference, found.saving.peak):
        assert sum(getattr(peak.parts, name) for name in PARTS) == peak.peak
    assert found.training.parts.weights == 100 * MIB
    assert found.training.parts.optimizer == 200 * MIB
    assert found.training.parts.input_pipeline == 256 * (MIB // 2) * 3
    assert found.training.parts.activations == 800 * MIB - found.training.parts.input_pipeline  # what grows
    assert found.inference.parts.optimizer == 0


def test_a_buffer_for_shuffling_is_added_to_what_was_measured():
    plain, shuffled = judge.forecast(account()), judge.forecast(account(spec=DataSpec({}, shuffle=1000)))
    assert shuffled.training.peak - plain.training.peak == 500 * MIB
    assert shuffled.training.parts.input_pipeline - plain.training.parts.input_pipeline == 500 * MIB
    assert shuffled.saving.peak.peak - plain.saving.peak.peak == 500 * MIB
    assert shuffled.inference.peak == plain.inference.peak
    assert shuffled.largest_batch < plain.largest_batch


@pytest.mark.parametrize(
    ("limit", "verdict"), [(4 * GIB, "fits"), (1620 * MIB, "too close to tell"), (1200 * MIB, "does not fit")]
)
def test_it_fits_when_all_of_the_range_does(limit, verdict):
    assert judge.forecast(account(limit)).training.verdict == verdict


def test_what_was_seen_to_take_more_takes_at_least_that():
    killed = Ran(1024, {}, killed="memory", highest=9 * GIB)
    found = judge.forecast(account(batch=1024, too_much=killed, limit=8 * GIB))
    assert found.training.how == "extrapolated"
    assert found.training.low >= 9 * GIB
    assert found.training.verdict == "does not fit"
    assert found.largest_batch < 1024


def test_a_larger_batch_is_extrapolated_for_inference_too():
    found = judge.forecast(account(batch=512))
    assert found.inference.how == "extrapolated"
    assert found.inference.peak == (300 + 2 * 400) * MIB


def test_saving_holds_what_training_held_and_its_own():
    found = judge.forecast(account())
    assert found.saving.extra == 150 * MIB
    assert found.saving.peak.peak == (900 + 150) * MIB


def test_no_save_is_told_where_it_failed():
    assert judge.forecast(account(saves={".keras": {"error": "OSError: disk full"}})).saving is None


def test_what_could_not_be_measured_is_told():
    found = judge.forecast(account(inference=None))
    assert found.inference is None and "evaluation and inference could not be measured" in found.assumptions


def text_of(found: Forecast, verbose: bool = False) -> str:
    stream = io.StringIO()
    render(found, Console(file=stream, width=80, color_system=None), verbose)
    return stream.getvalue()


def test_the_page_is_no_wider_than_the_screen_and_names_all():
    text = text_of(judge.forecast(account(1620 * MIB)), verbose=True)
    assert text.startswith("too close to tell: training with a batch of 256 needs 1.6 GiB")
    assert all(len(line) <= 80 for line in text.splitlines())
    for word in ("weights", "inference", "saving", "│ limit", "a batch of 2", "500 ms a step"):
        assert word in text


def test_advice_is_shown_with_its_gain():
    import msgspec

    found = msgspec.structs.replace(
        judge.forecast(account(1200 * MIB)),
        advice=(Advice(title="smaller \x1b[31mbatches", detail="half", gain=500 * MIB, how="measured", fits=True),),
    )
    text = text_of(found)
    assert "−500 MiB" in text and ", then it fits" in text and "\x1b" not in text
