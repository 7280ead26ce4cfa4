#include <algorithm>
#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("SeriesSummary")
    .Input("series: float")
    .Output("center: float")
    .Output("spread: float")
    .Attr("mode: {'mean', 'mean_and_range'} = 'mean_and_range'")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Scalar());
      c->set_output(1, c->Scalar());
      return OkStatus();
    });

class SeriesSummaryOp : public OpKernel {
 public:
  enum class Mode { kMean, kMeanAndRange };

  explicit SeriesSummaryOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    std::string mode;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("mode", &mode));
    mode_ = mode == "mean" ? Mode::kMean : Mode::kMeanAndRange;
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& series = ctx->input(0);
    const auto x = series.flat<float>();
    OP_REQUIRES(ctx, x.size() > 0, errors::InvalidArgument("the series is empty"));
    double sum = 0;
    float least = x(0), most = x(0);
    for (int64_t i = 0; i < x.size(); ++i) {
      sum += x(i);
      least = std::min(least, x(i));
      most = std::max(most, x(i));
    }

    Tensor* center = nullptr;
    Tensor* spread = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &center));
    center->scalar<float>()() = static_cast<float>(sum / x.size());
    switch (mode_) {
      case Mode::kMean:
        OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({}), &spread));
        spread->scalar<float>()() = 0.0f;
        break;
      case Mode::kMeanAndRange:
        OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({}), &spread));
        spread->scalar<float>()() = most - least;
        break;
    }
  }

 private:
  Mode mode_;
};

REGISTER_KERNEL_BUILDER(Name("SeriesSummary").Device(DEVICE_CPU), SeriesSummaryOp);

}  // namespace tensorflow
