#include <algorithm>
#include <cmath>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PeakNormalise")
    .Input("signal: float")
    .Output("normalised: float")
    .Output("peak: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    })
    .Doc("Divides a signal by the largest magnitude in it.");

class PeakNormaliseOp : public OpKernel {
 public:
  explicit PeakNormaliseOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& signal = context->input(0);
    OP_REQUIRES(context, signal.NumElements() > 0, errors::InvalidArgument("signal is empty"));
    const auto samples = signal.flat<float>();
    Tensor* normalised = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, signal.shape(), &normalised));
    Tensor* peak = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(1, TensorShape({}), &peak));

    const float* loudest = std::max_element(samples.data(), samples.data() + samples.size(),
                                            [](float a, float b) { return std::abs(a) < std::abs(b); });
    const float level = std::abs(*loudest);
    peak->scalar<float>()() = level;

    const float divisor = level > 0.0f ? level : 1.0f;
    auto out = normalised->flat<float>();
    for (int64_t i = 0; i < samples.size(); ++i) out(i) = samples(i) / divisor;
  }
};

REGISTER_KERNEL_BUILDER(Name("PeakNormalise").Device(DEVICE_CPU), PeakNormaliseOp);
