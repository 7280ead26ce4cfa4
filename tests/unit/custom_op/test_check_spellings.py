# ruff: noqa: E501  (C++ as people write it)
"""The same mistake in other words, and correct code beside it: the rules read what is done, not how it is spelled."""

from __future__ import annotations

import pytest

from op_sources import codes, kernel

ANY_TYPE = {"inputs": ("x: T",), "outputs": ("y: T",), "attrs": ("T: type",), "output": False}
OUT = "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));"
WORDS = {"inputs": ("x: float", "t: string"), "members": "mutex mu_; std::unordered_map<std::string, int> seen_;"}
KEPT = "std::vector<int64_t> kept; for (int64_t n = 0; n < i.NumElements(); ++n) { if (i.flat<int64_t>()(n) > 0) kept.push_back(n); }"
SUM = "int32 total = 0; auto v = n.flat<int32>(); for (int64_t k = 0; k < v.size(); ++k) {"
LENGTHS = {"inputs": ("x: float", "n: int32")}
COUNT = "const int64_t n = i.scalar<int64_t>()(); std::vector<float> row(x.NumElements());"
CHECKED = 'OP_REQUIRES(ctx, i.dims() == 0, errors::InvalidArgument("i"));'
NAME = 'std::string name; OP_REQUIRES_OK(ctx, ctx->GetAttr("s", &name));'
TEXT = {"attrs": ("s: string",)}

BAD = {
    "divided in place": ("OP107", kernel("std::vector<int64_t> v(9); auto d = i.flat<int64_t>(); for (int64_t k = 0; k < d.size(); ++k) v[0] /= d(k);")),
    "a distribution with a memory": (
        "OP116",
        kernel("std::mt19937 engine(1); const float f = normal_(engine);", members="std::normal_distribution<float> normal_;"),
    ),
    "status: cast to void": ("OP109", kernel("TensorShape s; (void)TensorShapeUtils::MakeShape(i.vec<int64_t>(), &s);")),
    "status: static_cast to void": ("OP109", kernel("Tensor* z = nullptr; static_cast<void>(ctx->allocate_output(0, x.shape(), &z));")),
    "status: std::ignore": ("OP109", kernel("Tensor* z = nullptr; std::ignore = ctx->allocate_output(0, x.shape(), &z);")),
    "status: dropped": ("OP109", kernel("TensorShape s; TensorShape::BuildTensorShape({2, 3}, &s);")),
    "status: kept, not asked": ("OP109", kernel("TensorShape s; auto made = TensorShape::BuildTensorShape({2, 3}, &s);")),
    "pointer: text of a local": ("OP115", kernel("", construct=f"{NAME} name_ = name.c_str();", members="const char* name_;", **TEXT)),
    "pointer: view of a local": ("OP115", kernel("", construct=f"{NAME} name_ = name;", members="absl::string_view name_;", **TEXT)),
    "pointer: elements of a local": (
        "OP115",
        kernel("", construct="std::vector<float> table(9); table_ = table.data();", members="const float* table_;"),
    ),
    "pointer: address of a local": (
        "OP115",
        kernel("", construct="std::string name; this->name_ = &name;", members="const std::string* name_;"),
    ),
    "sum: compared": (
        "OP128",
        kernel(f'{SUM} total += v(k); }} OP_REQUIRES(ctx, total == x.NumElements(), errors::InvalidArgument("n"));', **LENGTHS),
    ),
    "sum: a name for the element": (
        "OP128",
        kernel(f'{SUM} const int32 one = v(k); total += one; }} OP_REQUIRES(ctx, total <= 9, errors::InvalidArgument("n"));', **LENGTHS),
    ),
    "empty: modulo what was kept": ("OP107", kernel(f"{KEPT} const int64_t at = 7 % kept.size();")),
    "empty: divided by what was kept": ("OP107", kernel(f"{KEPT} const int64_t n = kept.size(); const int64_t part = 7 / n;")),
    "bytes: tensor_data of any type": ("OP102", kernel(f"{OUT} const char* p = x.tensor_data().data();", **ANY_TYPE)),
    "bytes: memcpy of any type": ("OP102", kernel(f"{OUT} std::memcpy(y->data(), x.data(), x.TotalBytes());", **ANY_TYPE)),
    "range: partial_sort": ("OP105", kernel(f"{CHECKED} {COUNT} std::partial_sort(row.begin(), row.begin() + n, row.end());")),
    "range: nth_element": ("OP105", kernel(f"{CHECKED} {COUNT} std::nth_element(row.begin(), row.begin() + n, row.end());")),
    "range: fill_n": ("OP105", kernel(f"{CHECKED} {COUNT} std::fill_n(row.begin(), n, 0.0f);")),
    "range: copy_n": ("OP105", kernel(f"{CHECKED} {COUNT} std::vector<float> to(row); std::copy_n(row.begin(), n, to.begin());")),
    "range: only from below": (
        "OP105",
        kernel(f'{CHECKED} {COUNT} OP_REQUIRES(ctx, n > 0, errors::InvalidArgument("n")); std::sort(row.begin(), row.begin() + n);'),
    ),
    "map: emplace": ("OP126", kernel("mutex_lock lock(mu_); seen_.emplace(t.flat<tstring>()(0), 1);", **WORDS)),
    "map: operator[]": (
        "OP126",
        kernel("mutex_lock lock(mu_); for (int64_t k = 0; k < t.NumElements(); ++k) seen_[t.flat<tstring>()(k)] = 1;", **WORDS),
    ),
    "map: static, behind a pointer": (
        "OP126",
        kernel(
            "static mutex* mu = new mutex; static auto* seen = new std::unordered_map<std::string, int>;\n"
            "mutex_lock lock(*mu); for (int64_t k = 0; k < t.NumElements(); ++k) seen->try_emplace(t.flat<tstring>()(k), 1);",
            inputs=("x: float", "t: string"),
        ),
    ),
    "recursion: depths is no limit": (
        "OP118",
        kernel(
            "auto p = i.flat<int64_t>(); int64_t d = DepthOf(p, 0);",
            before="static int64_t DepthOf(TTypes<int64_t>::ConstFlat parents, int64_t node) {\n"
            "  if (parents(node) < 0) return 0;\n  return 1 + DepthOf(parents, parents(node)); }",
        ),
    ),
    "substr: behind what was not found": (
        "OP117",
        kernel('const std::string s(t.flat<tstring>()(0)); const auto at = s.find("://"); std::string r = s.substr(at + 3);', inputs=("x: float", "t: string")),
    ),
}  # fmt: skip

GOOD = {
    "floats divided in place": kernel(
        "auto o = y->flat<float>(); auto d = x.flat<float>(); for (int64_t k = 0; k < d.size(); ++k) o(k) /= d(k);"
    ),
    "status: asked": kernel("TensorShape s; OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({2, 3}, &s));"),
    "status: another value cast to void": kernel("int64_t n = x.NumElements(); (void)n;"),
    "pointer: moved into a member": kernel(
        "",
        construct="std::vector<float> t(9); table_ = t.data(); kept_ = std::move(t);",
        members="const float* table_; std::vector<float> kept_;",
    ),
    "pointer: a member owns it": kernel(
        "", construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("s", &text_)); name_ = text_.c_str();',
        members="std::string text_; const char* name_;", **TEXT,
    ),
    "pointer: text is copied": kernel("", construct=f"{NAME} name_ = name;", members="std::string name_;", **TEXT),
    "sum: in 64 bits": kernel(
        f'{SUM.replace("int32 total", "int64_t total")} total += v(k); }} OP_REQUIRES(ctx, total == x.NumElements(), errors::InvalidArgument("n"));',
        **LENGTHS,
    ),
    "sum: each is limited": kernel(
        f'{SUM} OP_REQUIRES(ctx, v(k) >= 0 && v(k) <= 100, errors::InvalidArgument("n")); total += v(k); }}\n'
        'OP_REQUIRES(ctx, total == x.NumElements(), errors::InvalidArgument("n"));',
        **LENGTHS,
    ),
    "sum: only told": kernel(f"{SUM} total += v(k); }} LOG(INFO) << total;", **LENGTHS),
    "empty: asked": kernel(
        f'{KEPT} OP_REQUIRES(ctx, !kept.empty(), errors::InvalidArgument("none")); const int64_t at = 7 % kept.size();'
    ),
    "empty: asked by if": kernel(f"{KEPT} if (kept.size() > 0) {{ const int64_t at = 7 % kept.size(); }}"),
    "empty: one is always there": kernel(
        "std::vector<int64_t> kept; kept.push_back(1); const int64_t at = 7 % kept.size();"
    ),
    "empty: while it runs over it": kernel(
        f"{KEPT} for (size_t k = 0; k < kept.size(); ++k) {{ const int64_t at = 7 % kept.size(); }}"
    ),
    "bytes: asked": kernel(
        f'{OUT} OP_REQUIRES(ctx, DataTypeCanUseMemcpy(x.dtype()), errors::Unimplemented("strings"));\n'
        "std::memcpy(y->data(), x.data(), x.TotalBytes());",
        **ANY_TYPE,
    ),
    "bytes: numbers only": kernel(
        f"{OUT} std::memcpy(y->data(), x.data(), x.TotalBytes());",
        **{**ANY_TYPE, "attrs": ("T: {float, int32}",)},
    ),
    "range: within the row": kernel(
        f'{CHECKED} {COUNT} OP_REQUIRES(ctx, n > 0 && n <= x.NumElements(), errors::InvalidArgument("n"));\n'
        "std::partial_sort(row.begin(), row.begin() + n, row.end());"
    ),
    "range: the smaller of both": kernel(
        f"{CHECKED} {COUNT} const int64_t most = std::max<int64_t>(0, std::min<int64_t>(n, row.size()));\n"
        "std::sort(row.begin(), row.begin() + most);"
    ),
    "range: all": kernel(f"{CHECKED} {COUNT} std::sort(row.begin(), row.end());"),
    "map: limited": kernel(
        "mutex_lock lock(mu_); for (int64_t k = 0; k < t.NumElements(); ++k) {\n"
        "  if (seen_.size() > 4096) seen_.clear(); seen_.emplace(t.flat<tstring>()(k), 1); }",
        **WORDS,
    ),
    "map: local": kernel(
        "std::unordered_map<std::string, int> seen; for (int64_t k = 0; k < t.NumElements(); ++k) seen[t.flat<tstring>()(k)] = 1;",
        inputs=("x: float", "t: string"),
    ),
    "recursion: counted": kernel(
        "int64_t d = Walk(i.flat<int64_t>(), 0, 0);",
        before="static int64_t Walk(TTypes<int64_t>::ConstFlat p, int64_t node, int depth) {\n"
        "  if (depth > 64 || node < 0 || node >= p.size()) return 0;\n  return 1 + Walk(p, p(node), depth + 1); }",
    ),
    "substr: behind the last slash": kernel(
        "for (int64_t k = 0; k < t.NumElements(); ++k) { const std::string s(t.flat<tstring>()(k)); std::string r = s.substr(s.rfind('/') + 1); }",
        inputs=("x: float", "t: string"),
    ),
    "substr: asked": kernel(
        "for (int64_t k = 0; k < t.NumElements(); ++k) { const std::string s(t.flat<tstring>()(k)); const auto at = s.find(\"://\");\n"
        "const std::string r = at == std::string::npos ? s : s.substr(at + 3); }",
        inputs=("x: float", "t: string"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_is_found_in_other_words(name: str) -> None:
    code, source = BAD[name]
    assert code in codes(source)


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_silent(name: str) -> None:
    assert codes(GOOD[name]) == set()
