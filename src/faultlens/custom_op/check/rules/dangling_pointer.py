from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import (
    Access,
    AddressOfName,
    Array,
    Element,
    Input,
    Output,
    Pointer,
    Tensor,
    Vector,
    View,
    is_tensor,
)
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.keeping import VIEWS, keeps_pointers, type_at
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.functions import Function, declared_type
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.records.op_finding import OpFinding

# Functions that return a new string each time.
_TEMPORARY = re.compile(
    r"(?:\b(?:StrCat|StrFormat|Printf|to_string|DebugString|ToString|substr|str|StrJoin|AsciiStrToLower|AsciiStrToUpper"
    r"|SerializeAsString|ShortDebugString|string|JoinPath|Basename)\s*\((?:[^()]|\([^()]*\))*\)|\((?:[^()]|\([^()]*\))*\s\+\s(?:[^()]|\([^()]*\))*\))"
    r"\s*\.\s*(?:c_str|data)\s*\(\)$"
)
_TEXT_VIEWS = re.compile(r"\b(?:string_view|StringPiece)\b")
_NEW_STRING = re.compile(
    r"\b(?:StrCat|StrFormat|Printf|to_string|StrJoin|AsciiStrToLower|AsciiStrToUpper)\s*\(.*\)$|^std::string\(.*\)$|\bstd::string\([^()]*\)\s*\+",
    re.DOTALL,
)


_VIEW_OF_CALL = re.compile(r"(\w+)\(.*\)\s*\.\s*(?:flat|vec|matrix|tensor|scalar|tensor_data)\b", re.DOTALL)


class DanglingPointer(Rule):
    """A pointer that outlives what it points to. `StrCat(…).c_str()` points into a string that is gone at the end of
    the statement. The data of an input or of a temporary tensor is gone when `Compute` returns: kept in a member or a
    static variable, the next call reads memory that belongs to somebody else by then, mostly without a crash.

    Keep the owner: `std::string text = StrCat(…);`, or a member `Tensor saved_` under a lock."""

    code = "OP115"
    slug = "dangling-pointer"
    severity = "error"
    headline = "a pointer is kept longer than what it points to"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in summary.of("assign") if summary.computes else ():
            value = event.by[0] if event.by else UNKNOWN
            kind = _type_of_target(event, summary)
            what = _gone(value) or (_viewed(value) if VIEWS.search(kind) else "")
            if what and keeps_pointers(summary.unit, kind):
                yield self.found(
                    event,
                    f"`{event.name}` keeps a pointer to {what}, which is gone when the call returns",
                    "keep the tensor itself, under a lock",
                    "mutex_lock lock(mu_);\nsaved_ = ctx->input(0);  // a Tensor shares the buffer and keeps it alive",
                    summary=summary,
                )
        functions = {id(event.point.function): event.point.function for event in summary.events}
        functions[id(summary.function)] = summary.function
        for function in functions.values():
            yield from self._temporaries(function, summary)
            yield from self._inner_scope(function, summary)
            yield from self._tensor_of_call(function, summary)
            yield from self._locals_returned(function, summary)
            yield from self._local_in_member(function, summary)

    def _temporaries(self, function: Function, summary: FunctionSummary) -> Iterator[OpFinding]:
        for node in function.body.find("init_declarator", "assignment_expression"):
            value = node.get("value") or node.get("right")
            target = node.get("declarator") or node.get("left")
            if value is None or target is None or value.kind == "argument_list":
                continue
            kind = declared_type(node.parent, target) if node.kind == "init_declarator" and node.parent else ""
            text = " ".join(value.text.split())
            pointer = "*" in kind or (not kind and target.kind in ("identifier", "field_expression"))
            if (
                (pointer or "auto" in kind)
                and "&" not in kind
                and _TEMPORARY.search(text)
                and not re.match(r"(?:std::)?string\b", kind)
            ) or (_TEXT_VIEWS.search(kind) and _NEW_STRING.search(text) and not text.endswith(".c_str()")):
                yield self._temporary(value, name_of(target), summary)

    def _temporary(self, node: Node, name: str, summary: FunctionSummary) -> OpFinding:
        return self.found(
            node,
            f"`{name}` points into a temporary string that is gone at the end of this statement",
            "give the string a name",
            "const std::string text = …;\nconst char* p = text.c_str();",
            summary=summary,
        )

    def _tensor_of_call(self, function: Function, summary: FunctionSummary) -> Iterator[OpFinding]:
        """auto v = Scaled(x).flat<float>(): the tensor is gone at the end of the statement."""
        for node in function.body.find("init_declarator"):
            value = node.get("value")
            found = _VIEW_OF_CALL.match(value.text) if value is not None else None
            made = summary.unit.function(found[1]) if found else None
            by_value = made is not None and made.returns.strip() in ("Tensor", "tensorflow::Tensor")
            if value is not None and found is not None and by_value and not value.text.rstrip().endswith("()()"):
                yield self.found(
                    value,
                    f"the tensor that `{found[1]}` returns is gone at the end of this statement, with its data",
                    "give the tensor a name",
                    f"const Tensor kept = {found[1]}(…);",
                    summary=summary,
                )

    def _inner_scope(self, function: Function, summary: FunctionSummary) -> Iterator[OpFinding]:
        """float* p; { std::vector<float> v(n); p = v.data(); } … p[i]"""
        for node in function.body.find("assignment_expression"):
            left, right = node.get("left"), node.get("right")
            if left is None or right is None or left.kind != "identifier" or node.operator != "=":
                continue
            found = re.fullmatch(
                r"&?(\w+)(?:\.(?:data|c_str)\(\)|\.flat<[^<>]*>\(\)\.data\(\)|\[0\])?", "".join(right.text.split())
            )
            if found is None or (right.text.isidentifier()):
                continue
            owner = _declared_at(function.body, found[1], node)
            holder = _declared_at(function.body, left.text, node)
            if owner is None or holder is None:
                continue
            (inner, inner_node), (outer, _) = owner, holder
            kind = declared_type(inner_node, inner_node.all("declarator")[0])
            if "&" in kind or "*" in kind or "static" in kind or not _owns(kind) or not _within(inner, outer):
                continue
            if any(each.text == left.text and each.start > inner.end for each in function.body.find("identifier")):
                yield self.found(
                    node,
                    f"`{left.text}` outlives `{found[1]}`, whose memory it points to",
                    f"declare `{found[1]}` where `{left.text}` is declared",
                    summary=summary,
                    related=[(f"`{found[1]}` is declared in this block", inner_node)],
                )

    def _local_in_member(self, function: Function, summary: FunctionSummary) -> Iterator[OpFinding]:
        """std::string text; … name_ = text.c_str(); in any function of the class, the constructor too."""
        owner = summary.unit.class_(function.of_class) or summary.owner
        for node in function.body.find("assignment_expression"):
            left, right = node.get("left"), node.get("right")
            name = left.text.removeprefix("this->") if left is not None else ""
            member = owner.members.get(name) if owner is not None else None
            if right is None or member is None or node.operator != "=":
                continue
            views = _TEXT_VIEWS.search(member.type) is not None
            if not (views or member.type.rstrip().endswith("*")) or "static" in member.type:
                continue
            found = re.fullmatch(
                r"(?:\w[\w:]*_view\()?(&?)(\w+)(\.(?:data|c_str)\(\)|\[0\])?(?:,\w+\.(?:size|length)\(\))?\)?",
                "".join(right.text.split()),
            )
            place = _declared_at(function.body, found[2], node) if found else None
            if found is None or place is None or not (found[1] or found[3] or views):
                continue
            declared = next(each for each in place[1].all("declarator") if name_of(each) == found[2])
            kind = declared_type(place[1], declared)
            body = function.body.text[node.end - function.body.start :]
            lives_on = re.search(rf"\bmove\(\s*{found[2]}\b|\bswap\(|\b{re.escape(name)}\s*=[^=]", body)
            if re.search(r"&|\*|\bstatic\b|_ptr\b", kind) or not _owns(kind) or lives_on or _TEXT_VIEWS.search(kind):
                continue
            yield self.found(
                node,
                f"`{name}` keeps a pointer to `{found[2]}`, which is gone when `{function.name}` returns",
                "keep the object itself in the member",
                summary=summary,
                related=[(f"`{found[2]}` is declared here", place[1])],
            )

    def _locals_returned(self, function: Function, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not function.returns.rstrip().endswith(("*", "&")) and not _TEXT_VIEWS.search(function.returns):
            return
        for node in function.body.find("return_statement"):
            text = "".join(node.text.split())
            found = re.fullmatch(r"return&?(\w+)(?:\.(?:data|c_str)\(\)|\.flat<[^<>]*>\(\)\.data\(\))?;", text)
            owner = _declared_at(function.body, found[1], node) if found else None
            if found is None or owner is None or any(each.kind == "lambda_expression" for each in node.above()):
                continue
            declaration = owner[1]
            declarator = next((each for each in declaration.all("declarator") if name_of(each) == found[1]), None)
            kind = declared_type(declaration, declarator) if declarator is not None else "&"
            array = declarator is not None and any(each.kind == "array_declarator" for each in declarator.walk())
            points = (
                "&" + found[1] in text
                or ".data()" in text
                or ".c_str()" in text
                or array
                or function.returns.endswith("&")
            )
            if points and "static" not in kind and "&" not in kind and ("*" not in kind or "&" + found[1] in text):
                yield self.found(
                    node,
                    f"`{found[1]}` is gone when `{function.name}` returns, and a pointer to it is returned",
                    "return the object itself",
                    summary=summary,
                )


def _type_of_target(event: Event, summary: FunctionSummary) -> str:
    """Of what is assigned to and outlives the call; "" where it does not, or its type is not known."""
    declared = ""
    if event.detail == "static":
        place = _declared_at(event.point.function.body, event.name, event.node)
        found = (each for each in place[1].all("declarator") if name_of(each) == event.name) if place else ()
        declared = next((declared_type(place[1], each) for each in found), "") if place else ""
    elif event.detail == "global":
        declared = summary.unit.globals.get(event.name, "")
    elif event.detail == "member" and summary.owner and event.name in summary.owner.members:
        declared = summary.owner.members[event.name].type
    kind = type_at(summary.unit, event.on, declared)
    return kind.rstrip("*& ") if event.node.kind == "call_expression" else kind  # the object whose method it is


def _viewed(value: Symbol) -> str:
    """What a view is made of: string_view(text.data(), text.size()), MakeSpan(pointer, count)."""
    for part in parts(value):
        if isinstance(part, Access) and is_tensor(part.buffer):
            return "the text of an input" if isinstance(part, Element) else "the data of a tensor"
    return ""


def _gone(value: Symbol) -> str:
    match value:
        case Pointer(Input()):
            return "the data of an input"
        case Pointer(Output()):
            return "the data of an output"
        case Pointer(Tensor()):
            return "a temporary tensor's data"
        case Pointer(Vector() | Array()):
            return "a local variable"
        case View(Tensor()):
            return "a view of a tensor"
        case AddressOfName(name) if not name.startswith("this."):
            return "a local variable"
    return ""


def _owns(kind: str) -> bool:
    return bool(re.search(r"\b(?:vector|string|Tensor|unique_ptr|InlinedVector|array|tstring)\b", kind))


def _declared_at(body: Node, name: str, before: Node) -> tuple[Node, Node] | None:
    """The block and the declaration of a variable, the nearest before a place."""
    best: tuple[Node, Node] | None = None
    for node in body.find("declaration"):
        if node.start < before.start and any(name_of(each) == name for each in node.all("declarator")):
            block = next((each for each in node.above() if each.kind in ("compound_statement", "for_statement")), body)
            if block.start <= before.start < block.end:
                best = (block, node)
    return best


def _within(inner: Node, outer: Node) -> bool:
    return inner is not outer and outer.start <= inner.start and inner.end <= outer.end
