#include <algorithm>
#include <utility>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("RescaleMinMax")
    .Input("x: T")
    .Output("scaled: T")
    .Attr("T: {float, double}")
    .SetShapeFn([](shape_inference::InferenceContext* c) { return shape_inference::UnchangedShape(c); });

template <typename T>
std::pair<T, T> Range(const T* values, int64_t count) {
  const auto both = std::minmax_element(values, values + count);
  return {*both.first, *both.second};
}

template <typename T>
class RescaleMinMaxOp : public OpKernel {
 public:
  explicit RescaleMinMaxOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    Tensor* scaled = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &scaled));
    const auto in = x.flat<T>();
    auto out = scaled->flat<T>();
    const std::pair<T, T> range = Range(in.data(), in.size());
    const T width = range.second - range.first;
    for (int64_t i = 0; i < in.size(); ++i) out(i) = width > T(0) ? (in(i) - range.first) / width : T(0);
  }
};

#define REGISTER_CPU(type) \
  REGISTER_KERNEL_BUILDER(Name("RescaleMinMax").Device(DEVICE_CPU).TypeConstraint<type>("T"), RescaleMinMaxOp<type>)
REGISTER_CPU(float);
REGISTER_CPU(double);
