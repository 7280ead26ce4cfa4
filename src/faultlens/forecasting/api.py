"""`faultlens.forecast(model, batch_size)`: the forecast for programs and notebooks."""

from __future__ import annotations

import operator
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

from faultlens.errors import FaultlensError
from faultlens.forecasting import forecast as steps
from faultlens.forecasting.account import Options, SaveFormat
from faultlens.forecasting.bound import bound_of
from faultlens.forecasting.data_spec import parse
from faultlens.forecasting.subject import described_model, function_of, subject_of
from faultlens.records.forecast import Forecast
from faultlens.text.sizes import from_words


def forecast(
    model: Any,
    batch_size: int,
    *,
    limit: str | int = "auto",
    data_spec: str = "",
    data: str | None = None,
    optimizer: str | None = None,
    save: SaveFormat = ".keras",
    memory: str | int | None = None,
) -> Forecast:
    """How much memory training, evaluating, using and saving the model will take, and whether that fits.

    `model` is a Keras model, compiled as it will be trained, or "train.py:build_model". It is made anew in other
    processes, trained there for a few steps, and stays as it is here. `limit` is "auto", a size or a GPU, `data_spec`
    says what the model does not ("tokens=int32[128]<30000 shuffle=10000"), `data` names a function that gets the batch
    size and returns the dataset, `memory` is what the processes may take."""
    if save not in get_args(SaveFormat):
        raise FaultlensError(f"There is no format {save!r:.60}.", f"Say one of {', '.join(get_args(SaveFormat))}.")
    options = Options(
        batch=_batch(batch_size),
        python=sys.executable,
        bound=bound_of(str(limit)),
        optimizer=None if optimizer is None else _text("optimizer", optimizer, "the name of one: 'adamw'"),
        save=save,
        spec=parse(_text("data_spec", data_spec, "a text: 'tokens=int32[128]<30000 shuffle=10000'")),
        data=None if data is None else function_of(_text("data", data, "'train.py:make_dataset'"), given=1),
        memory=None if memory is None else _size(memory),
    )
    if isinstance(model, str):
        return steps.forecast(subject_of(model), options, lambda _: None)
    _check_model(model)
    with tempfile.TemporaryDirectory(prefix="faultlens-forecast-") as folder:
        subject = described_model(model, Path(folder), [path for path in sys.path if path])
        return steps.forecast(subject, options, lambda _: None)


def _check_model(model: Any) -> None:
    keras = sys.modules.get("keras")  # where that was never imported, nothing is a model
    if keras is not None and isinstance(model, keras.Model):
        return
    name = getattr(model, "__name__", "")
    called = f", what {name}() returns," if callable(model) and name.isidentifier() else ""
    raise FaultlensError(
        f"{_short(model)} is not a Keras model.",
        f"Give one{called} or name a function that builds one: faultlens.forecast('train.py:build_model', 64).",
    )


def _batch(value: Any) -> int:
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)  # NumPy's are welcome
    except TypeError:
        number = 0
    if number < 1:
        raise FaultlensError(
            f"batch_size must be a whole number from 1 on, not {_short(value)}.", "Say faultlens.forecast(model, 64)."
        )
    return number


def _size(value: Any) -> int:
    size = None if isinstance(value, bool) else from_words(str(value))
    if not size:
        raise FaultlensError(f"memory must be a size, not {_short(value)}.", "Say it as '4GiB', or in bytes.")
    return size


def _text(name: str, value: Any, wanted: str) -> str:
    if not isinstance(value, str):
        raise FaultlensError(f"{name} must be a text, not {_short(value)}.", f"Give {wanted}.")
    return value


def _short(value: Any) -> str:
    return repr(value)[:60] if isinstance(value, (str, int, float, type(None))) else f"a {type(value).__name__}"
