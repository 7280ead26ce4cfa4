#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PadTokens")
    .Input("tokens: int32")
    .Input("splits: int64")
    .Attr("multiple: int = 8")
    .Output("padded: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->MakeShape({c->UnknownDim(), c->UnknownDim()}));
      return absl::OkStatus();
    });

class PadTokensOp : public OpKernel {
 public:
  explicit PadTokensOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("multiple", &multiple_));
  }

  void Compute(OpKernelContext* ctx) override {
    auto tokens = ctx->input(0).flat<int32>();
    auto splits = ctx->input(1).flat<int64_t>();
    const int64_t rows = splits.size() - 1;
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; ++r) longest = std::max<int64_t>(longest, splits(r + 1) - splits(r));
    const int64_t stride = (longest + multiple_ - 1) / multiple_ * multiple_;

    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({rows, longest}), &out));
    int32* dst = out->flat<int32>().data();
    for (int64_t r = 0; r < rows; ++r) {
      int32* row = dst + r * stride;
      const int64_t n = splits(r + 1) - splits(r);
      for (int64_t i = 0; i < stride; ++i) row[i] = i < n ? tokens(splits(r) + i) : 0;
    }
  }

 private:
  int multiple_;
};

REGISTER_KERNEL_BUILDER(Name("PadTokens").Device(DEVICE_CPU), PadTokensOp);
