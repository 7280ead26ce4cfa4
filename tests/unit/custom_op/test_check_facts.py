# ruff: noqa: E501  (C++ as people write it)
"""What checks prove, in many spellings: each mistake as it is made, and the same code with the right check."""

from __future__ import annotations

import pytest

from op_sources import codes, findings, kernel

INVALID = 'errors::InvalidArgument("")'
TWO = f"OP_REQUIRES(ctx, x.dims() == 2 && w.dims() == 2, {INVALID});\n"
PRODUCT = (
    "const int64_t m = x.dim_size(0), k = w.dim_size(0), n = w.dim_size(1);\n"
    "const float* a = x.flat<float>().data(); const float* b = w.flat<float>().data(); float s = 0;\n"
    "for (int64_t r = 0; r < m; ++r) for (int64_t c = 0; c < n; ++c) for (int64_t l = 0; l < k; ++l) s += a[r * k + l] * b[l * n + c];"
)
MATRICES = (
    "auto a = x.matrix<float>(); auto b = w.matrix<float>(); float s = 0;\n"
    "for (int64_t r = 0; r < a.dimension(0); ++r) for (int64_t l = 0; l < b.dimension(0); ++l) s += a(r, l) * b(l, 0);"
)
ROWS = f"OP_REQUIRES(ctx, x.dims() == 1 && i.dims() == 1 && i.dim_size(0) >= 1, {INVALID});\nauto s = i.vec<int64_t>(); auto v = x.vec<float>(); const int64_t rows = s.size() - 1; float t = 0;\n"
SUM = "for (int64_t r = 0; r < rows; ++r) for (int64_t k = s(r); k < s(r + 1); ++k) t += v(k);"
ENDS = f"OP_REQUIRES(ctx, s(0) == 0, {INVALID}); OP_REQUIRES(ctx, s(rows) == v.size(), {INVALID});\n"
PICK = "auto at = i.flat<int64_t>(); auto v = x.flat<float>(); for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = at(n);\n"
HELPER = f"static void Look(OpKernelContext* ctx, const Tensor& t) {{ OP_REQUIRES(ctx, t.dims() == 2, {INVALID}); }}"
MODE = "enum class Mode { kOne, kTwo };"
MADE = "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y)); y->flat<float>().setZero();"


def wide(loop: str, inside: str) -> str:
    return kernel(
        f"const float* p = x.flat<float>().data(); const int64_t n = x.NumElements(); {loop} {{ {inside} }}",
        before="#include <immintrin.h>",
    )


def text(load: str) -> str:
    return kernel(
        f"OP_REQUIRES(ctx, t.dims() == 0, {INVALID}); const tstring& s = t.scalar<tstring>()();\n"
        f"if (s.size() >= 64) {{ const __m128i v = {load}(reinterpret_cast<const __m128i*>(s.data())); }}",
        inputs=("x: float", "t: string"),
    )


def crop(shape: str) -> str:
    return kernel(
        "TensorShape made; OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({high_, wide_}, &made));\n"
        "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, made, &y)); y->flat<float>().setZero();",
        attrs=("size: list(int)",),
        members="int64_t high_, wide_;",
        construct=f'std::vector<int32> size; OP_REQUIRES_OK(ctx, ctx->GetAttr("size", &size)); OP_REQUIRES(ctx, size.size() == 2, {INVALID}); high_ = size[0]; wide_ = size[1];',
        shape=f'.SetShapeFn([](shape_inference::InferenceContext* c) {{ std::vector<int32> size; TF_RETURN_IF_ERROR(c->GetAttr("size", &size)); c->set_output(0, {shape}); return OkStatus(); }})',
        output=False,
    )


def mode(first: str) -> str:
    return kernel(
        f"switch (mode_) {{ case Mode::kOne: {first} break; case Mode::kTwo: {{ {MADE} break; }} }}",
        before=MODE,
        members="Mode mode_ = Mode::kOne;",
        output=False,
    )


BAD = {
    "a rank that is only large enough": ("OP101", kernel(f"OP_REQUIRES(ctx, x.dims() >= 1, {INVALID}); auto m = x.matrix<float>();")),
    "a rank that is only small enough": ("OP101", kernel(f"OP_REQUIRES(ctx, x.dims() <= 2, {INVALID}); auto m = x.matrix<float>();")),
    "two ranks": ("OP101", kernel(f"OP_REQUIRES(ctx, x.dims() == 2 || x.dims() == 3, {INVALID}); auto m = x.matrix<float>();")),
    "a vector or higher": ("OP101", kernel(f"OP_REQUIRES(ctx, TensorShapeUtils::IsVectorOrHigher(x.shape()), {INVALID}); auto m = x.matrix<float>();")),
    "a dimension beyond the rank": ("OP101", kernel(f"OP_REQUIRES(ctx, x.dims() >= 1, {INVALID}); const int64_t n = x.dim_size(1);")),
    "another side": ("OP103", kernel(f"{TWO}OP_REQUIRES(ctx, x.dim_size(1) == w.dim_size(1), {INVALID});\n{PRODUCT}")),
    "another side of views": ("OP103", kernel(f"{TWO}OP_REQUIRES(ctx, x.dim_size(0) == w.dim_size(0), {INVALID});\n{MATRICES}")),
    "ends only": ("OP105", kernel(ROWS + ENDS + SUM)),
    "the largest of nothing": ("OP104", kernel("const float* p = x.flat<float>().data(); const float m = *std::max_element(p, p + x.NumElements());")),
    "both of nothing": ("OP104", kernel("auto f = x.flat<float>(); auto b = std::minmax_element(f.data(), f.data() + f.size()); const float m = *b.second;")),
    "the end passes": ("OP108", kernel(f"{PICK}OP_REQUIRES(ctx, k >= 0 && k <= v.size(), {INVALID}); float f = v(k); }}")),
    "the end passes an if": ("OP108", kernel(f"{PICK}if (k < 0 || k > v.size()) continue; float f = v(k); }}")),
    "words": ("OP108", wide("for (int64_t n2 = 0; n2 < n; n2 += 4)", "double d[2]; std::memcpy(d, p + n2, 16);")),
    "vectors": ("OP108", wide("for (int64_t k = 0; k < n; k += 8)", "__m256 v = _mm256_loadu_ps(p + k);")),
    "text": ("OP119", text("_mm_load_si128")),
    "a helper that fails": ("OP110", kernel("Look(ctx, x); auto m = x.matrix<float>();", before=HELPER)),
    "sizes swapped": ("OP125", crop("c->MakeShape({size[1], size[0]})")),
    "a case without an output": ("OP111", mode("")),
}  # fmt: skip

GOOD = {
    "a rank from both sides": kernel(f"OP_REQUIRES(ctx, x.dims() >= 2 && x.dims() < 3, {INVALID}); auto m = x.matrix<float>();"),
    "one rank each": kernel(f"OP_REQUIRES(ctx, x.dims() == 2 || x.dims() == 3, {INVALID}); if (x.dims() == 2) {{ auto m = x.matrix<float>(); }} else {{ auto t = x.tensor<float, 3>(); }}"),
    "the rank of an attribute": kernel(f"OP_REQUIRES(ctx, x.dims() == rank_, {INVALID}); auto m = x.matrix<float>();", members="int rank_;", construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("k", &rank_));'),
    "a rank that leaves": kernel(f"if (x.dims() != 2) {{ ctx->SetStatus({INVALID}); return; }} auto m = x.matrix<float>();"),
    "the same side": kernel(f"{TWO}OP_REQUIRES(ctx, x.dim_size(1) == w.dim_size(0), {INVALID});\n{PRODUCT}"),
    "the same side by another name": kernel(f"{TWO}const int64_t inner = x.dim_size(1); OP_REQUIRES(ctx, w.dim_size(0) == inner, {INVALID});\n{PRODUCT}"),
    "the same side of views": kernel(f"{TWO}OP_REQUIRES(ctx, x.dim_size(1) == w.dim_size(0) && w.dim_size(1) > 0, {INVALID});\n{MATRICES}"),
    "the same shape": kernel(f"{TWO}OP_REQUIRES(ctx, x.shape() == w.shape() && x.dim_size(0) == x.dim_size(1) && w.NumElements() > 0, {INVALID});\n{MATRICES}"),
    "ends and order": kernel(f"{ROWS}{ENDS}for (int64_t r = 0; r < rows; ++r) OP_REQUIRES(ctx, s(r) <= s(r + 1), {INVALID});\n{SUM}"),
    "each split": kernel(f"{ROWS}for (int64_t r = 0; r <= rows; ++r) OP_REQUIRES(ctx, s(r) >= 0 && s(r) <= v.size(), {INVALID});\n{SUM}"),
    "the largest of something": kernel("if (x.NumElements() == 0) return; const float* p = x.flat<float>().data(); const float m = *std::max_element(p, p + x.NumElements());"),
    "the end does not pass": kernel(f"{PICK}OP_REQUIRES(ctx, k >= 0 && k <= v.size() - 1, {INVALID}); float f = v(k); }}"),
    "the end does not pass an if": kernel(f"{PICK}if (k < 0 || k >= v.size()) continue; float f = v(k); }}"),
    "counted from one": kernel(f"{PICK}OP_REQUIRES(ctx, k >= 1 && k <= v.size(), {INVALID}); float f = v(k - 1); }}"),
    "full words": wide("for (int64_t k = 0; k + 4 <= n; k += 4)", "double d[2]; std::memcpy(d, p + k, 16);"),
    "full vectors": wide("for (int64_t k = 0; k < n / 8 * 8; k += 8)", "__m256 v = _mm256_loadu_ps(p + k);"),
    "multiples of the step": wide(f"OP_REQUIRES(ctx, n % 8 == 0, {INVALID}); for (int64_t k = 0; k < n; k += 8)", "__m256 v = _mm256_loadu_ps(p + k);"),
    "text anywhere": text("_mm_loadu_si128"),
    "a helper that is asked": kernel("Look(ctx, x); if (!ctx->status().ok()) return; auto m = x.matrix<float>();", before=HELPER),
    "a helper whose status is passed on": kernel("Look(ctx, x); OP_REQUIRES_OK(ctx, ctx->status()); auto m = x.matrix<float>();", before=HELPER),
    "sizes in order": crop("c->MakeShape({size[0], size[1]})"),
    "an output in each case": mode(f"{{ {MADE} }}"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_the_mistake_is_found(name: str) -> None:
    code, source = BAD[name]
    assert code in codes(source)


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(name: str) -> None:
    assert codes(GOOD[name]) == set()


def test_a_failure_in_a_helper_is_shown_where_it_is_called() -> None:
    (found,) = (each for each in findings(BAD["a helper that fails"][1]) if each.code == "OP110")
    assert found.span is not None and "Look(ctx, x)" in found.span.text
