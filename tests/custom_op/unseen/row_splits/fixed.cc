#include <limits>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("RowSplits")
    .Input("lengths: int64")
    .Output("splits: int64")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle lengths;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &lengths));
      DimensionHandle count;
      TF_RETURN_IF_ERROR(c->Add(c->Dim(lengths, 0), 1, &count));
      c->set_output(0, c->Vector(count));
      return absl::OkStatus();
    });

namespace {

absl::Status CheckLengths(const Tensor& lengths) {
  if (lengths.dims() != 1) return errors::InvalidArgument("lengths must be a vector");
  const auto values = lengths.vec<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values(i) < 0) return errors::InvalidArgument("lengths[", i, "] is negative");
    if (values(i) > std::numeric_limits<int64_t>::max() - total) {
      return errors::InvalidArgument("the sum of lengths does not fit");
    }
    total += values(i);
  }
  return absl::OkStatus();
}

}  // namespace

class RowSplitsOp : public OpKernel {
 public:
  explicit RowSplitsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& lengths = context->input(0);
    OP_REQUIRES_OK(context, CheckLengths(lengths));
    const int64_t n = lengths.NumElements();
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({n + 1}), &splits));
    const int64_t* in = lengths.flat<int64_t>().data();
    int64_t* out = splits->flat<int64_t>().data();
    out[0] = 0;
    for (int64_t i = 0; i < n; ++i) {
      out[i + 1] = out[i] + in[i];
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("RowSplits").Device(DEVICE_CPU), RowSplitsOp);
