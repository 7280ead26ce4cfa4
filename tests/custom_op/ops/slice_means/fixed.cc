#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// "3:7" is the half-open range [3, 7).
static absl::Status ParseRange(absl::string_view text, int64_t limit, Range* range) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) return errors::InvalidArgument("'", text, "' has no colon");
  if (!absl::SimpleAtoi(text.substr(0, colon), &range->begin) || !absl::SimpleAtoi(text.substr(colon + 1), &range->end))
    return errors::InvalidArgument("'", text, "' is not two numbers");
  if (range->begin < 0 || range->begin >= range->end || range->end > limit)
    return errors::OutOfRange("'", text, "' is no range of a series of ", limit);
  return absl::OkStatus();
}

REGISTER_OP("SliceMeans")
    .Input("series: float")
    .Input("ranges: string")
    .Output("means: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle series, ranges;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &series));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &ranges));
      c->set_output(0, ranges);
      return absl::OkStatus();
    });

class SliceMeansOp : public OpKernel {
 public:
  explicit SliceMeansOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& series = ctx->input(0);
    const Tensor& ranges = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(series.shape()), errors::InvalidArgument("series must be a vector"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(ranges.shape()), errors::InvalidArgument("ranges must be a vector"));

    Tensor* means = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ranges.shape(), &means));
    const auto samples = series.vec<float>();
    const auto texts = ranges.vec<tstring>();
    auto out = means->vec<float>();
    for (int64_t i = 0; i < texts.size(); ++i) {
      Range range;
      OP_REQUIRES_OK(ctx, ParseRange(texts(i), samples.size(), &range));
      double sum = 0;
      for (int64_t k = range.begin; k < range.end; ++k) sum += samples(k);
      out(i) = static_cast<float>(sum / static_cast<double>(range.end - range.begin));
    }
  }
};
REGISTER_KERNEL_BUILDER(Name("SliceMeans").Device(DEVICE_CPU), SliceMeansOp);
