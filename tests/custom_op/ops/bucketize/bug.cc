#include <algorithm>
#include <limits>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace quant {
namespace {

using namespace tensorflow;

absl::Status BucketShape(shape_inference::InferenceContext* c) {
  shape_inference::ShapeHandle boundaries;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &boundaries));
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

REGISTER_OP("BucketizeSorted")
    .Input("values: float")
    .Input("boundaries: float")
    .Output("buckets: int32")
    .SetShapeFn(BucketShape);

class BucketizeSortedOp final : public OpKernel {
 public:
  explicit BucketizeSortedOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) final {
    const Tensor& values_tensor = ctx->input(0);
    const Tensor& boundaries_tensor = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(boundaries_tensor.shape()),
                errors::InvalidArgument("boundaries must be a vector"));
    const float* first = boundaries_tensor.flat<float>().data();
    const int64_t count = boundaries_tensor.NumElements();
    OP_REQUIRES(ctx, count <= std::numeric_limits<int32>::max() && std::is_sorted(first, first + count),
                errors::InvalidArgument("boundaries must be in ascending order"));

    Tensor* buckets_tensor = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, values_tensor.shape(), &buckets_tensor));
    const auto values = values_tensor.flat<float>();
    auto buckets = buckets_tensor->flat<int32>();
    const float lowest = first[0];
    const float highest = first[count - 1];
    for (int64_t i = 0; i < values.size(); ++i) {
      if (values(i) < lowest) {
        buckets(i) = 0;
      } else if (values(i) >= highest) {
        buckets(i) = static_cast<int32>(count);
      } else {
        buckets(i) = static_cast<int32>(std::upper_bound(first, first + count, values(i)) - first);
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("BucketizeSorted").Device(DEVICE_CPU), BucketizeSortedOp);

}  // namespace
}  // namespace quant
