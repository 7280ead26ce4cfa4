"""Can what is stored in a variable be a pointer to somebody else's memory? Where its type holds none, it is a copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.syntax.functions import Class

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.unit import Unit

VIEWS = re.compile(
    r"\b(?:string_view|StringPiece|[sS]pan|(?:Mutable)?ArraySlice|TTypes|(?:Tensor)?Map|TensorRef|reference_wrapper"
    r"|(?:const_)?iterator)\b"
)
_POINTS = re.compile(rf"[*&]|\bauto\b|\bu?intptr_t\b|{VIEWS.pattern}")


def keeps_pointers(unit: Unit, type_: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an object of the type has a pointer or a view in it. Types of others are taken for owners: containers,
    strings and tensors are."""
    if _POINTS.search(type_):
        return True
    for name in set(re.findall(r"\w+", type_)) - seen:
        inner = [unit.aliases[name]] if name in unit.aliases else []
        if (class_ := unit.class_(name)) is not None:
            inner += [member.type for member in class_.members.values()]
        if any(keeps_pointers(unit, each, seen | {name}) for each in inner):
            return True
    return False


def type_at(unit: Unit, place: Symbol, root: str) -> str:
    """The type of `root.field` or `root[i]`, where `root` is the type of the variable; "" where it is not known."""
    if place[0] not in ("elem", "field", "part") or not isinstance(place[1], tuple):
        return root
    outer = type_at(unit, place[1], root)
    if place[0] != "field":
        return _element(unit.aliases.get(outer, outer))
    class_ = _class_in(unit, outer)
    member = class_.members.get(str(place[2])) if class_ is not None else None
    return member.type if member is not None else ""


def _element(type_: str) -> str:
    """float of std::vector<float>, Row of std::map<int, Row>, float of float*."""
    if type_.endswith("*"):
        return type_[:-1]
    name, _, rest = type_.partition("<")
    given, depth = [""], 0
    for letter in rest.rpartition(">")[0]:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and not depth:
            given.append("")
        else:
            given[-1] += letter
    return given[1 if name.endswith("map") and len(given) > 1 else 0].strip() or type_


def _class_in(unit: Unit, type_: str) -> Class | None:
    """Frame of std::unique_ptr<Frame>, and of another name for it."""
    names = re.findall(r"\w+", type_)
    names += [name for each in names for name in re.findall(r"\w+", unit.aliases.get(each, ""))]
    return next((class_ for name in names if (class_ := unit.class_(name)) is not None), None)
