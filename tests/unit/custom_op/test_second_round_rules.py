# ruff: noqa: E501  (C++ as people write it)
"""Rules that the second round of ops asked for: objects copied as bytes, orders that are none, erased iterators."""

from __future__ import annotations

import pytest

from op_sources import codes, kernel

WORDS = "const tstring* in = t.flat<tstring>().data(); std::vector<tstring> to(t.NumElements()); "
MAP = "std::map<int64_t, int> c; c[3] = 1; "
TEXT = {"inputs": ("x: float", "t: string")}
FOUND = {
    "memcpy of strings": (
        "OP136",
        kernel(WORDS + "std::memcpy(to.data(), in, t.NumElements() * sizeof(tstring));", **TEXT),
    ),
    "memmove of strings": ("OP136", kernel(WORDS + "memmove(&to[0], in, t.NumElements() * sizeof(tstring));", **TEXT)),
    "or equal": (
        "OP137",
        kernel("std::vector<float> v(9); std::sort(v.begin(), v.end(), [](float a, float b) { return a <= b; });"),
    ),
    "of pairs": (
        "OP137",
        kernel(
            "std::vector<int> v(9); std::stable_sort(v.begin(), v.end(), [&](int a, int b) { return v[a] >= v[b]; });"
        ),
    ),
    "ready made": (
        "OP137",
        kernel("std::vector<float> v(9); std::sort(v.begin(), v.end(), std::greater_equal<float>());"),
    ),
    "counted on": (
        "OP138",
        kernel(MAP + "for (auto it = c.begin(); it != c.end(); ++it) { if (it->second > 1) c.erase(it); }"),
    ),
    "by key": ("OP138", kernel(MAP + "for (const auto& e : c) { if (e.second > 1) { c.erase(e.first); } }")),
}
SILENT = {
    "copied": kernel(WORDS + "std::copy(in, in + t.NumElements(), to.begin());", **TEXT),
    "bytes of one": kernel("std::string s(8, 'a'); char to[8]; std::memcpy(to, s.data(), 8);"),
    "characters": kernel(
        "auto f = t.flat<tstring>(); for (int64_t k = 0; k < f.size(); ++k) { std::string s(f(k).data(), f(k).size()); }",
        **TEXT,
    ),
    "less": kernel("std::vector<float> v(9); std::sort(v.begin(), v.end(), [](float a, float b) { return a < b; });"),
    "several": kernel(
        "std::vector<int> v(9); std::sort(v.begin(), v.end(), [](int a, int b) { if (a % 2 != b % 2) return a % 2 < b % 2; return a < b; });"
    ),
    "a search": kernel(
        "std::vector<int> v(9); bool any = std::any_of(v.begin(), v.end(), [](int a) { return a >= 3; });"
    ),
    "goes on from there": kernel(
        MAP + "for (auto it = c.begin(); it != c.end();) { if (it->second > 1) it = c.erase(it); else ++it; }"
    ),
    "leaves": kernel(
        MAP + "for (auto it = c.begin(); it != c.end(); ++it) { if (it->second > 1) { c.erase(it); break; } }"
    ),
    "counted on before": kernel(
        MAP + "for (auto it = c.begin(); it != c.end();) { if (it->second > 1) c.erase(it++); else ++it; }"
    ),
    "another one": kernel(MAP + "std::map<int64_t, int> d; for (const auto& e : c) { d.erase(e.first); }"),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    code, source = FOUND[name]
    assert code in codes(source)


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str) -> None:
    assert not codes(SILENT[name]) & {"OP136", "OP137", "OP138"}
