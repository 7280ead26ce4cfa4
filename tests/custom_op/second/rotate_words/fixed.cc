#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("RotateWords")
    .Input("words: string")
    .Output("rotated: string")
    .Attr("by: int >= 0 = 1")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });

class RotateWordsOp : public OpKernel {
 public:
  explicit RotateWordsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("by", &by_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& words = ctx->input(0);
    Tensor* rotated = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, words.shape(), &rotated));
    const int64_t count = words.NumElements();
    if (count == 0) return;
    const int64_t by = by_ % count;
    const tstring* in = words.flat<tstring>().data();
    tstring* out = rotated->flat<tstring>().data();
    std::copy(in + by, in + count, out);
    std::copy(in, in + by, out + (count - by));
  }

 private:
  int64_t by_;
};

REGISTER_KERNEL_BUILDER(Name("RotateWords").Device(DEVICE_CPU), RotateWordsOp);

}  // namespace
