#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("FilterAbove")
    .Input("scores: float")
    .Attr("threshold: float")
    .Output("kept: float")
    .Output("where: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

class FilterAboveOp : public OpKernel {
 public:
  explicit FilterAboveOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("threshold", &threshold_));
  }

  void Compute(OpKernelContext* ctx) override {
    auto scores = ctx->input(0).flat<float>();
    std::vector<int64_t> hits;
    for (int64_t i = 0; i < scores.size(); ++i)
      if (scores(i) > threshold_) hits.push_back(i);
    if (hits.empty()) return;
    Tensor *kept = nullptr, *where = nullptr;
    const int64_t n = hits.size();
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({n}), &kept));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({n}), &where));
    for (int64_t i = 0; i < n; ++i) {
      kept->flat<float>()(i) = scores(hits[i]);
      where->flat<int64_t>()(i) = hits[i];
    }
  }

 private:
  float threshold_;
};

REGISTER_KERNEL_BUILDER(Name("FilterAbove").Device(DEVICE_CPU), FilterAboveOp);
