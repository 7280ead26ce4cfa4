"""What the user says of the data, and of the model."""

from __future__ import annotations

import pytest

from faultlens.errors import FaultlensError
from faultlens.forecasting.data_spec import Field, parse
from faultlens.forecasting.subject import function_of


def test_fields_and_buffers():
    spec = parse("image=float32[224, 224,3] y=int32[]<1000 shuffle=10000 prefetch=4 cache=5")
    assert spec.fields == {"image": Field("float32", (224, 224, 3), None), "y": Field("int32", (), 1000)}
    assert (spec.shuffle, spec.prefetch, spec.cache) == (10000, 4, 5)


def test_nothing_said_is_nothing_known():
    spec = parse("")
    assert spec.fields == {} and spec.prefetch is None and spec.shuffle == 0


@pytest.mark.parametrize(
    "text", ["image", "image=float33[2]", "image=float32", "x=float32[a]", "shuffle=-3", "=[]", "x=[2]"]
)
def test_what_says_nothing_is_told_with_an_example(text):
    with pytest.raises(FaultlensError, match=r"float32\[224,224,3\]"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "unit"), [("shuffle=-1", "examples"), ("cache=all", "examples"), ("prefetch=-1", "batches")]
)
def test_buffers_are_counted(text, unit):
    with pytest.raises(FaultlensError, match=f"takes a number of {unit}: {text!r} has none"):
        parse(text)


def test_a_function_is_named_with_its_file(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("")
    assert function_of(f"{file}:build") == (str(file), "build", 0)


@pytest.mark.parametrize("text", ["train.py", "train.py:", ":build", "missing.py:build", "train.py:not a name"])
def test_what_names_no_function_is_told(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(FaultlensError, match=r"train\.py:build_model"):
        function_of(text)
