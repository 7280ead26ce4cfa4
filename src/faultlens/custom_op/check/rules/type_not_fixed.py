from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.interpret.buffer_symbols import (
    DType,
    Input,
    Listed,
    Output,
    Pointer,
    buffer_of,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import Field, Result
from faultlens.custom_op.check.interpret.composition import origins, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Attr, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.registered import Argument, Kernel, Op
from faultlens.custom_op.check.syntax.types import KNOWN, tidy
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding


class TypeNotFixed(Rule):
    """`flat<float>()` of a tensor with elements of another type ends the process (CHECK, SIGABRT); a cast of its
    `data()` reads other bytes than there are, beyond the end where the type is larger. The type is safe only if the op
    allows no other (`Input("x: float")`), or the kernel is registered for one type and uses that one:

    ```cpp
    REGISTER_KERNEL_BUILDER(Name("Scale").Device(DEVICE_CPU).TypeConstraint<float>("T"), ScaleOp<float>);
    ```
    """

    code = "OP102"
    slug = "type-not-fixed"
    severity = "error"
    headline = "elements are used as a type that the registration does not guarantee"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        ops = [(kernel, op) for kernel in summary.kernels if (op := summary.unit.op(kernel.op)) is not None]
        for event in good(summary.of("raw", "copy")):
            yield from self._bytes(event, summary, ops)
        for event in good(summary.of("view", "cast")):
            tensor, type_ = _used_as(event)
            if tensor is None:
                continue
            for kernel, op in ops:
                argument = _argument(op, tensor)
                if argument is None or _asked(event, argument):
                    continue
                actual = self._possible(summary, kernel, op, argument, type_)
                if actual:
                    yield self._finding(event, summary, kernel, op, tensor, argument, type_, actual)
                    break

    def _bytes(self, event: Event, summary: FunctionSummary, ops: list[tuple[Kernel, Op]]) -> Iterator[OpFinding]:
        """x.tensor_data(), memcpy(…, x.data(), …) where the type may be string: those bytes are pointers."""
        sides = (
            (event.on,) if event.name == "tensor_data" else (event.on, *event.by[:1]) if event.kind == "copy" else ()
        )
        for side in sides:
            tensor = buffer_of(side)
            if tensor is None or not is_tensor(tensor):
                continue
            for kernel, op in ops:
                argument = _argument(op, tensor)
                attribute = op.attributes.get(argument.type) if argument is not None else None
                if argument is None or attribute is None or kernel.type_of(argument.type) is not None:
                    continue
                allowed = op.types_of(argument)
                if (allowed is None or "tstring" in allowed) and not _asked(event, argument):
                    yield self.found(
                        event,
                        f"the bytes of {tensor_named(tensor, op)} are used, and they may be strings: pointers",
                        "refuse types that cannot be copied as bytes",
                        f"OP_REQUIRES({context_of(event.node)}, DataTypeCanUseMemcpy(x.dtype()),\n"
                        '            errors::Unimplemented("not for ", DataTypeString(x.dtype())));',
                        summary=summary,
                        related=[("registered here", kernel.node)],
                    )
                    return

    def _possible(self, summary: FunctionSummary, kernel: Kernel, op: Op, argument: Argument, type_: str) -> str:
        """Another type that the tensor can have here; "" where it cannot."""
        types = summary.owner.types if summary.owner else ()
        if type_ in types:
            at = types.index(type_)
            used = kernel.class_types[at] if at < len(kernel.class_types) else ""
        else:
            used = type_
        attribute = op.attributes.get(argument.type)
        constraint = kernel.type_of(argument.type) if attribute else None
        if constraint is not None:
            if used == constraint or constraint not in KNOWN or used not in KNOWN:
                return ""
            return constraint
        if used not in KNOWN:
            return ""
        allowed = op.types_of(argument)
        if allowed is None:
            return "any type" if attribute is not None else ""
        others = sorted(allowed - {used})
        return others[0] if others else ""

    def _finding(
        self,
        event: Event,
        summary: FunctionSummary,
        kernel: Kernel,
        op: Op,
        tensor: Symbol,
        argument: Argument,
        type_: str,
        actual: str,
    ) -> OpFinding:
        attribute = argument.type if argument.type in op.attributes else ""
        if attribute and kernel.type_of(attribute) is None:
            says = f"the kernel is registered without a TypeConstraint on `{attribute}`, so it can be {actual}"
            fix = "fix the type where the kernel is registered"
            code = (
                "REGISTER_KERNEL_BUILDER(\n"
                f'    Name("{op.name}").Device(DEVICE_CPU).TypeConstraint<{type_}>("{attribute}"), …);'
            )
        else:
            says = f"it is registered as {actual}"
            fix = "use the registered type"
            code = f"{event.name}<{actual}>()" if event.kind == "view" else ""
        name = tensor_named(tensor, op)
        return self.found(
            event, f"{name} is used as {type_}, but {says}", fix, code, summary=summary,
            related=[("registered here", kernel.node)],
        )  # fmt: skip


def _argument(op: Op, tensor: Symbol) -> Argument | None:
    arguments = op.outputs if isinstance(tensor, Output) else op.inputs
    if isinstance(tensor, Listed):
        return next((each for each in arguments if each.name == tensor.name), None)
    at = tensor.index if isinstance(tensor, (Input, Output)) else None
    if not isinstance(at, int) or at >= len(arguments) or any(each.many for each in arguments[: at + 1]):
        return None
    return arguments[at]


def _used_as(event: Event) -> tuple[Symbol | None, str]:
    if event.kind == "view":
        return (event.on, tidy(event.detail)) if is_tensor(event.on) and event.name != "tensor_data" else (None, "")
    buffer = buffer_of(event.on)
    if buffer is None or not is_tensor(buffer) or not isinstance(event.on, Pointer) or event.on.type != "void":
        return None, ""
    return buffer, tidy(event.detail.replace("*", " "))


def _asked(event: Event, argument: Argument) -> bool:
    """if (x.dtype() == DT_FLOAT) …, switch (dtype_) …: the other tensors of the same type are known with it."""
    attribute = Attr(argument.type)
    return any(
        isinstance(part, DType) or part == attribute or (isinstance(part, (Result, Field)) and _names_dtype(part))
        for fact in facts(event.point)
        for part in parts(fact.condition)
    )


def _names_dtype(symbol: Symbol) -> bool:
    return any(isinstance(part, DType) or any("dtype" in name for name in part.names()) for part in origins(symbol))
