#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <string>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("LetterCounts")
    .Input("texts: string")
    .Output("counts: int32")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &unused));
      c->set_output(0, c->Vector(256));
      return absl::OkStatus();
    });

class LetterCountsOp : public OpKernel {
 public:
  explicit LetterCountsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& texts = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(texts.shape()),
                errors::InvalidArgument("texts must be a vector"));
    Tensor* counts = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({256}), &counts));
    int32_t* out = counts->flat<int32_t>().data();
    std::fill_n(out, 256, 0);
    auto all = texts.vec<tstring>();
    for (int64_t i = 0; i < all.size(); ++i) {
      const std::string text(all(i).data(), all(i).size());
      for (const unsigned char letter : text) {
        ++out[letter];
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("LetterCounts").Device(DEVICE_CPU), LetterCountsOp);

}  // namespace
