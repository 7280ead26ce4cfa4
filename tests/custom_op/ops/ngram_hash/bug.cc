#include <cstring>
#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

static uint64 Fnv1a(const char* bytes, size_t length) {
  uint64 hash = 14695981039346656037ull;
  for (size_t i = 0; i < length; ++i) {
    hash ^= static_cast<unsigned char>(bytes[i]);
    hash *= 1099511628211ull;
  }
  return hash;
}

REGISTER_OP("NgramHash")
    .Input("tokens: string")
    .Attr("width: int >= 1 = 2")
    .Attr("buckets: int >= 1")
    .Output("ids: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle tokens;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &tokens));
      int64_t width;
      TF_RETURN_IF_ERROR(c->GetAttr("width", &width));
      if (!c->ValueKnown(c->Dim(tokens, 0))) {
        c->set_output(0, c->Vector(c->UnknownDim()));
        return absl::OkStatus();
      }
      const int64_t count = c->Value(c->Dim(tokens, 0));
      c->set_output(0, c->Vector(count < width ? 0 : count - width + 1));
      return absl::OkStatus();
    });

class NgramHashOp : public OpKernel {
 public:
  explicit NgramHashOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("width", &width_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("buckets", &buckets_));
    OP_REQUIRES(ctx, width_ >= 1 && buckets_ >= 1, errors::InvalidArgument("width and buckets must be positive"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& tokens = ctx->input(0);
    OP_REQUIRES(ctx, tokens.dims() == 1, errors::InvalidArgument("tokens must be a vector"));
    const auto words = tokens.vec<tstring>();
    const int64_t count = words.size() < width_ ? 0 : words.size() - width_ + 1;
    Tensor* ids = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({count}), &ids));
    if (count == 0) return;

    size_t longest = 0;
    for (int64_t i = 0; i < words.size(); ++i) longest = std::max(longest, words(i).size());
    OP_REQUIRES(ctx, longest < (size_t{1} << 30) / static_cast<size_t>(width_),
                errors::InvalidArgument("the n-grams are too long"));
    char* joined = new char[(longest + 1) * width_];
    auto out = ids->vec<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      size_t used = 0;
      for (int64_t k = 0; k < width_; ++k) {
        const tstring& word = words(i + k);
        OP_REQUIRES(ctx, !word.empty(), errors::InvalidArgument("token ", i + k, " is empty"));
        std::memcpy(&joined[used], word.data(), word.size());
        used += word.size();
        joined[used++] = '\x1f';
      }
      out(i) = static_cast<int64_t>(Fnv1a(joined, used) % static_cast<uint64>(buckets_));
    }
    delete[] joined;
  }

 private:
  int64_t width_;
  int64_t buckets_;
};

REGISTER_KERNEL_BUILDER(Name("NgramHash").Device(DEVICE_CPU), NgramHashOp);
