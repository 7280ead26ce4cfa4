#include <cstring>
#include <limits>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("KeepBoxes")
    .Input("boxes: float")
    .Input("scores: float")
    .Attr("threshold: float = 0.5")
    .Output("kept: float")
    .Output("indices: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle boxes, scores;
      shape_inference::DimensionHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &boxes));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &scores));
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(boxes, 1), 4, &unused));
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(boxes, 0), c->Dim(scores, 0), &unused));
      c->set_output(0, c->Matrix(c->UnknownDim(), 4));
      c->set_output(1, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

class KeepBoxesOp : public OpKernel {
 public:
  explicit KeepBoxesOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("threshold", &threshold_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& boxes = context->input(0);
    const Tensor& scores = context->input(1);
    OP_REQUIRES(context, boxes.dims() == 2 && boxes.dim_size(1) == 4,
                errors::InvalidArgument("boxes must be [n, 4], got ", boxes.shape().DebugString()));
    OP_REQUIRES(context, scores.dims() == 1 && scores.dim_size(0) == boxes.dim_size(0),
                errors::InvalidArgument("scores must be [n], got ", scores.shape().DebugString()));
    OP_REQUIRES(context, boxes.dim_size(0) <= std::numeric_limits<int32>::max(),
                errors::InvalidArgument("too many boxes"));

    std::vector<int32> good;
    const auto score = scores.vec<float>();
    for (int64_t i = 0; i < score.size(); ++i) {
      if (score(i) >= threshold_) good.push_back(static_cast<int32>(i));
    }

    const int64_t count = static_cast<int64_t>(good.size());
    Tensor* kept = nullptr;
    Tensor* indices = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({count, 4}), &kept));
    OP_REQUIRES_OK(context, context->allocate_output(1, TensorShape({count}), &indices));
    const float* from = boxes.flat<float>().data();
    float* to = kept->flat<float>().data();
    for (int64_t k = 0; k < count; ++k) {
      std::memcpy(to + 4 * k, from + 4 * int64_t{good[k]}, 4 * sizeof(float));
      indices->vec<int32>()(k) = good[k];
    }
  }

 private:
  float threshold_;
};

REGISTER_KERNEL_BUILDER(Name("KeepBoxes").Device(DEVICE_CPU), KeepBoxesOp);
