#include <algorithm>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/bounds_check.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("DistinctCount")
    .Input("values: int64")
    .Input("upper: int64")
    .Output("count: int64")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc("How many different integers of [0, upper) occur in values.");

class DistinctCountOp : public OpKernel {
 public:
  explicit DistinctCountOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& upper_tensor = context->input(1);
    OP_REQUIRES(context, TensorShapeUtils::IsScalar(upper_tensor.shape()),
                errors::InvalidArgument("upper must be a scalar"));
    const int64_t upper = upper_tensor.scalar<int64_t>()();
    OP_REQUIRES(context, upper >= 0 && upper <= (1 << 24), errors::InvalidArgument("upper must be in [0, 2^24]"));
    const auto values = context->input(0).flat<int64_t>();

    Tensor* count = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &count));

    Tensor flags;
    OP_REQUIRES_OK(context, context->allocate_temp(DT_BOOL, TensorShape({upper}), &flags));
    bool* seen = flags.flat<bool>().data();
    std::fill(seen, seen + upper, false);
    int64_t distinct = 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      const int64_t value = internal::SubtleMustCopy(values(i));
      OP_REQUIRES(context, value >= 0 && value < upper,
                  errors::InvalidArgument("value ", value, " is outside of [0, ", upper, ")"));
      if (!seen[value]) {
        seen[value] = true;
        ++distinct;
      }
    }
    count->scalar<int64_t>()() = distinct;
  }
};

REGISTER_KERNEL_BUILDER(Name("DistinctCount").Device(DEVICE_CPU), DistinctCountOp);
