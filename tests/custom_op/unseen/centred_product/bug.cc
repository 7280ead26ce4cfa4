#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("CentredProduct")
    .Input("a: float")
    .Input("b: float")
    .Output("product: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle merged;
      TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &merged));
      c->set_output(0, c->Scalar());
      return absl::OkStatus();
    });

static std::vector<float> Centred(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  double mean = 0;
  for (int64_t i = 0; i < values.size(); ++i) mean += values(i);
  if (values.size() > 0) mean /= values.size();
  std::vector<float> centred(values.size());
  for (int64_t i = 0; i < values.size(); ++i) centred[i] = static_cast<float>(values(i) - mean);
  return centred;
}

class CentredProductOp : public OpKernel {
 public:
  explicit CentredProductOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& a = ctx->input(0);
    const Tensor& b = ctx->input(1);
    OP_REQUIRES(ctx, a.shape() == b.shape(),
                errors::InvalidArgument("shapes differ: ", a.shape().DebugString(), " and ", b.shape().DebugString()));
    Tensor* product = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &product));

    const float* left = Centred(a).data();
    const float* right = Centred(b).data();
    double sum = 0;
    for (int64_t i = 0; i < a.NumElements(); ++i) {
      sum += static_cast<double>(left[i]) * right[i];
    }
    product->scalar<float>()() = static_cast<float>(sum);
  }
};

REGISTER_KERNEL_BUILDER(Name("CentredProduct").Device(DEVICE_CPU), CentredProductOp);
