"""`faultlens.forecast(model, batch_size)`: the forecast for programs and notebooks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

from faultlens.errors import FaultlensError
from faultlens.forecasted import Forecast
from faultlens.forecasting import forecast as steps
from faultlens.forecasting.account import SaveFormat, Wishes
from faultlens.forecasting.bound import bound_of
from faultlens.forecasting.data_spec import parse
from faultlens.forecasting.subject import described_model, function_of, subject_of
from faultlens.sizes import from_words


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
    if batch_size < 1:
        raise FaultlensError(f"A batch of {batch_size} is none.", "Give a positive number.")
    if save not in get_args(SaveFormat):
        raise FaultlensError(f"There is no format {save!r}.", f"Say one of {', '.join(get_args(SaveFormat))}.")
    wishes = Wishes(
        batch=batch_size,
        python=sys.executable,
        bound=bound_of(str(limit)),
        optimizer=optimizer,
        save=save,
        spec=parse(data_spec),
        data=function_of(data) if data else None,
        memory=None if memory is None else from_words(str(memory)),
    )
    if isinstance(model, str):
        return steps.forecast(subject_of(model), wishes, lambda _: None)
    with tempfile.TemporaryDirectory(prefix="faultlens-forecast-") as folder:
        subject = described_model(model, Path(folder), [path for path in sys.path if path])
        return steps.forecast(subject, wishes, lambda _: None)
