#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace rle {

using tensorflow::int64;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorShapeUtils;
namespace errors = tensorflow::errors;

constexpr int64_t kLongestOutput = int64_t{1} << 26;

REGISTER_OP("RunLengthDecode")
    .Attr("T: {float, int32, int64}")
    .Input("values: T")
    .Input("counts: int64")
    .Output("expanded: T")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle values, counts, merged;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &values));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &counts));
      TF_RETURN_IF_ERROR(c->Merge(values, counts, &merged));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

template <typename T>
void Expand(const T* values, const int64_t* counts, int64_t runs, T* out) {
  for (int64_t run = 0; run < runs; ++run) {
    const T value = values[run];
    const int64_t count = counts[run];
    for (int64_t k = 0; k < count; k += 4) {
      out[k] = value;
      out[k + 1] = value;
      out[k + 2] = value;
      out[k + 3] = value;
    }
    out += count;
  }
}

template <typename T>
class RunLengthDecodeOp : public OpKernel {
 public:
  explicit RunLengthDecodeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& values = ctx->input(0);
    const Tensor& counts = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(values.shape()), errors::InvalidArgument("values must be a vector"));
    OP_REQUIRES(ctx, counts.shape() == values.shape(),
                errors::InvalidArgument("counts must have the shape of values: ", values.shape().DebugString(),
                                        " != ", counts.shape().DebugString()));
    const auto lengths = counts.vec<int64_t>();
    int64_t total = 0;
    for (int64_t i = 0; i < lengths.size(); ++i) {
      OP_REQUIRES(ctx, lengths(i) >= 0 && lengths(i) <= kLongestOutput - total,
                  errors::InvalidArgument("count ", i, " is negative, or the output gets longer than ", kLongestOutput));
      total += lengths(i);
    }
    Tensor* expanded = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({total}), &expanded));
    if (total == 0) return;
    Expand<T>(values.vec<T>().data(), lengths.data(), lengths.size(), expanded->vec<T>().data());
  }
};

#define REGISTER(T)                                                                          \
  REGISTER_KERNEL_BUILDER(Name("RunLengthDecode").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"), \
                          RunLengthDecodeOp<T>)
REGISTER(float);
REGISTER(tensorflow::int32);
REGISTER(int64);
#undef REGISTER

}  // namespace rle
