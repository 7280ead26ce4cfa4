"""Is a pointer kept, or what it points to copied? The type of what it is stored in decides, in all spellings."""

from __future__ import annotations

import pytest

from op_sources import codes, kernel

POINTER = "const float* p = x.flat<float>().data(); const int64_t n = x.NumElements(); mutex_lock lock(mu_); "
FRAME = "struct Frame { std::vector<float> data; const float* other = nullptr; }; "

COPIED = {
    "assign": ("kept_.assign(p, p + n);", "std::vector<float> kept_;"),
    "guarded": ("kept_.assign(p, p + n);", "std::vector<float> kept_ TF_GUARDED_BY(mu_);"),
    "a new vector": ("kept_ = std::vector<float>(p, p + n);", "std::vector<float> kept_;"),
    "insert": ("kept_.clear(); kept_.insert(kept_.end(), p, p + n);", "std::vector<float> kept_;"),
    "another container": ("kept_.assign(p, p + n);", "std::deque<float> kept_;"),
    "a set": ("seen_.clear(); seen_.insert(p, p + n);", "std::set<float> seen_;"),
    "text": ("auto t = x.tensor_data(); text_.assign(t.data(), t.size());", "std::string text_;"),
    "a new text": ("auto t = x.tensor_data(); text_ = std::string(t.data(), t.size());", "std::string text_;"),
    "text from a pointer": ("const char* c = x.tensor_data().data(); text_ = c;", "std::string text_;"),
    "append": (
        "const char* c = static_cast<const char*>(x.data()); text_.clear(); text_.append(c, x.TotalBytes());",
        "std::string text_;",
    ),
    "an element of a map": ("cache_[n].assign(p, p + n);", "std::map<int64_t, std::vector<float>> cache_;"),
    "a row": (
        "if (rows_.size() > 8) rows_.clear(); rows_.emplace_back(p, p + n);",
        "std::vector<std::vector<float>> rows_;",
    ),
    "another name": ("kept_.assign(p, p + n);", "using Row = std::vector<float>; Row kept_;"),
    "memcpy": ("kept_.resize(n); std::memcpy(kept_.data(), p, x.TotalBytes());", "std::vector<float> kept_;"),
    "a field": ("frame_.data.assign(p, p + n);", FRAME + "Frame frame_;"),
    "a field of an element": ("cache_[n].data.assign(p, p + n);", FRAME + "std::map<int64_t, Frame> cache_;"),
    "a tensor of Eigen's": ("mean_ = x.flat<float>();", "Eigen::Tensor<float, 1, Eigen::RowMajor> mean_;"),
    "behind a pointer": (
        "kept_->assign(p, p + n);",
        "std::unique_ptr<std::vector<float>> kept_ = std::make_unique<std::vector<float>>();",
    ),
    "behind pointers": ("rows_[0]->assign(p, p + n);", "std::vector<std::vector<float>*> rows_;"),
    "static": ("static std::vector<float> kept; kept.assign(p, p + n);", ""),
}
KEPT = {
    "a pointer": ("kept_ = p;", "const float* kept_ = nullptr;"),
    "another name": ("kept_ = p;", "using Pointer = const float*; Pointer kept_ = nullptr;"),
    "pointers": ("if (rows_.size() > 8) rows_.clear(); rows_.push_back(p);", "std::vector<const float*> rows_;"),
    "views of text": (
        "auto t = x.tensor_data(); views_.clear(); views_.emplace_back(t.data(), t.size());",
        "std::vector<absl::string_view> views_;",
    ),
    "a span": ("span_ = absl::MakeConstSpan(p, n);", "absl::Span<const float> span_;"),
    "a view": ("view_ = x.flat<float>();", "TTypes<float>::ConstFlat view_;"),
    "a field": ("frame_.other = p;", FRAME + "Frame frame_;"),
    "a field of an element": ("cache_[n].other = p;", FRAME + "std::map<int64_t, Frame> cache_;"),
    "static": ("static const float* kept = nullptr; kept = p;", ""),
}


@pytest.mark.parametrize("body, members", COPIED.values(), ids=COPIED)
def test_a_copy_is_no_dangling_pointer(body: str, members: str) -> None:
    assert codes(kernel(POINTER + body, members="mutex mu_; " + members)) == set()


@pytest.mark.parametrize("body, members", KEPT.values(), ids=KEPT)
def test_a_pointer_that_outlives_the_call_is_one(body: str, members: str) -> None:
    assert "OP115" in codes(kernel(POINTER + body, members="mutex mu_; " + members))
