"""The variables on the failing line in words: "n = 7", "buf = float32 [3, 4]"."""

from __future__ import annotations

import re

from faultlens.records.crash import Frame, Variable
from faultlens.text.safe import one_line

_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_MOST = 6


def on_line(frame: Frame, text: str) -> list[str]:
    """Those that the line names, in its order."""
    known = {variable.name: variable for variable in frame.variables}
    told = [(name, in_words(known[name])) for name in dict.fromkeys(_NAME.findall(text)) if name in known]
    return [f"{one_line(name, 64)} = {words}" for name, words in told if words][:_MOST]


def in_words(variable: Variable) -> str:
    if variable.type in ("int", "float"):
        return f"{variable.value:.6g}" if isinstance(variable.value, float) else str(variable.value)
    if variable.type == "bool":
        return str(bool(variable.value))
    if variable.type == "None":
        return "None"
    if variable.shape is not None:
        return f"{variable.dtype or 'array'} {list(variable.shape)}"
    if variable.numbers is not None:
        return str(list(variable.numbers))
    return f"{one_line(variable.type, 40)} of length {variable.length}" if variable.length is not None else ""
