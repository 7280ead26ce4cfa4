# ruff: noqa: E501  (C++ as people write it)
"""Each rule on small ops: what it must find, and correct code in several spellings on which all rules stay silent."""

from __future__ import annotations

import pytest

from op_sources import codes, kernel

OUTPUT = "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));"

BAD = {
    # ------------------------------------------------------------------------------------------- rank
    "matrix": ("OP101", kernel("auto m = x.matrix<float>();")),
    "vector": ("OP101", kernel("auto v = w.vec<float>();")),
    "tensor of rank 4": ("OP101", kernel("auto t = x.tensor<float, 4>();")),
    "scalar": ("OP101", kernel("const float s = w.scalar<float>()();")),
    "a dimension": ("OP101", kernel("const int64_t rows = x.dim_size(0);")),
    "a dimension of the shape": ("OP101", kernel("const int64_t rows = x.shape().dim_size(1);")),
    "the last dimension": ("OP101", kernel("const int64_t n = x.dim_size(x.dims() - 1);")),
    "another input was checked": (
        "OP101",
        kernel('OP_REQUIRES(ctx, w.dims() == 2, errors::InvalidArgument("w")); auto m = x.matrix<float>();'),
    ),
    "only alike": (
        "OP101",
        kernel('OP_REQUIRES(ctx, x.shape() == w.shape(), errors::InvalidArgument("")); auto m = x.matrix<float>();'),
    ),
    "in a function": (
        "OP101",
        kernel("Use(x);", before="static float Use(const Tensor& t) { return t.matrix<float>()(0, 0); }"),
    ),
    # ------------------------------------------------------------------------------------------- type
    "type without constraint": (
        "OP102",
        kernel("auto v = x.flat<float>();", inputs=("x: T",), attrs=("T: {float, double}",)),
    ),
    "another type than registered": ("OP102", kernel("auto v = i.flat<int32>();")),
    "cast of the data": (
        "OP102",
        kernel("const float* p = static_cast<const float*>(x.data());", inputs=("x: T",), attrs=("T: type",)),
    ),
    # ------------------------------------------------------------------------------------------ sizes
    "two inputs": (
        "OP103",
        kernel("for (int64_t n = 0; n < x.NumElements(); ++n) y->flat<float>()(n) = w.flat<float>()(n);"),
    ),
    "by pointers": (
        "OP103",
        kernel(
            "const float* a = x.flat<float>().data(); const float* b = w.flat<float>().data();\n"
            "const int64_t n = x.NumElements(); float s = 0; for (int64_t k = 0; k < n; ++k) s += a[k] * b[k];"
        ),
    ),
    "memcpy of another's bytes": (
        "OP103",
        kernel("std::memcpy(y->flat<float>().data(), w.flat<float>().data(), w.TotalBytes());"),
    ),
    "a fixed count": ("OP103", kernel("float s = 0; for (int k = 0; k < 3; ++k) s += w.flat<float>()(k);")),
    # ------------------------------------------------------------------------------------------ empty
    "element 0": ("OP104", kernel("const float first = x.flat<float>()(0);")),
    "element 0 of the data": ("OP104", kernel("const float* p = x.flat<float>().data(); float m = p[0];")),
    "the last element": ("OP104", kernel("const float last = x.flat<float>()(x.NumElements() - 1);")),
    "begin of the data": ("OP104", kernel("float m = *x.flat<float>().data();")),
    "integer mean": (
        "OP104",
        kernel("int64_t s = 0; const int64_t mean = s / i.NumElements();"),
    ),
    "modulo the size": ("OP104", kernel("for (int k = 0; k < 9; ++k) { int64_t at = k % x.NumElements(); }")),
    # ------------------------------------------------------------------------------------- index, size
    "gather": (
        "OP105",
        kernel("for (int64_t n = 0; n < i.NumElements(); ++n) { float v = x.flat<float>()(i.flat<int64_t>()(n)); }"),
    ),
    "scatter": (
        "OP105",
        kernel(
            "auto at = i.flat<int64_t>(); float* out = y->flat<float>().data();\n"
            "for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = at(n); out[k] += 1.0f; }"
        ),
    ),
    "only from above": (
        "OP105",
        kernel(
            "auto at = i.flat<int64_t>(); auto in = x.flat<float>();\n"
            "for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = at(n);\n"
            'OP_REQUIRES(ctx, k < in.size(), errors::InvalidArgument("")); float v = in(k); }'
        ),
    ),
    "pointer plus data": (
        "OP105",
        kernel(
            'OP_REQUIRES(ctx, i.NumElements() == 1, errors::InvalidArgument(""));\n'
            "const float* p = x.flat<float>().data() + i.flat<int64_t>()(0); float v = *p;"
        ),
    ),
    "vector by data": (
        "OP106",
        kernel(
            'OP_REQUIRES(ctx, i.NumElements() == 1, errors::InvalidArgument(""));\nconst int64_t n = i.flat<int64_t>()(0); std::vector<float> v(n);'
        ),
    ),
    "shape by data": (
        "OP106",
        kernel(
            'OP_REQUIRES(ctx, i.dims() == 0, errors::InvalidArgument("")); const int64_t n = i.scalar<int64_t>()();\n'
            "Tensor t; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, TensorShape({n}), &t));"
        ),
    ),
    "a difference": (
        "OP106",
        kernel(
            'OP_REQUIRES(ctx, x.dims() == 1 && w.dims() == 1, errors::InvalidArgument(""));\n'
            "Tensor t; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT,\n"
            "TensorShape({x.dim_size(0) - w.dim_size(0) + 1}), &t));"
        ),
    ),
    "division by data": (
        "OP107",
        kernel("auto v = i.flat<int64_t>(); for (int64_t n = 0; n < v.size(); ++n) { int64_t q = 100 / v(n); }"),
    ),
    "not negative is not enough": (
        "OP107",
        kernel(
            'OP_REQUIRES(ctx, i.dims() == 0, errors::InvalidArgument("")); const int64_t d = i.scalar<int64_t>()();\n'
            'OP_REQUIRES(ctx, d >= 0, errors::InvalidArgument("")); const int64_t q = 10 % d;'
        ),
    ),
    "modulo an attribute": (
        "OP107",
        kernel(
            "const int64_t q = 100 % k_;",
            members="int64_t k_;",
            construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("k", &k_));',
        ),
    ),
    # ------------------------------------------------------------------------------------ past the end
    "less or equal": (
        "OP108",
        kernel("auto v = y->flat<float>(); for (int64_t n = 0; n <= x.NumElements(); ++n) v(n) = 1;"),
    ),
    "the neighbour": (
        "OP108",
        kernel("auto v = x.flat<float>(); float s = 0; for (int64_t n = 0; n < v.size(); ++n) s += v(n + 1) - v(n);"),
    ),
    "the neighbour before": (
        "OP108",
        kernel("auto v = x.flat<float>(); float s = 0; for (int64_t n = 0; n < v.size(); ++n) s += v(n) - v(n - 1);"),
    ),
    "a longer loop": (
        "OP108",
        kernel("float* o = y->flat<float>().data(); for (int64_t n = 0; n < x.NumElements() + 8; ++n) o[n] = 0;"),
    ),
    "a local array": ("OP108", kernel("float sums[4] = {}; for (int n = 0; n <= 4; ++n) sums[n] = 1;")),
    "in steps of four": (
        "OP108",
        kernel(
            "auto v = x.flat<float>(); float s = 0;\n"
            "for (int64_t n = 0; n < v.size(); n += 4) s += v(n) + v(n + 1) + v(n + 2) + v(n + 3);"
        ),
    ),
    "the other dimension": (
        "OP108",
        kernel(
            'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); auto m = x.matrix<float>(); float s = 0;\n'
            "for (int64_t r = 0; r < x.dim_size(0); ++r) for (int64_t c = 0; c < x.dim_size(1); ++c) s += m(c, r);"
        ),
    ),
    # ----------------------------------------------------------------------------------------- status
    "allocate without a look": ("OP109", kernel("Tensor t; ctx->allocate_temp(DT_FLOAT, x.shape(), &t);")),
    "status that nobody asks": (
        "OP109",
        kernel("Tensor t; Status s = ctx->allocate_temp(DT_FLOAT, x.shape(), &t);"),
    ),
    "own function": (
        "OP109",
        kernel(
            "int64_t n = 0; Parse(x, &n);",
            before='Status Parse(const Tensor& t, int64_t* n) { if (t.dims() != 1) return errors::InvalidArgument(""); *n = t.dim_size(0); return OkStatus(); }',
        ),
    ),
    "attribute without a look": (
        "OP109",
        kernel("", members="int64_t k_ = 0;", construct='ctx->GetAttr("k", &k_);'),
    ),
    "no return": (
        "OP110",
        kernel('if (x.dims() != 2) { ctx->SetStatus(errors::InvalidArgument("rank")); }\nauto m = x.matrix<float>();'),
    ),
    "failure without a return": (
        "OP110",
        kernel('if (x.dims() != 2) ctx->CtxFailure(absl::InvalidArgumentError("rank"));\nauto m = x.matrix<float>();'),
    ),
    "OP_REQUIRES in a helper": (
        "OP110",
        kernel(
            "Check(ctx, x);\nauto m = x.matrix<float>();",
            before='void Check(OpKernelContext* ctx, const Tensor& t) { OP_REQUIRES(ctx, t.dims() == 2, errors::InvalidArgument("rank")); }',
        ),
    ),
    # ---------------------------------------------------------------------------------------- outputs
    "early return": (
        "OP111",
        kernel(f"if (x.NumElements() == 0) return;\n{OUTPUT} y->flat<float>().setZero();", output=False),
    ),
    "in a branch": (
        "OP111",
        kernel(f"if (x.NumElements() < 100) {{ {OUTPUT} y->flat<float>().setZero(); }}", output=False),
    ),
    "the second output": (
        "OP111",
        kernel("", outputs=("y: float", "z: float")),
    ),
    "never written": ("OP112", kernel(OUTPUT, output=False)),
    "added to": (
        "OP112",
        kernel(f"{OUTPUT} for (int64_t n = 0; n < x.NumElements(); ++n) y->flat<float>()(n) += 1;", output=False),
    ),
    "where the data allows": (
        "OP112",
        kernel(
            f"{OUTPUT} auto in = x.flat<float>(); auto out = y->flat<float>();\n"
            "for (int64_t n = 0; n < in.size(); ++n) { if (in(n) > 0) out(n) = in(n); }",
            output=False,
        ),
    ),
    # ----------------------------------------------------------------------------------------- memory
    "new without delete": ("OP113", kernel("float* t = new float[16]; t[0] = 1;")),
    "left between": (
        "OP113",
        kernel(
            "float* t = new float[16];\n"
            'OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("empty"));\ndelete[] t;'
        ),
    ),
    "malloc and return": (
        "OP113",
        kernel("char* t = (char*)malloc(64); if (x.NumElements() == 0) return; free(t);"),
    ),
    "thread": ("OP113", kernel("std::thread t([] {});")),
    "freed twice": ("OP114", kernel("float* t = new float[4]; delete[] t; delete[] t;")),
    "freed twice on a path": (
        "OP114",
        kernel("char* t = (char*)malloc(64); if (x.NumElements() == 0) { free(t); } free(t);"),
    ),
    "used after": ("OP114", kernel("float* t = new float[4]; t[0] = 1; delete[] t; float v = t[0];")),
    "moved elements": (
        "OP114",
        kernel("std::vector<float> v(2, 0.0f); float& first = v[0]; v.push_back(1); first = 2;"),
    ),
    "temporary text": ("OP115", kernel('const char* p = absl::StrCat("a", name()).c_str(); LOG(INFO) << p;')),
    "view of a temporary": ("OP115", kernel("absl::string_view v = std::to_string(x.dims()); LOG(INFO) << v;")),
    "kept data": (
        "OP115",
        kernel(
            "mutex_lock l(mu_); last_ = x.flat<float>().data();", members="mutex mu_; const float* last_ = nullptr;"
        ),
    ),
    "kept static": ("OP115", kernel("static const float* last = nullptr; last = x.flat<float>().data();")),
    "inner block": (
        "OP115",
        kernel("const float* p = nullptr; { std::vector<float> v(4, 1.0f); p = v.data(); } float s = p[0];"),
    ),
    "returned local": (
        "OP115",
        kernel(
            "const float* t = Table(); float s = t[0];",
            before="static const float* Table() { float values[4] = {1, 2, 3, 4}; return values; }",
        ),
    ),
    # ---------------------------------------------------------------------------------------- threads
    "member": ("OP116", kernel("++calls_;", members="int64_t calls_ = 0;")),
    "member container": (
        "OP116",
        kernel("cache_.push_back(1.0f); cache_.clear();", members="std::vector<float> cache_;"),
    ),
    "static": ("OP116", kernel("static int64_t calls = 0; calls += 1;")),
    "global": ("OP116", kernel("g_total += x.NumElements();", before="static int64_t g_total = 0;")),
    "temp into a member": (
        "OP116",
        kernel("OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, x.shape(), &scratch_));", members="Tensor scratch_;"),
    ),
    "sum of shards": (
        "OP116",
        kernel(
            "float sum = 0; auto in = x.flat<float>();\n"
            "auto work = [&](int64_t begin, int64_t end) { for (int64_t n = begin; n < end; ++n) sum += in(n); };\n"
            "auto& pool = *ctx->device()->tensorflow_cpu_worker_threads();\n"
            "Shard(pool.num_threads, pool.workers, in.size(), 100, work);"
        ),
    ),
    "pushed by shards": (
        "OP116",
        kernel(
            "std::vector<int64_t> found; auto in = x.flat<float>();\n"
            "ctx->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(in.size(), 10,\n"
            "[&](int64_t b, int64_t e) { for (int64_t n = b; n < e; ++n) if (in(n) > 0) found.push_back(n); });"
        ),
    ),
    # -------------------------------------------------------------------------------------- exceptions
    "throw": ("OP117", kernel('if (x.dims() != 2) throw std::invalid_argument("rank");')),
    "throw in a function": (
        "OP117",
        kernel(
            "Check(x);",
            before='static void Check(const Tensor& t) { if (t.dims() != 2) throw std::runtime_error("rank"); }',
        ),
    ),
    "stoi": (
        "OP117",
        kernel("const int n = std::stoi(std::string(s.flat<tstring>()(0)));", inputs=("x: float", "s: string")),
    ),
    "at": (
        "OP117",
        kernel("std::vector<float> t = {1, 2}; for (int64_t n = 0; n < x.NumElements(); ++n) { float v = t.at(n); }"),
    ),
    # ------------------------------------------------------------------------------------------- stack
    "4 MiB": ("OP118", kernel("float t[1 << 20]; t[0] = 1;")),
    "by the input": ("OP118", kernel("float t[x.NumElements()];")),
    "alloca": ("OP118", kernel("float* t = (float*)alloca(x.NumElements() * sizeof(float));")),
    "recursion": (
        "OP118",
        kernel(
            "float s = Sum(x.flat<float>().data(), x.NumElements());",
            before="static float Sum(const float* p, int64_t n) { if (n == 0) return 0; return p[0] + Sum(p + 1, n - 1); }",
        ),
    ),
    # --------------------------------------------------------------------------------------- alignment
    "moved by one": ("OP119", kernel("const float* p = x.flat<float>().data() + 1; __m256 v = _mm256_load_ps(p);")),
    "each row": (
        "OP119",
        kernel(
            'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); const int64_t c = x.dim_size(1);\n'
            "const float* p = x.flat<float>().data();\n"
            "for (int64_t r = 0; r < x.dim_size(0); ++r) { __m128 v = _mm_load_ps(p + r * c); }"
        ),
    ),
    "vector's memory": ("OP119", kernel("std::vector<float> v(8, 0.0f); __m256 a = _mm256_load_ps(v.data());")),
    "a slice as vectors": (
        "OP119",
        kernel("const float* p = x.unaligned_flat<float>().data() + 1; auto v = *reinterpret_cast<const __m256*>(p);"),
    ),
    # -------------------------------------------------------------------------------------------- null
    "not allocated yet": ("OP120", kernel("Tensor* t = nullptr; auto v = t->flat<float>();")),
    "nullptr returned": (
        "OP120",
        kernel(
            'const float* t = Find("b"); float v = t[0];',
            before='static const float kA[1] = {1}; static const float* Find(const std::string& n) { if (n == "a") return kA; return nullptr; }',
        ),
    ),
    "find without end": (
        "OP120",
        kernel("float v = table_.find(1)->second;", members="std::unordered_map<int, float> table_;"),
    ),
    # ------------------------------------------------------------------------------------------- locks
    "taken twice": (
        "OP121",
        kernel(
            "mutex_lock l(mu_); Count();",
            members="mutex mu_; int64_t n_ = 0; void Count() { mutex_lock l(mu_); ++n_; }",
        ),
    ),
    "kept": (
        "OP121",
        kernel(
            'mu_.lock(); OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("")); n_ += 1; mu_.unlock();',
            members="mutex mu_; int64_t n_ = 0;",
        ),
    ),
    # ------------------------------------------------------------------------------------------- input
    "const_cast": (
        "OP122",
        kernel(
            "float* p = const_cast<float*>(x.flat<float>().data()); for (int64_t n = 0; n < x.NumElements(); ++n) p[n] = 0;"
        ),
    ),
    "copy of the tensor": (
        "OP122",
        kernel("Tensor t = ctx->input(0); auto v = t.flat<float>(); for (int64_t n = 0; n < v.size(); ++n) v(n) = 0;"),
    ),
    # ------------------------------------------------------------------------------------ asynchronous
    "without done": (
        "OP123",
        kernel("if (x.NumElements() == 0) return; done();", base="AsyncOpKernel", output=False),
    ),
    "OP_REQUIRES": (
        "OP123",
        kernel(
            'OP_REQUIRES(ctx, x.dims() == 1, errors::InvalidArgument("")); done();', base="AsyncOpKernel", output=False
        ),
    ),
    "done twice": (
        "OP123",
        kernel("if (x.NumElements() == 0) { done(); } done();", base="AsyncOpKernel", output=False),
    ),
    # ------------------------------------------------------------------------------------------- shape
    "no shape function": ("OP124", kernel("", shape="")),
    "another input's shape": (
        "OP125",
        kernel(
            "",
            shape=".SetShapeFn([](shape_inference::InferenceContext* c) { c->set_output(0, c->input(1)); return OkStatus(); })",
        ),
    ),
    "a scalar": ("OP125", kernel("", shape=".SetShapeFn(shape_inference::ScalarShape)")),
    # ------------------------------------------------------------------------------------------ others
    "grows": (
        "OP126",
        kernel(
            "mutex_lock l(mu_); seen_.push_back(x.NumElements());", members="mutex mu_; std::vector<int64_t> seen_;"
        ),
    ),
    "memcpy into an array": (
        "OP127",
        kernel("char t[64]; std::memcpy(t, x.flat<float>().data(), x.TotalBytes());"),
    ),
    "strcpy": (
        "OP127",
        kernel("char t[64]; strcpy(t, s.flat<tstring>()(0).c_str());", inputs=("x: float", "s: string")),
    ),
    "a loop over the input": (
        "OP127",
        kernel("float t[64]; for (int64_t n = 0; n < x.NumElements(); ++n) t[n] = x.flat<float>()(n);"),
    ),
    "product of values": (
        "OP128",
        kernel(
            'OP_REQUIRES(ctx, h.dims() == 0 && w.dims() == 0, errors::InvalidArgument(""));\n'
            "const int32 a = h.scalar<int32>()(), b = w.scalar<int32>()(); const int32 n = a * b;",
            inputs=("x: float", "h: int32", "w: int32"),
        ),
    ),
    "not set": ("OP129", kernel("float sum; for (int64_t n = 0; n < x.NumElements(); ++n) sum += x.flat<float>()(n);")),
    "member not set": ("OP129", kernel("float v = scale_ * 2;", members="float scale_;")),
    "CHECK": ("OP130", kernel('CHECK_EQ(x.dims(), 2) << "rank"; auto m = x.matrix<float>();')),
    "assert": ("OP130", kernel("assert(x.dims() == 2); auto m = x.matrix<float>();")),
    "abort": ("OP130", kernel("if (x.dims() != 2) abort();")),
    "reversed in place": (
        "OP131",
        kernel(
            "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output({0}, 0, x.shape(), &y));\n"
            "auto in = x.flat<float>(); auto out = y->flat<float>(); const int64_t n = in.size();\n"
            "for (int64_t k = 0; k < n; ++k) out(k) = in(n - 1 - k);",
            output=False,
        ),
    ),
    "no such input": ("OP132", kernel("const Tensor& z = ctx->input(3);")),
    "no such output": (
        "OP132",
        kernel("Tensor* z = nullptr; OP_REQUIRES_OK(ctx, ctx->allocate_output(1, x.shape(), &z));"),
    ),
    "scheduled by reference": (
        "OP133",
        kernel("ctx->device()->tensorflow_cpu_worker_threads()->workers->Schedule([&] { LOG(INFO) << x.dims(); });"),
    ),
    "CUDA": (
        "OP134",
        "__global__ void Twice(const float* in, int n, float* out) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  out[i] = in[i] * 2;\n}\n",
    ),
    "assembler for aligned addresses": (
        "OP119",
        kernel(
            "Step(x.flat<float>().data() + 1);",
            before='static void Step(const float* p) { asm volatile("vmovaps (%0), %%ymm0" :: "r"(p) : "xmm0"); }',
        ),
    ),
    "copied owner": (
        "OP135",
        kernel(
            "Buffer b(4); Use(b);",
            before="struct Buffer { explicit Buffer(int n) : p(new float[n]) {} ~Buffer() { delete[] p; } float* p; };\n"
            "static void Use(Buffer b) { b.p[0] = 1; }",
        ),
    ),
}

GOOD = {
    "ranks": kernel(
        'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); auto m = x.matrix<float>();\n'
        'OP_REQUIRES(ctx, TensorShapeUtils::IsVector(w.shape()), errors::InvalidArgument("")); auto v = w.vec<float>();\n'
        'OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(i.shape()), errors::InvalidArgument("")); auto s = i.scalar<int64_t>()();'
    ),
    "ranks by hand": kernel(
        'if (x.dims() != 2) { ctx->CtxFailure(errors::InvalidArgument("")); return; }\nauto m = x.matrix<float>();\n'
        'if (x.shape() != w.shape()) { ctx->SetStatus(errors::InvalidArgument("")); return; }\nauto n = w.matrix<float>();'
    ),
    "ranks in a variable": kernel(
        "const TensorShape& s = x.shape(); const int rank = s.dims();\n"
        'OP_REQUIRES(ctx, rank == 3, errors::InvalidArgument("")); auto t = x.tensor<float, 3>(); int64_t d = s.dim_size(2);'
    ),
    "ranks in a function that says so": kernel(
        "OP_REQUIRES_OK(ctx, Check(x)); auto m = x.matrix<float>(); int64_t r = x.dim_size(0);",
        before='static Status Check(const Tensor& t) { if (t.dims() != 2) return errors::InvalidArgument(""); return OkStatus(); }',
    ),
    "ranks in a function that returns bool": kernel(
        "if (!Check(ctx, x)) return; auto m = x.matrix<float>();",
        before='static bool Check(OpKernelContext* c, const Tensor& t) { if (t.dims() == 2) return true; c->CtxFailure(errors::InvalidArgument("")); return false; }',
    ),
    "the caller looks": kernel(
        "Check(ctx, x); if (!ctx->status().ok()) return; auto m = x.matrix<float>();",
        before='static void Check(OpKernelContext* ctx, const Tensor& t) { OP_REQUIRES(ctx, t.dims() == 2, errors::InvalidArgument("")); }',
    ),
    "ranks by a macro": kernel(
        "NEED(x.dims() == 2); auto m = x.matrix<float>();",
        before='#define NEED(condition) OP_REQUIRES(ctx, condition, errors::InvalidArgument(#condition))',
    ),
    "loops over dimensions": kernel("int64_t n = 1; for (int d = 0; d < x.dims(); ++d) n *= x.dim_size(d);"),
    "in a branch": kernel("if (x.dims() == 2) { auto m = x.matrix<float>(); } else if (x.dims() == 1) { auto v = x.vec<float>(); }"),
    "types": kernel(
        "if (x.dtype() == DT_FLOAT) { auto v = x.flat<float>(); } else { auto v = x.flat<double>(); }",
        inputs=("x: T",), attrs=("T: {float, double}",), output=False, outputs=(),
    ),
    "sizes compared": kernel(
        'OP_REQUIRES(ctx, x.NumElements() == w.NumElements(), errors::InvalidArgument(""));\n'
        "for (int64_t n = 0; n < x.NumElements(); ++n) y->flat<float>()(n) = w.flat<float>()(n);"
    ),
    "sizes compared through a variable": kernel(
        'const int64_t n = x.NumElements(); OP_REQUIRES(ctx, w.NumElements() == n, errors::InvalidArgument(""));\n'
        "const float* a = x.flat<float>().data(); const float* b = w.flat<float>().data(); float s = 0;\n"
        "for (int64_t k = 0; k < n; ++k) s += a[k] * b[k];"
    ),
    "the same size": kernel(
        'OP_REQUIRES(ctx, x.IsSameSize(w), errors::InvalidArgument(""));\n'
        "std::memcpy(y->flat<float>().data(), w.flat<float>().data(), w.TotalBytes());"
    ),
    "the shorter of both": kernel(
        "const int64_t n = std::min(x.NumElements(), w.NumElements()); float s = 0;\n"
        "for (int64_t k = 0; k < n; ++k) s += x.flat<float>()(k) * w.flat<float>()(k);"
    ),
    "not empty": kernel(
        'OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("")); auto v = x.flat<float>();\n'
        "const float a = v(0), b = v(v.size() - 1); int64_t m = 7 / x.NumElements();"
    ),
    "empty is done": kernel(
        "const int64_t n = x.NumElements(); if (n == 0) return; const float a = x.flat<float>()(0); int64_t m = 7 % n;"
    ),
    "inside of the loop": kernel(
        "auto v = x.flat<float>(); for (int64_t n = 0; n < v.size(); ++n) { if (v(n) > v(0)) y->flat<float>()(n) = 1; }"
    ),
    "at least one": kernel("const int64_t n = std::max<int64_t>(x.NumElements(), 1); int64_t m = 7 / n;"),
    "floating mean": kernel("float s = 0; s = s / static_cast<float>(x.NumElements());"),
    "indices checked": kernel(
        "auto at = i.flat<int64_t>(); auto in = x.flat<float>();\n"
        "for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = internal::SubtleMustCopy(at(n));\n"
        'OP_REQUIRES(ctx, FastBoundsCheck(k, in.size()), errors::InvalidArgument("")); float v = in(k); }'
    ),
    "indices checked by hand": kernel(
        "auto at = i.flat<int64_t>(); const float* in = x.flat<float>().data(); const int64_t size = x.NumElements();\n"
        "for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = at(n); if (k < 0 || k >= size) continue; float v = in[k]; }"
    ),
    "indices checked before": kernel(
        "auto at = i.flat<int64_t>(); auto in = x.flat<float>();\n"
        'for (int64_t n = 0; n < at.size(); ++n) OP_REQUIRES(ctx, at(n) >= 0 && at(n) < in.size(), errors::InvalidArgument(""));\n'
        "for (int64_t n = 0; n < at.size(); ++n) { float v = in(at(n)); }"
    ),
    "indices clamped": kernel(
        'OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("")); auto at = i.flat<int64_t>();\n'
        "for (int64_t n = 0; n < at.size(); ++n) {\n"
        "const int64_t k = std::min<int64_t>(std::max<int64_t>(at(n), 0), x.NumElements() - 1); float v = x.flat<float>()(k);\n"
        "const int64_t j = std::clamp<int64_t>(at(n), 0, x.NumElements() - 1); float u = x.flat<float>()(j); }"
    ),
    "indices compared unsigned": kernel(
        "auto at = i.flat<int64_t>(); auto in = x.flat<float>();\n"
        "for (int64_t n = 0; n < at.size(); ++n) { const int64_t k = at(n);\n"
        'OP_REQUIRES(ctx, static_cast<uint64_t>(k) < static_cast<uint64_t>(in.size()), errors::OutOfRange("")); float v = in(k); }'
    ),
    "sizes from data checked": kernel(
        'OP_REQUIRES(ctx, i.dims() == 0, errors::InvalidArgument("")); const int64_t n = i.scalar<int64_t>()();\n'
        'OP_REQUIRES(ctx, n >= 0 && n <= 1000, errors::InvalidArgument("")); std::vector<float> v(n);\n'
        "Tensor t; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, TensorShape({n}), &t)); if (n != 0) { int64_t q = 5 / n; }"
    ),
    "attributes checked": kernel(
        "const int64_t q = 100 % k_;", members="int64_t k_;",
        construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("k", &k_)); OP_REQUIRES(ctx, k_ > 0, errors::InvalidArgument(""));',
    ),
    "attributes limited by the registration": kernel(
        "const int64_t q = 100 % k_;", attrs=("k: int >= 1",), members="int64_t k_;",
        construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("k", &k_));',
    ),
    "neighbours": kernel(
        "auto v = x.flat<float>(); float s = 0; for (int64_t n = 0; n + 1 < v.size(); ++n) s += v(n + 1) - v(n);\n"
        "for (int64_t n = 1; n < v.size(); ++n) s += v(n) - v(n - 1);\n"
        "for (int64_t n = 0; n < v.size(); ++n) s += n > 0 ? v(n - 1) : 0;\n"
        "for (int64_t n = v.size() - 1; n >= 0; --n) s += v(n);"
    ),
    "in steps of four": kernel(
        "auto v = x.flat<float>(); float s = 0; int64_t n = 0;\n"
        "for (; n + 4 <= v.size(); n += 4) s += v(n) + v(n + 1) + v(n + 2) + v(n + 3);\nfor (; n < v.size(); ++n) s += v(n);\n"
        "const int64_t even = v.size() / 2 * 2; for (int64_t k = 0; k < even; k += 2) s += v(k) * v(k + 1);"
    ),
    "rows and columns": kernel(
        'OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); auto m = x.matrix<float>(); float s = 0;\n'
        "const int64_t rows = x.dim_size(0), cols = x.dim_size(1); const float* p = x.flat<float>().data();\n"
        "for (int64_t r = 0; r < rows; ++r) for (int64_t c = 0; c < cols; ++c) s += m(r, c) + p[r * cols + c];"
    ),
    "status looked at": kernel(
        "Tensor t; Status s = ctx->allocate_temp(DT_FLOAT, x.shape(), &t); if (!s.ok()) { ctx->SetStatus(s); return; }\n"
        "Tensor u; OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, x.shape(), &u));"
    ),
    "outputs on all paths": kernel(
        f"{OUTPUT} if (x.NumElements() == 0) return; auto out = y->flat<float>(); out.setConstant(1);", output=False
    ),
    "output is the input": kernel("if (x.NumElements() == 0) { ctx->set_output(0, x); return; } ctx->set_output(0, w);", output=False),
    "output in both branches": kernel(
        "Tensor* y = nullptr; if (x.dims() == 0) { OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({1}), &y)); }\n"
        "else { OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y)); }\n y->flat<float>() = y->flat<float>().constant(0);",
        output=False,
    ),
    "written in both branches": kernel(
        f"{OUTPUT} auto in = x.flat<float>(); auto out = y->flat<float>();\n"
        "for (int64_t n = 0; n < in.size(); ++n) { if (in(n) > 0) out(n) = in(n); else out(n) = 0; }",
        output=False,
    ),
    "written by Eigen": kernel(
        f"{OUTPUT} y->flat<float>().device(ctx->eigen_cpu_device()) = x.flat<float>() * 2.0f;", output=False
    ),
    "written by a functor": kernel(
        f"{OUTPUT} Twice()(x.flat<float>(), y->flat<float>());", output=False,
        before="struct Twice { void operator()(TTypes<float>::ConstFlat in, TTypes<float>::Flat out) { out = in * 2.0f; } };",
    ),
    "memory with an owner": kernel(
        "auto a = std::make_unique<float[]>(16); std::vector<float> b(16); std::unique_ptr<float[]> c(new float[16]); a[0] = b[0] = c[0] = 1;"
    ),
    "memory given back": kernel(
        "float* t = new float[16]; t[0] = 1; if (x.NumElements() == 0) { delete[] t; return; } delete[] t;\n"
        "char* m = static_cast<char*>(malloc(64)); if (m == nullptr) return; m[0] = 0; free(m);"
    ),
    "thread joined": kernel("std::thread t([] {}); t.join();"),
    "elements taken again": kernel("std::vector<float> v(2, 0.0f); v.push_back(1); float& first = v[0]; first = 2;"),
    "text with a name": kernel('const std::string t = absl::StrCat("a", name()); const char* p = t.c_str(); LOG(INFO) << p << name().c_str();'),
    "tensor kept under a lock": kernel("mutex_lock l(mu_); last_ = x;", members="mutex mu_; Tensor last_ TF_GUARDED_BY(mu_);"),
    "locks and atomics": kernel(
        "{ mutex_lock l(mu_); ++calls_; } hits_.fetch_add(1); hits_ += 1; static std::atomic<int> n{0}; n++;\n"
        "{ std::lock_guard<std::mutex> g(other_); cache_[1] = 2; }",
        members="mutex mu_; int64_t calls_ = 0; std::atomic<int64_t> hits_{0}; std::mutex other_; std::map<int, int> cache_;",
    ),
    "shards with their own": kernel(
        "auto in = x.flat<float>(); auto out = y->flat<float>(); mutex mu; float total = 0; std::atomic<int64_t> count{0};\n"
        "auto work = [&](int64_t begin, int64_t end) { float own = 0;\n"
        "for (int64_t n = begin; n < end; ++n) { out(n) = in(n) * 2; own += in(n); ++count; }\nmutex_lock l(mu); total += own; };\n"
        "auto& pool = *ctx->device()->tensorflow_cpu_worker_threads(); Shard(pool.num_threads, pool.workers, in.size(), 100, work);"
    ),
    "exceptions caught": kernel(
        'try { const int n = std::stoi("12"); if (n > 3) throw 1; } catch (const std::exception& e) { ctx->CtxFailure(errors::Internal(e.what())); return; }'
    ),
    "at within the size": kernel(
        "std::vector<float> t(x.NumElements(), 0.0f); for (int64_t n = 0; n < x.NumElements(); ++n) t.at(n) = 1;"
    ),
    "small arrays": kernel(
        "float t[256]; for (int n = 0; n < 256; ++n) t[n] = 0; char text[32]; snprintf(text, sizeof(text), \"%d\", x.dims());\n"
        'OP_REQUIRES(ctx, x.TotalBytes() <= sizeof(t), errors::InvalidArgument("")); std::memcpy(t, x.flat<float>().data(), x.TotalBytes());'
    ),
    "recursion that halves": kernel(
        "float s = Sum(x.flat<float>().data(), x.NumElements());",
        before="static float Sum(const float* p, int64_t n) { if (n <= 1) return n == 1 ? p[0] : 0; const int64_t half = n / 2; return Sum(p, half) + Sum(p + half, n - half); }",
    ),
    "aligned": kernel(
        "const float* p = x.flat<float>().data(); int64_t n = 0; for (int64_t k = 0; k + 8 <= x.NumElements(); k += 8) {\n"
        "__m256 u = _mm256_loadu_ps(p + k + 1); }\nfor (int64_t k = 0; k < x.NumElements() / 8 * 8; k += 8) { __m256 v = _mm256_load_ps(p + k); }"
    ),
    "pointers asked": kernel(
        'const float* t = Find("b"); if (t == nullptr) { ctx->CtxFailure(errors::NotFound("")); return; } float v = t[0];\n'
        "auto it = table_.find(1); if (it == table_.end()) return; float u = it->second;",
        before='static const float kA[1] = {1}; static const float* Find(const std::string& n) { return n == "a" ? kA : nullptr; }',
        members="std::unordered_map<int, float> table_;",
    ),
    "locks given back": kernel(
        "{ mutex_lock l(mu_); ++n_; } Count(); mu_.lock(); ++n_; mu_.unlock();",
        members="mutex mu_; int64_t n_ = 0; void Count() { mutex_lock l(mu_); ++n_; }",
    ),
    "done once": kernel(
        'OP_REQUIRES_ASYNC(ctx, x.dims() == 1, errors::InvalidArgument(""), done);\n'
        "if (x.NumElements() == 0) { done(); return; }\nctx->device()->tensorflow_cpu_worker_threads()->workers->Schedule([ctx, done] { done(); });",
        base="AsyncOpKernel", output=False, outputs=(),
    ),
    "shapes agree": kernel(
        "", shape=".SetShapeFn([](shape_inference::InferenceContext* c) { c->set_output(0, c->input(0)); return OkStatus(); })"
    ),
    "limited container": kernel(
        "mutex_lock l(mu_); if (seen_.size() > 100) seen_.clear(); seen_.push_back(x.NumElements());",
        members="mutex mu_; std::vector<int64_t> seen_;",
    ),
    "products in 64 bits": kernel(
        'OP_REQUIRES(ctx, h.dims() == 0 && w.dims() == 0, errors::InvalidArgument(""));\n'
        "const int32 a = h.scalar<int32>()(), b = w.scalar<int32>()(); const int64_t n = static_cast<int64_t>(a) * b;",
        inputs=("x: float", "h: int32", "w: int32"),
    ),
    "set variables": kernel(
        "float sum = 0; int64_t n; n = x.NumElements(); for (int64_t k = 0; k < n; ++k) sum += x.flat<float>()(k); float v = scale_ * sum;",
        members="float scale_;", construct='OP_REQUIRES_OK(ctx, ctx->GetAttr("k", &scale_));',
    ),
    "what cannot happen": kernel('OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("")); CHECK_EQ(x.dims(), 2); DCHECK_GE(w.dims(), 0);'),
    "forwarded, each at its place": kernel(
        "Tensor* y = nullptr; OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output({0}, 0, x.shape(), &y));\n"
        "auto in = x.flat<float>(); auto out = y->flat<float>(); for (int64_t k = 0; k < in.size(); ++k) out(k) = in(k) * 2;",
        output=False,
    ),
    "CUDA": (
        "__global__ void Twice(const float* in, int n, float* out) {\n"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) out[i] = in[i] * 2;\n}\n"
    ),
    "assembler where it is aligned, and for any address": kernel(
        "Step(x.flat<float>().data() + 8, x.flat<float>().data() + 1);",
        before="static void Step(const float* p, const float* q) {\n"
        '  asm volatile("vmovaps (%0), %%ymm0\\n vmovups (%1), %%ymm1" :: "r"(p), "r"(q) : "xmm0", "xmm1"); }',
    ),
    "CUDA, one block": (
        "__global__ void Ones(float* out) {\n  __shared__ float part[64];\n  part[threadIdx.x] = 1;\n  __syncthreads();\n"
        "  out[threadIdx.x] = part[63 - threadIdx.x];\n}\n__global__ void Rows(float* out) { out[blockIdx.x] = 1; }\n"
        "void Launch(float* out) { Ones<<<1, 64>>>(out); Rows<<<64, 1>>>(out); }\n"
    ),
    "owner that is not copied": kernel(
        "Buffer b(4); Use(b);",
        before="struct Buffer { explicit Buffer(int n) : p(new float[n]) {} ~Buffer() { delete[] p; } Buffer(const Buffer&) = delete; Buffer& operator=(const Buffer&) = delete; float* p; };\n"
        "static void Use(Buffer& b) { b.p[0] = 1; }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_found(name: str) -> None:
    code, source = BAD[name]
    assert code in codes(source)


@pytest.mark.parametrize("name", GOOD)
def test_silent(name: str) -> None:
    assert codes(GOOD[name]) == set()
