"""What is known of a function of a file by reading it, before TensorFlow is imported."""

from __future__ import annotations

import pytest

from faultlens.forecasting.guest.names import problem

GUARD = "if __name__ == '__main__':\n    def build(): ...\n"


def read(tmp_path, text, function="build", given=0):
    file = tmp_path / "train.py"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return problem(str(file), function, given)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def other(): ...", "train.py has no function build; it has other."),
        ("def biuld(): ...", "Did you mean biuld?"),
        ("x = 1", "train.py has no function build."),
        ("class Trainer:\n    def build(self): ...", "has no function build; it has Trainer."),
        ("def main():\n    def build(): ...", "has no function build"),
        ("def main():\n    build = 1", "has no function build"),
        (GUARD, "it is defined under `if __name__ == '__main__':`"),
        ("def build(:", "train.py is not valid Python: line 1:"),
        (b"\x00\x01", "train.py is not valid Python:"),
        (b"x = '\xff\xfe'", "train.py is not valid Python:"),
        ("def build(width, depth=3, *, classes): ...", "needs more: width, classes."),
    ],
)
def test_what_cannot_be_called_is_refused(tmp_path, text, sentence):
    assert sentence in read(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "def build(): ...",
        "def build(width=3, *more, deep=False, **rest): ...",
        "class build: ...",
        "build = lambda: None",
        "(build := print)",
        "from models import build",
        "from models import one as build",
        "from models import *",
        "import build.inner",
        "try:\n    def build(): ...\nexcept ImportError:\n    pass",
        "if True:\n    build, other = print, 1",
        "if __name__ != '__main__':\n    build = print",
        f"{GUARD}else:\n    build = print",
        "for build in [print]: ...",
        "def define():\n    global build\n    build = print",
        "globals()['build'] = print",
        "import sys\nsetattr(sys.modules[__name__], 'build', print)",
        "def __getattr__(name): return print",
        "@wrapped\ndef build(width): ...",  # who knows what it takes
        "def build(width): ...\nbuild = wrapped(build)",
        "x = " + "+".join(["1"] * 3000) + "\nbuild = print",
    ],
)
def test_what_may_be_there_is_left_to_the_import(tmp_path, text):
    assert read(tmp_path, text) is None


def test_a_function_of_data_takes_the_batch_size(tmp_path):
    assert "takes no argument" in read(tmp_path, "def data(): ...", "data", given=1)
    assert "needs more: split" in read(tmp_path, "def data(batch, split): ...", "data", given=1)
    for text in ("def data(batch): ...", "def data(*all): ...", "def data(batch, split='train'): ..."):
        assert read(tmp_path, text, "data", given=1) is None


def test_a_file_that_cannot_be_read(tmp_path):
    assert "train.py cannot be read:" in problem(str(tmp_path / "train.py"), "build", 0)
