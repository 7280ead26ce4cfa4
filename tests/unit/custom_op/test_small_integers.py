# ruff: noqa: E501  (C++ as people write it)
"""Sizes that are computed in 32 bits, or cut to them, and that memory is allocated by."""

from __future__ import annotations

import pytest

from op_sources import codes, kernel

CHECKED = 'OP_REQUIRES(ctx, x.dims() == 2 && w.dims() == 1, errors::InvalidArgument("")); '
BEFORE = """
static int Area(int a, int b) { return a * b; }
static void Make(OpKernelContext* ctx, int size) {
  Tensor* o = nullptr;
  OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({size}), &o));
}
"""


def output(size: str) -> str:
    return f"Tensor* o = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({{{size}}}), &o));"


TOO_SMALL = {
    "int n*n": "const int n = x.dim_size(0); const int m = w.dim_size(0); const int total = n * m; " + output("total"),
    "direct in shape": "const int n = x.dim_size(0); const int m = w.dim_size(0); " + output("n * m"),
    "assigned to int": "int total = x.dim_size(0) * w.dim_size(0); " + output("total"),
    "cast": "const auto total = static_cast<int>(x.dim_size(0) * w.dim_size(0)); " + output("total"),
    "AddDim": "const int n = x.dim_size(0), m = w.dim_size(0); TensorShape s; s.AddDim(n * m); Tensor* o; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, s, &o));",
    "vector": "const int n = x.dim_size(0), m = w.dim_size(0); std::vector<float> t(n * m);",
    "resize": "const int n = x.dim_size(0), m = w.dim_size(0); std::vector<float> t; t.resize(n * m);",
    "square": "const int n = static_cast<int>(w.dim_size(0)); const int p = n * n; " + output("p"),
    "triangle": "const int n = static_cast<int>(w.dim_size(0)); const int p = n * (n - 1) / 2; " + output("p"),
    "plus one": "const int n = static_cast<int>(w.dim_size(0)); const int p = (n + 1) * (n + 1); " + output("p"),
    "int32 numel*numel": "int32 total = x.NumElements() * w.NumElements(); " + output("total"),
    "auto": "int n = w.dim_size(0); auto p = n * n; " + output("p"),
    "helper": "" + output("Area(w.dim_size(0), x.dim_size(0))"),
    "temp": "const int n = w.dim_size(0); Tensor t; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, TensorShape({n * n}), &t));",
    "new": "const int n = w.dim_size(0); std::unique_ptr<float[]> t(new float[n * n]);",
    "int parameter": "const int64_t n = w.dim_size(0); Make(ctx, n * n);",
    "compound": "int p = w.dim_size(0); p *= x.dim_size(0); " + output("p"),
    "three": "const int a = x.dim_size(0), b = x.dim_size(1), c = w.dim_size(0); const int p = a * b * c; "
    + output("p"),
    "two dims of one": "const int a = x.dim_size(0), b = x.dim_size(1); const int p = a * b; " + output("p"),
    "struct array": "const int n = w.dim_size(0); TensorShape s({n, n * n}); Tensor* o; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, s, &o));",
    "member": "rows_ = w.dim_size(0); " + output("rows_ * rows_"),
    "unsigned": "const uint32_t n = w.dim_size(0); const uint32_t p = n * n; " + output("p"),
}
RIGHT = {
    "int64": "const int64_t n = x.dim_size(0), m = w.dim_size(0); const int64_t total = n * m; " + output("total"),
    "int dims separate": "const int n = x.dim_size(0), m = w.dim_size(0); " + output("n, m"),
    "cast first": "const int n = x.dim_size(0), m = w.dim_size(0); " + output("static_cast<int64_t>(n) * m"),
    "checked": 'OP_REQUIRES(ctx, w.dim_size(0) <= 1024, errors::InvalidArgument("")); const int n = w.dim_size(0); '
    + output("n * n"),
    "checked product": 'const int64_t p = w.dim_size(0) * x.dim_size(0); OP_REQUIRES(ctx, p <= std::numeric_limits<int>::max(), errors::InvalidArgument("")); const int q = static_cast<int>(p); '
    + output("q"),
    "checked FastBounds": 'OP_REQUIRES(ctx, FastBoundsCheck(w.dim_size(0), 1000), errors::InvalidArgument("")); const int n = w.dim_size(0); '
    + output("n * n"),
    "const": "const int n = w.dim_size(0); " + output("n * 4"),
    "numel equals": 'OP_REQUIRES(ctx, x.dim_size(0) == 3 && x.dim_size(1) == 3, errors::InvalidArgument("")); const int a = x.dim_size(0); const int b = x.dim_size(1); '
    + output("a * b"),
    "min": "const int n = std::min<int64_t>(w.dim_size(0), 100); " + output("n * n"),
    "tiles": "const int n = w.dim_size(0); const int tiles = (n + 15) / 16; " + output("tiles"),
    "MultiplyWithoutOverflow": 'const int64_t p = MultiplyWithoutOverflow(w.dim_size(0), x.dim_size(0)); OP_REQUIRES(ctx, p >= 0, errors::InvalidArgument("")); '
    + output("p"),
}


def op(body: str) -> str:
    return kernel(CHECKED + body, before=BEFORE, members="int rows_ = 0;", output=False)


@pytest.mark.parametrize("body", TOO_SMALL.values(), ids=TOO_SMALL)
def test_a_product_of_sizes_in_32_bits_is_found(body: str) -> None:
    assert "OP128" in codes(op(body))


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_64_bits_and_checks_are_left_alone(body: str) -> None:
    assert "OP128" not in codes(op(body))


EACH = 'for (int k = 0; k < %s; ++k) { OP_REQUIRES(ctx, ctx->input(k).dims() == 2, errors::InvalidArgument("")); } '


@pytest.mark.parametrize("inputs, found", [("2", set()), ("ctx->num_inputs()", set()), ("1", {"OP101"})])
def test_what_a_loop_checks_of_each_input_holds_behind_it(inputs: str, found: set[str]) -> None:
    assert codes(kernel(EACH % inputs + "auto a = x.matrix<float>(); auto b = ctx->input(1).matrix<float>();")) == found
