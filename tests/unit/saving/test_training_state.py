"""The state of a training goes through JSON and comes back as it was."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

np = pytest.importorskip("numpy")

from faultlens.saving import training_state  # noqa: E402 (it needs NumPy)


class Variable:
    """As far as one of Keras' is used here."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    @property
    def shape(self) -> Any:
        return self.value.shape

    def assign(self, value: Any) -> None:
        assert value.dtype == self.value.dtype
        self.value = value

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.value


class Model:
    def __init__(self, *values: Any) -> None:
        self.metrics_variables = [Variable(value) for value in values]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state))
    return decoded


def draw() -> list[float]:
    return [random.random(), random.gauss(), np.random.random(), np.random.standard_normal()]


def test_random_numbers_go_on_where_they_were() -> None:
    draw()  # one of a pair of normal numbers is kept for the next time
    state = through_json(training_state.capture(epoch=3, step=7))
    after = draw()
    assert draw() != after
    assert training_state.restore(state) == (3, 7)
    assert draw() == after


def test_capturing_draws_nothing() -> None:
    before = random.getstate(), np.random.get_state(legacy=False)
    training_state.capture()
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], before[1]["state"]["key"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool"])
def test_metrics_come_back_bit_by_bit(dtype: str) -> None:
    values = np.array([[0.1, 2**-24, 1.0], [np.nan, -np.inf, -0.0]]).astype("float64")
    values = np.nan_to_num(values, neginf=0).astype(dtype) if dtype in ("int32", "bool") else values.astype(dtype)
    state = through_json(training_state.capture(Model(values, values[0, 0]), step=1))
    other = Model(np.zeros_like(values), np.zeros_like(values[0, 0]))
    training_state.restore_metrics(state, other)
    assert [each.value.tobytes() for each in other.metrics_variables] == [values.tobytes(), values[0, 0].tobytes()]


@pytest.mark.parametrize("other", [Model(), Model(np.zeros(3, "float32")), Model(np.zeros(2, "float64"))])
def test_other_metrics_are_left_alone(other: Model) -> None:
    state = training_state.capture(Model(np.ones(2, "float32")), step=1)
    training_state.restore_metrics(state, other)
    assert not any(each.value.any() for each in other.metrics_variables)


def test_metrics_are_kept_of_an_epoch_that_was_begun_and_if_they_are_small() -> None:
    assert "metrics" not in training_state.capture(Model(1.0))
    large = np.zeros(training_state.MOST_METRIC_VALUES + 1)
    assert training_state.capture(Model(large), step=1)["metrics"] == []


def test_more_is_kept_as_it_is() -> None:
    assert training_state.capture(best=0.5)["best"] == 0.5
    assert training_state.capture(global_step=8)["global_step"] == 8
    assert training_state.capture()["global_step"] is None


@pytest.mark.parametrize(
    "state", [{}, {"epoch": 1}, {"version": 2, "epoch": 1, "step": 0, "random": {}}, {"version": 1, "epoch": "1"}]
)
def test_anything_else_is_no_state(state: dict[str, Any]) -> None:
    assert not training_state.is_training_state(state)
    with pytest.raises(ValueError, match="not the state of a training"):
        training_state.restore(state)
