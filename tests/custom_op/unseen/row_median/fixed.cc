#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("RowMedian")
    .Input("x: int32")
    .Output("median: int32")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      c->set_output(0, c->Vector(c->Dim(x, 0)));
      return absl::OkStatus();
    });

namespace {

class Scratch {
 public:
  explicit Scratch(int64_t size) : data_(new int32[size]), size_(size) {}
  ~Scratch() { delete[] data_; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  int32* begin() const { return data_; }
  int32* end() const { return data_ + size_; }

 private:
  int32* data_;
  int64_t size_;
};

int32 MedianOf(const Scratch& values) {
  int32* middle = values.begin() + (values.end() - values.begin() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

class RowMedianOp : public OpKernel {
 public:
  explicit RowMedianOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    OP_REQUIRES(context, x.dims() == 2, errors::InvalidArgument("x must be a matrix"));
    const int64_t columns = x.dim_size(1);
    OP_REQUIRES(context, columns > 0, errors::InvalidArgument("x has no columns"));
    Tensor* median = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({x.dim_size(0)}), &median));
    if (x.NumElements() == 0) return;

    const int32* in = x.flat<int32>().data();
    auto out = median->vec<int32>();
    Scratch scratch(columns);
    for (int64_t r = 0; r < x.dim_size(0); ++r) {
      std::copy(in + r * columns, in + (r + 1) * columns, scratch.begin());
      out(r) = MedianOf(scratch);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("RowMedian").Device(DEVICE_CPU), RowMedianOp);
