"""Can what is stored in a variable be a pointer to somebody else's memory? Where its type holds none, it is a copy."""

from __future__ import annotations

import re

from faultlens.custom_op.check.interpret.buffer_symbols import Element
from faultlens.custom_op.check.interpret.call_symbols import Field, Item
from faultlens.custom_op.check.interpret.program import Program
from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.syntax.functions import Class

VIEWS = re.compile(
    r"\b(?:string_view|StringPiece|[sS]pan|(?:Mutable)?ArraySlice|TTypes|(?:Tensor)?Map|TensorRef|reference_wrapper"
    r"|(?:const_)?iterator)\b"
)
_POINTS = re.compile(rf"[*&]|\bauto\b|\bu?intptr_t\b|{VIEWS.pattern}")


def keeps_pointers(program: Program, type_: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an object of the type has a pointer or a view in it. Types of others are taken for owners: containers,
    strings and tensors are."""
    if _POINTS.search(type_):
        return True
    for name in set(re.findall(r"\w+", type_)) - seen:
        inner = [program.aliases[name]] if name in program.aliases else []
        if (class_ := program.class_(name)) is not None:
            inner += [member.type for member in class_.members.values()]
        if any(keeps_pointers(program, each, seen | {name}) for each in inner):
            return True
    return False


def type_at(program: Program, target: Symbol, root: str) -> str:
    """The type of `root.field` or `root[i]`, where `root` is the type of the variable; "" where it is not known."""
    match target:
        case Element(outer) | Item(outer):
            type_ = type_at(program, outer, root)
            return _element(program.aliases.get(type_, type_))
        case Field(outer, name):
            class_ = _class_in(program, type_at(program, outer, root))
            member = class_.members.get(name) if class_ is not None else None
            return member.type if member is not None else ""
    return root


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


def _class_in(program: Program, type_: str) -> Class | None:
    """Frame of std::unique_ptr<Frame>, and of another name for it."""
    names = re.findall(r"\w+", type_)
    names += [name for each in names for name in re.findall(r"\w+", program.aliases.get(each, ""))]
    return next((class_ for name in names if (class_ := program.class_(name)) is not None), None)
