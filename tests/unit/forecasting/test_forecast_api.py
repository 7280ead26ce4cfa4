"""`faultlens.forecast` with what it cannot take: one sentence, and what to give instead."""

from __future__ import annotations

import pytest

import faultlens
from faultlens.errors import FaultlensError


def build_model():
    raise AssertionError("nobody calls it")


@pytest.mark.parametrize(
    ("model", "batch", "more", "sentence"),
    [
        (None, 3, {}, r"None is not a Keras model\. Give one or name a function .*'train\.py:build_model'"),
        (42, 3, {}, "42 is not a Keras model"),
        ([1], 3, {}, "a list is not a Keras model"),
        (build_model, 3, {}, r"a function is not a Keras model\. Give one, what build_model\(\) returns, or name"),
        ("train.py", 3, {}, "'train.py' names no function"),
        ("missing.py:build", 3, {}, r"There is no file missing\.py"),
        ("\0.py:build", 3, {}, "There is no file"),
        (f"{__file__}c:build", 3, {}, "There is no file"),
        (None, "x", {}, "batch_size must be a whole number from 1 on, not 'x'"),
        (None, 0, {}, "from 1 on, not 0"),
        (None, 2.5, {}, "from 1 on, not 2.5"),
        (None, True, {}, "from 1 on, not True"),
        (None, None, {}, "from 1 on, not None"),
        (None, 3, {"limit": "much"}, "'much' is not a limit"),
        (None, 3, {"limit": None}, "'None' is not a limit"),
        (None, 3, {"memory": "lots"}, "memory must be a size, not 'lots'"),
        (None, 3, {"memory": -1}, "memory must be a size, not -1"),
        (None, 3, {"data": build_model}, "data must be a text, not a function"),
        (None, 3, {"data": "x"}, "'x' names no function"),
        (None, 3, {"data_spec": {"x": 3}}, "data_spec must be a text, not a dict"),
        (None, 3, {"optimizer": object()}, "optimizer must be a text, not a object"),
        (None, 3, {"save": ".zip"}, r"There is no format '\.zip'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(model, batch, more, sentence):
    with pytest.raises(FaultlensError, match=sentence):
        faultlens.forecast(model, batch, **more)


def test_a_notebook_is_no_python_file(tmp_path):
    (tmp_path / "train.ipynb").write_text("{}")
    with pytest.raises(FaultlensError, match="is not a Python file"):
        faultlens.forecast(f"{tmp_path}/train.ipynb:build_model", 3)
