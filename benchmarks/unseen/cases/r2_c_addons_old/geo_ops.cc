#include <cmath>
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("Haversine")
    .Input("pairs: float")
    .Output("distance: float")
    .SetShapeFn([](shape_inference::InferenceContext *c) {
      c->set_output(0, c->Vector(c->Dim(c->input(0), 0)));
      return absl::OkStatus();
    });

class HaversineOp : public OpKernel {
 public:
  explicit HaversineOp(OpKernelConstruction *context) : OpKernel(context) {}

  void Compute(OpKernelContext *context) override {
    const Tensor &pairs = context->input(0);
    OP_REQUIRES(context, pairs.dims() == 2 && pairs.dim_size(1) == 4, errors::InvalidArgument("pairs must be [n, 4]"));
    Tensor *out = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({pairs.dim_size(0)}), &out));
    auto p = pairs.matrix<float>();
    auto d = out->vec<float>();
    for (int64_t i = 0; i < pairs.dim_size(0); i++) {
      float a = std::pow(std::sin((p(i, 2) - p(i, 0)) / 2), 2) +
                std::cos(p(i, 0)) * std::cos(p(i, 2)) * std::pow(std::sin((p(i, 3) - p(i, 1)) / 2), 2);
      d(i) = 12742.0f * std::asin(std::sqrt(a));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("Haversine").Device(DEVICE_CPU), HaversineOp);
