#include <algorithm>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace intervals {

using Interval = std::pair<int64_t, int64_t>;

std::vector<Interval> Merge(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> merged;
  if (all.empty()) return merged;
  merged.push_back(all.front());
  Interval& last = merged.back();
  for (const Interval& next : all) {
    if (next.first > last.second) {
      merged.push_back(next);
    } else {
      last.second = std::max(last.second, next.second);
    }
  }
  return merged;
}

REGISTER_OP("MergeIntervals")
    .Input("intervals: int64")
    .Output("merged: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle intervals;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &intervals));
      shape_inference::DimensionHandle two;
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(intervals, 1), 2, &two));
      c->set_output(0, c->Matrix(c->UnknownDim(), two));
      return OkStatus();
    });

class MergeIntervalsOp : public OpKernel {
 public:
  explicit MergeIntervalsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& input = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(input.shape()) && input.dim_size(1) == 2,
                errors::InvalidArgument("intervals must be [n, 2], got ", input.shape().DebugString()));
    const auto rows = input.matrix<int64_t>();
    std::vector<Interval> all;
    all.reserve(rows.dimension(0));
    for (int64_t i = 0; i < rows.dimension(0); ++i) {
      OP_REQUIRES(ctx, rows(i, 0) <= rows(i, 1), errors::InvalidArgument("interval ", i, " ends before it begins"));
      all.emplace_back(rows(i, 0), rows(i, 1));
    }
    const std::vector<Interval> merged = Merge(std::move(all));

    Tensor* output = nullptr;
    const int64_t count = static_cast<int64_t>(merged.size());
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({count, 2}), &output));
    auto out = output->matrix<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      out(i, 0) = merged[i].first;
      out(i, 1) = merged[i].second;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("MergeIntervals").Device(DEVICE_CPU), MergeIntervalsOp);

}  // namespace intervals
}  // namespace tensorflow
