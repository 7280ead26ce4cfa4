#include <algorithm>

#include "tensorflow/core/framework/bounds_check.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("SwapRows")
    .Input("x: T")
    .Input("pairs: int32")
    .Output("y: T")
    .Attr("T: {float, double}")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x, pairs;
      TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 1, &x));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &pairs));
      c->set_output(0, x);
      return absl::OkStatus();
    });

template <typename T>
class SwapRowsOp : public OpKernel {
 public:
  explicit SwapRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    const Tensor& pairs = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVectorOrHigher(x.shape()), errors::InvalidArgument("x must have rows"));
    OP_REQUIRES(ctx, pairs.dims() == 2 && pairs.dim_size(1) == 2,
                errors::InvalidArgument("pairs must be [n, 2], got ", pairs.shape().DebugString()));
    const int64_t rows = x.dim_size(0);
    const T* source = x.flat<T>().data();
    const int64_t count = x.NumElements();

    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    T* data = y->flat<T>().data();
    if (data != source) std::copy(source, source + count, data);

    const auto swaps = pairs.matrix<int32>();
    for (int64_t i = 0; i < pairs.dim_size(0); ++i) {
      const int32 a = internal::SubtleMustCopy(swaps(i, 0));
      const int32 b = internal::SubtleMustCopy(swaps(i, 1));
      OP_REQUIRES(ctx, FastBoundsCheck(a, rows) && FastBoundsCheck(b, rows),
                  errors::InvalidArgument("pair ", i, " names a row that x does not have"));
      if (a == b) continue;
      const int64_t width = count / rows;
      std::swap_ranges(data + a * width, data + (a + 1) * width, data + b * width);
    }
  }
};

#define REGISTER_SWAP(type) \
  REGISTER_KERNEL_BUILDER(Name("SwapRows").Device(DEVICE_CPU).TypeConstraint<type>("T"), SwapRowsOp<type>)
REGISTER_SWAP(float);
REGISTER_SWAP(double);
#undef REGISTER_SWAP

}  // namespace tensorflow
