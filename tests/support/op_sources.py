"""Sources of small ops for tests of the reading: a frame around what matters."""

from __future__ import annotations

from faultlens.custom_op.check.check import check
from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.syntax.syntax import Source
from faultlens.records.op_finding import OpFinding

HEAD = """\
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
using namespace tensorflow;
"""
OUT = "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y)); y->flat<float>().setZero();"


def kernel(
    body: str,
    *,
    inputs: tuple[str, ...] = ("x: float", "w: float", "i: int64"),
    outputs: tuple[str, ...] = ("y: float",),
    attrs: tuple[str, ...] = ("k: int",),
    before: str = "",
    members: str = "",
    construct: str = "",
    shape: str = ".SetShapeFn(shape_inference::UnknownShape)",
    output: bool = True,
    base: str = "OpKernel",
) -> str:
    """An op with the statements as its Compute. `x`, `w` and `i` are its inputs, `y` is its output, already written."""
    arguments = [*(f'.Input("{each}")' for each in inputs), *(f'.Output("{each}")' for each in outputs)]
    arguments += [f'.Attr("{each}")' for each in attrs]
    names = [each.partition(":")[0] for each in inputs]
    bound = " ".join(f"const Tensor& {name} = ctx->input({number});" for number, name in enumerate(names))
    asynchronous = base == "AsyncOpKernel"
    name, callback = ("ComputeAsync", ", DoneCallback done") if asynchronous else ("Compute", "")
    return f"""{HEAD}
REGISTER_OP("Probe"){"".join(arguments)}{shape};
{before}
class ProbeOp : public {base} {{
 public:
  explicit ProbeOp(OpKernelConstruction* ctx) : {base}(ctx) {{ {construct} }}
  void {name}(OpKernelContext* ctx{callback}) override {{
    {bound}
    {OUT if output else ""}
{body}
  }}
 private:
  {members}
}};
REGISTER_KERNEL_BUILDER(Name("Probe").Device(DEVICE_CPU), ProbeOp);
"""


def findings(source: str, name: str = "probe.cc") -> list[OpFinding]:
    return check(Unit([Source(name, source.encode())]))


def codes(source: str) -> set[str]:
    """Of all findings above a note."""
    return {finding.code for finding in findings(source) if finding.severity != "note"}
