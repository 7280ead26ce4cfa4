"""Long lines of scripts are broken where people would break them, and mean the same."""

from __future__ import annotations

import ast

import pytest

from faultlens.op_model.wrapping import WIDTH, wrapped

LONG = (
    "tf.raw_ops.FusedPadConv2D("
    + ", ".join(f"argument_{number}=tf.zeros([1, {number}])" for number in range(9))
    + ")\n"
)


def test_a_long_call() -> None:
    text = wrapped(f"import tensorflow as tf\nif True:\n    x = {LONG}")
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert text.splitlines()[2] == "    x = tf.raw_ops.FusedPadConv2D("
    assert text.splitlines()[3].startswith("        argument_0=tf.zeros([1, 0]), argument_1=")
    assert text.splitlines()[-1] == "    )"


def test_calls_in_calls() -> None:
    text = wrapped(f"outer(first, {LONG.strip()}, last)")
    assert all(len(line) <= WIDTH for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        f"# {'long comment ' * 20}\n",
        f"x = {'a' * 200!r}\n",
        f"f('(,' * 3, {'b' * 120!r}, '),')\n",
        f"x = ({'a' * 120!r},)\n",
        f"def f({', '.join(f'parameter_{n}=({n},)' for n in range(12))}):\n    return {{{', '.join('1234')}}}\n",
        f"[x for x in range(10) if {' and '.join(f'x != {n}' for n in range(30))}]\n",
        f"print({', '.join(f'f(*a{n}, **b{n})' for n in range(20))})\n",
        f"x = '''\n{'(' * 150}\n'''\n",
        f"assert (yes, {'c' * 110!r})[0] and no[{'d' * 30!r}]\n",
    ],
)
def test_the_program_stays_the_same(text: str) -> None:
    assert ast.dump(ast.parse(wrapped(text))) == ast.dump(ast.parse(text))


def test_what_is_no_program_stays_as_it_is() -> None:
    text = "(" * 150
    assert wrapped(text) == text
