#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PackSequences")
    .Input("values: float")
    .Input("lengths: int32")
    .Attr("width: int >= 1")
    .Output("packed: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle values, lengths;
      int64_t width;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &values));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &lengths));
      TF_RETURN_IF_ERROR(c->GetAttr("width", &width));
      c->set_output(0, c->Matrix(c->Dim(lengths, 0), width));
      return absl::OkStatus();
    });

// Sequences that lie behind each other become the rows of a matrix, cut or filled up to its width.
class PackSequencesOp : public OpKernel {
 public:
  explicit PackSequencesOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("width", &width_));
    OP_REQUIRES(ctx, width_ >= 1 && width_ <= 65536, errors::InvalidArgument("width must be in [1, 65536]"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& values = ctx->input(0);
    const Tensor& lengths_tensor = ctx->input(1);
    OP_REQUIRES(ctx, values.dims() == 1 && lengths_tensor.dims() == 1,
                errors::InvalidArgument("values and lengths must be vectors"));
    const auto lengths = lengths_tensor.vec<int32>();
    int32 total = 0;
    for (int64_t i = 0; i < lengths.size(); ++i) {
      OP_REQUIRES(ctx, lengths(i) >= 0, errors::InvalidArgument("length ", i, " is negative"));
      total += lengths(i);
    }
    OP_REQUIRES(ctx, total == values.NumElements(),
                errors::InvalidArgument("the lengths add up to ", total, ", not to ", values.NumElements()));

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({lengths.size(), width_}, &shape));
    OP_REQUIRES(ctx, shape.num_elements() <= int64_t{1} << 26, errors::InvalidArgument("the matrix would be too large"));
    Tensor* packed = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &packed));
    const float* in = values.flat<float>().data();
    float* out = packed->flat<float>().data();
    for (int64_t i = 0; i < lengths.size(); ++i) {
      const int64_t used = std::min<int64_t>(lengths(i), width_);
      std::copy(in, in + used, out);
      std::fill(out + used, out + width_, 0.0f);
      in += lengths(i);
      out += width_;
    }
  }

 private:
  int64_t width_;
};

REGISTER_KERNEL_BUILDER(Name("PackSequences").Device(DEVICE_CPU), PackSequencesOp);
