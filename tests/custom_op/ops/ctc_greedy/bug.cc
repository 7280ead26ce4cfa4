#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;  // NOLINT

// logits: [time, batch, classes], the last class is the blank.
REGISTER_OP("GreedyPath")
    .Input("logits: float")
    .Input("lengths: int32")
    .Output("path: int64")
    .Output("path_lengths: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle logits, lengths;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &logits));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &lengths));
      shape_inference::DimensionHandle batch;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(logits, 1), c->Dim(lengths, 0), &batch));
      c->set_output(0, c->Matrix(batch, c->Dim(logits, 0)));
      c->set_output(1, c->Vector(batch));
      return absl::OkStatus();
    });

class GreedyPathOp : public OpKernel {
 public:
  explicit GreedyPathOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& logits_t = ctx->input(0);
    const Tensor& lengths_t = ctx->input(1);
    OP_REQUIRES(ctx, logits_t.dims() == 3, errors::InvalidArgument("logits must be [time, batch, classes]"));
    OP_REQUIRES(ctx, lengths_t.dims() == 1, errors::InvalidArgument("lengths must be a vector"));
    const int64_t time = logits_t.dim_size(0), batch = logits_t.dim_size(1), classes = logits_t.dim_size(2);
    OP_REQUIRES(ctx, lengths_t.dim_size(0) == batch, errors::InvalidArgument("one length per sequence, please"));
    OP_REQUIRES(ctx, classes >= 1, errors::InvalidArgument("there must be at least the blank class"));
    const auto lengths = lengths_t.vec<int32>();
    for (int64_t b = 0; b < batch; ++b) {
      OP_REQUIRES(ctx, lengths(b) >= 0 && lengths(b) <= time,
                  errors::InvalidArgument("length ", lengths(b), " of sequence ", b, " is not in [0, ", time, "]"));
    }

    Tensor* path_t = nullptr;
    Tensor* path_lengths_t = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({batch, time}), &path_t));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({batch}), &path_lengths_t));
    auto logits = logits_t.tensor<float, 3>();
    auto path = path_t->matrix<int64_t>();
    auto path_lengths = path_lengths_t->vec<int64_t>();

    for (int64_t b = 0; b < batch; ++b) {
      int64_t used = 0, previous = classes - 1;
      for (int64_t t = 0; t < lengths(b); ++t) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; ++k)
          if (logits(t, b, k) > logits(t, b, best)) best = k;
        if (best != previous && best != classes - 1) path(b, used++) = best;
        previous = best;
      }
      path_lengths(b) = used;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("GreedyPath").Device(DEVICE_CPU), GreedyPathOp);
