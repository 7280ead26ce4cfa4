#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("WeightedMovingAverage")
    .Input("series: float")
    .Input("weights: float")
    .Output("averages: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle series, weights;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &series));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &weights));
      shape_inference::DimensionHandle more, valid;
      TF_RETURN_IF_ERROR(c->Add(c->Dim(series, 0), 1, &more));
      TF_RETURN_IF_ERROR(c->Subtract(more, c->Dim(weights, 0), &valid));
      c->set_output(0, c->Vector(valid));
      return absl::OkStatus();
    });

class WeightedMovingAverageOp : public OpKernel {
 public:
  explicit WeightedMovingAverageOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& series_tensor = context->input(0);
    const Tensor& weights_tensor = context->input(1);
    OP_REQUIRES(context, TensorShapeUtils::IsVector(series_tensor.shape()),
                errors::InvalidArgument("series must be a vector, is ", series_tensor.shape().DebugString()));
    OP_REQUIRES(context, TensorShapeUtils::IsVector(weights_tensor.shape()),
                errors::InvalidArgument("weights must be a vector, is ", weights_tensor.shape().DebugString()));
    auto series = series_tensor.flat<float>();
    auto weights = weights_tensor.flat<float>();
    OP_REQUIRES(context, weights.size() > 0, errors::InvalidArgument("there must be at least one weight"));

    float total = 0;
    for (int64_t k = 0; k < weights.size(); ++k) total += weights(k);
    OP_REQUIRES(context, total != 0, errors::InvalidArgument("the weights add up to zero"));

    const int64_t windows = series.size() - weights.size() + 1;
    Tensor* averages = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({windows}), &averages));
    auto out = averages->flat<float>();
    for (int64_t i = 0; i < windows; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < weights.size(); ++k) sum += series(i + k) * weights(k);
      out(i) = sum / total;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("WeightedMovingAverage").Device(DEVICE_CPU), WeightedMovingAverageOp);

}  // namespace tensorflow
