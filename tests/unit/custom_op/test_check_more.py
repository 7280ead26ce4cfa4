# ruff: noqa: E501, C408  (C++ as people write it)
"""More mistakes in other spellings, and their corrected twins: what paths, owners, threads and shapes show."""

from __future__ import annotations

from typing import Any

import pytest

from op_sources import codes, kernel

CASES: list[tuple[str, str]] = []


def case(code: str, body: str, **frame: Any) -> None:
    """The code that must be found; "": nothing."""
    CASES.append((code, kernel(body, **frame)))


# use after free
case(
    "OP115",
    "const float* p = nullptr;\n { Tensor t; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, x.shape(), &t)); p = t.flat<float>().data(); }\n float s = p[0];",
)
case("OP114", "std::unique_ptr<float[]> a(new float[8]);\n float* p = a.get();\n a.reset();\n p[0] = 1;")
case("OP114", "struct N { N* next; };\n N* n = new N; delete n;\n N* m = n->next;")
case("OP114", "float* p = new float[8];\n std::unique_ptr<float[]> a(p);\n std::unique_ptr<float[]> b(p);")
case("OP114", "float* p = new float[8];\n std::shared_ptr<float> a(p);\n delete[] p;")
case(
    "OP114",
    'float* p = new float[8];\n if (x.NumElements() > 3) { delete[] p; ctx->CtxFailure(errors::InvalidArgument("")); }\n delete[] p;',
)
case(
    "OP115",
    "auto v = Scaled(x).flat<float>();\n y->flat<float>() = v;",
    before="static Tensor Scaled(const Tensor& t) { Tensor r(DT_FLOAT, t.shape()); r.flat<float>() = t.flat<float>() * 2.0f; return r; }",
)
# overflow
case(
    "OP108",
    "std::vector<float> v;\n v.reserve(x.NumElements());\n for (int64_t n = 0; n < x.NumElements(); ++n) v[n] = 1;",
)
case(
    "OP108",
    "float* t = new float[x.NumElements()];\n for (int64_t n = 0; n <= x.NumElements(); ++n) t[n] = 0;\n delete[] t;",
)
case(
    "OP108",
    "auto t = std::make_unique<float[]>(x.NumElements());\n for (int64_t n = 0; n < x.NumElements() + 1; ++n) t[n] = 0;",
)
case("OP108", "const int64_t n = x.NumElements();\n std::vector<float> sums(n);\n sums[n] = 1;")
case(
    "OP108",
    "const int64_t n = x.NumElements();\n std::vector<float> sums(n, 0.0f);\n for (int64_t k = 0; k < n; ++k) sums[k + 1] = sums[k] + 1;",
)
case(
    "",
    "const int64_t n = x.NumElements();\n std::vector<float> sums(n + 1, 0.0f);\n for (int64_t k = 0; k < n; ++k) sums[k + 1] = sums[k] + 1;",
)
case(
    "OP108",
    'Tensor* z = nullptr; OP_REQUIRES(ctx, x.dims() == 1, errors::InvalidArgument(""));\n const int64_t n = x.dim_size(0);\n OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({2 * n}), &z)); auto o = z->vec<float>(); auto in = x.vec<float>();\n for (int64_t k = 0; k < n; ++k) { o(2 * k) = in(k); o(2 * k + 2) = in(k); }',
    output=False,
)
case(
    "OP103",
    'OP_REQUIRES(ctx, x.dims() == 2 && w.dims() == 1, errors::InvalidArgument(""));\n auto m = x.matrix<float>(); auto b = w.vec<float>(); float s = 0;\n for (int64_t r = 0; r < m.dimension(0); ++r) for (int64_t c = 0; c < m.dimension(1); ++c) s += m(r, c) + b(c);',
)
case(
    "",
    'OP_REQUIRES(ctx, x.dims() == 2 && w.dims() == 1 && w.dim_size(0) == x.dim_size(1), errors::InvalidArgument(""));\n auto m = x.matrix<float>(); auto b = w.vec<float>(); float s = 0;\n for (int64_t r = 0; r < m.dimension(0); ++r) for (int64_t c = 0; c < m.dimension(1); ++c) s += m(r, c) + b(c);',
)
# races
G = "auto in = x.flat<float>(); auto& pool = *ctx->device()->tensorflow_cpu_worker_threads();\n"
case(
    "OP116",
    G
    + "float best = 0;\n Shard(pool.num_threads, pool.workers, in.size(), 10, [&](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) best = std::max(best, in(n)); });",
)
case(
    "OP116",
    G
    + "int64_t count = 0;\n pool.workers->ParallelFor(in.size(), 10, [&count, &in](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) if (in(n) > 0) ++count; });",
)
case(
    "OP116",
    G
    + "std::vector<int64_t> hist(10, 0);\n pool.workers->ParallelFor(in.size(), 10, [&](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) { int k = std::min(9, std::max(0, static_cast<int>(in(n)))); hist[k]++; } });",
)
case(
    "OP116",
    G
    + "std::unordered_map<int, int> seen;\n pool.workers->ParallelFor(in.size(), 10, [&](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) seen[static_cast<int>(in(n))] += 1; });",
)
case("OP116", "std::uniform_real_distribution<float> d(0, 1);\n float v = d(rng_);", members="std::mt19937 rng_;")
case(
    "OP116",
    "if (!ready_) { table_.resize(16); ready_ = true; }",
    members="bool ready_ = false; std::vector<float> table_;",
)
case(
    "",
    "std::call_once(once_, [this] { table_.resize(16); });",
    members="std::once_flag once_; std::vector<float> table_;",
)
case(
    "",
    G
    + "auto out = y->flat<float>();\n Shard(pool.num_threads, pool.workers, in.size(), 10, [&](int64_t b, int64_t e) { float s = 0; for (int64_t n = b; n < e; ++n) { s += in(n); out(n) = s; } });",
)
case(
    "",
    "std::atomic<int64_t> count{0};\n"
    + G
    + "pool.workers->ParallelFor(in.size(), 10, [&](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) count.fetch_add(1); count += 2; });",
)
# outputs
case(
    "OP112",
    "Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &z));\n auto in = x.flat<float>(); auto o = z->flat<float>();\n for (int64_t k = 1; k + 1 < in.size(); ++k) o(k) = in(k - 1) + in(k + 1);",
    output=False,
)
case(
    "OP112",
    "Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &z));\n auto in = x.flat<float>(); auto o = z->flat<float>();\n for (int64_t k = 1; k < in.size(); ++k) o(k) = in(k) - in(k - 1);",
    output=False,
)
case(
    "OP112",
    "Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &z));\n auto in = x.flat<float>(); auto o = z->flat<float>();\n for (int64_t k = 0; k < in.size(); ++k) { if (in(k) < 0) continue;\n o(k) = in(k); }",
    output=False,
)
case(
    "",
    "Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &z));\n auto in = x.flat<float>(); auto o = z->flat<float>();\n if (in.size() > 0) o(0) = 0;\n for (int64_t k = 1; k < in.size(); ++k) o(k) = in(k) - in(k - 1);",
    output=False,
)
case(
    "OP112",
    "Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &z));\n auto in = x.flat<float>();\n for (int64_t k = 0; k < in.size(); ++k) z->scalar<float>()() += in(k);",
    output=False,
)
# exceptions
S = dict(inputs=("x: float", "s: string"))
case("OP117", "std::regex r(std::string(s.flat<tstring>()(0)));", **S)
case(
    "OP117",
    "for (int64_t n = 0; n < s.NumElements(); ++n) { std::string t = s.flat<tstring>()(n); size_t at = t.find(':');\n std::string k = t.substr(at); }",
    **S,
)
case(
    "",
    "for (int64_t n = 0; n < s.NumElements(); ++n) { std::string t = s.flat<tstring>()(n); size_t at = t.find(':');\n if (at == std::string::npos) continue; std::string k = t.substr(at); }",
    **S,
)
case(
    "OP117",
    "for (int64_t n = 0; n < s.NumElements(); ++n) { float v = table_.at(s.flat<tstring>()(n)); }",
    members="std::map<std::string, float> table_;",
    **S,
)
case(
    "",
    "for (int64_t n = 0; n < s.NumElements(); ++n) { auto it = table_.find(s.flat<tstring>()(n)); if (it != table_.end()) { float v = it->second; } }",
    members="std::map<std::string, float> table_;",
    **S,
)
# leak
case(
    "OP113",
    'FILE* f = fopen("a", "r"); OP_REQUIRES(ctx, f != nullptr, errors::NotFound(""));\n OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("")); fclose(f);',
)
case("", 'FILE* f = fopen("a", "r"); if (!f) { ctx->CtxFailure(errors::NotFound("")); return; }\n fclose(f);')
case(
    "OP113",
    "for (int64_t n = 0; n < x.NumElements(); ++n) { float* t = new float[4]; t[0] = n; if (t[0] > 2) continue; delete[] t; }",
)
case("OP113", "Tensor* t = new Tensor(DT_FLOAT, x.shape()); t->flat<float>().setZero();")
# alignment
case(
    "OP119",
    "const float* p = x.flat<float>().data() + 3;\n Eigen::Map<const Eigen::ArrayXf, Eigen::Aligned32> m(p, 8);",
)
# stack
case("OP118", "std::array<float, 4 << 20> t;\n t[0] = 1;")
# shape
B = 'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); Tensor* z = nullptr;\n OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({x.dim_size(0)}), &z)); z->flat<float>().setZero();'
case(
    "OP125",
    B,
    output=False,
    shape=".SetShapeFn([](shape_inference::InferenceContext* c) { shape_inference::ShapeHandle in; TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &in)); c->set_output(0, c->Vector(c->Dim(in, 1))); return OkStatus(); })",
)
case(
    "",
    B,
    output=False,
    shape=".SetShapeFn([](shape_inference::InferenceContext* c) { shape_inference::ShapeHandle in; TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &in)); c->set_output(0, c->Vector(c->Dim(in, 0))); return OkStatus(); })",
)
# kept
case(
    "OP115",
    "mutex_lock l(mu_); names_.clear(); names_.push_back(s.flat<tstring>()(0));",
    members="mutex mu_; std::vector<absl::string_view> names_;",
    **S,
)
case(
    "OP115",
    "mutex_lock l(mu_); rows_.clear(); rows_.push_back(x.flat<float>().data());",
    members="mutex mu_; std::vector<const float*> rows_;",
)
# locks
case(
    "OP121",
    "std::lock_guard<std::mutex> a(a_); std::lock_guard<std::mutex> b(b_); Other();",
    members="std::mutex a_, b_; int n_ = 0; void Other() { std::lock_guard<std::mutex> l(b_); ++n_; }",
)
case(
    "OP121",
    "mu_.lock(); if (x.NumElements() == 0) return;\n n_++; mu_.unlock();",
    members="std::mutex mu_; int n_ = 0;",
)
# overflow int
case(
    "OP128",
    'OP_REQUIRES(ctx, i.NumElements() == 2, errors::InvalidArgument(""));\n const int32_t a = i.flat<int32>()(0), b = i.flat<int32>()(1);\n const int32_t n = a * b;\n OP_REQUIRES(ctx, n > 0 && n < 100, errors::InvalidArgument(""));',
    inputs=("x: float", "w: float", "i: int32"),
)
case(
    "OP128",
    'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument(""));\n const int rows = x.dim_size(0), cols = x.dim_size(1);\n const int n = rows * cols;\n std::vector<float> t(n);',
)


case(
    "",
    G + "float* out = y->flat<float>().data();\n"
    "pool.workers->ParallelFor(in.size(), 10, [&](int64_t b, int64_t e) { Add(out, b, e); });",
    before="static void Add(float* out, int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) out[n] += 1; }",
)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_found_or_silent(number: int) -> None:
    code, source = CASES[number]
    found = codes(source)
    assert code in found if code else not found, source
