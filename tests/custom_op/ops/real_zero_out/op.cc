#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

// The plain one: int32, keeps the first element.
REGISTER_OP("ZeroOut")
    .Input("to_zero: int32")
    .Output("zeroed: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });

// Keeps the element that an attribute names.
REGISTER_OP("ZeroOutKeep")
    .Attr("preserve_index: int = 0")
    .Input("to_zero: int32")
    .Output("zeroed: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) { return shape_inference::UnchangedShapeWithRank(c, 1); });

// Of several types.
REGISTER_OP("ZeroOutTyped")
    .Attr("T: realnumbertype")
    .Input("to_zero: T")
    .Output("zeroed: T")
    .SetShapeFn(shape_inference::UnchangedShape)
    .Doc(R"doc(
Sets all elements but the first to zero.

to_zero: of any shape.
zeroed: of the same shape.
)doc");

class ZeroOutOp : public OpKernel {
 public:
  explicit ZeroOutOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    // Grab the input tensor
    const Tensor& input_tensor = context->input(0);
    auto input = input_tensor.flat<int32>();

    // Create an output tensor
    Tensor* output_tensor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input_tensor.shape(), &output_tensor));
    auto output_flat = output_tensor->flat<int32>();

    const int64_t N = input.size();
    for (int64_t i = 1; i < N; i++) {
      output_flat(i) = 0;
    }

    if (N > 0) output_flat(0) = input(0);
  }
};

REGISTER_KERNEL_BUILDER(Name("ZeroOut").Device(DEVICE_CPU), ZeroOutOp);

class ZeroOutKeepOp : public OpKernel {
 public:
  explicit ZeroOutKeepOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("preserve_index", &preserve_index_));
    OP_REQUIRES(context, preserve_index_ >= 0,
                errors::InvalidArgument("Need preserve_index >= 0, got ", preserve_index_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& input_tensor = context->input(0);
    OP_REQUIRES(context, TensorShapeUtils::IsVector(input_tensor.shape()),
                errors::InvalidArgument("ZeroOutKeep expects a 1-D vector."));
    auto input = input_tensor.flat<int32>();
    OP_REQUIRES(context, preserve_index_ < input.size(), errors::InvalidArgument("preserve_index out of range"));

    Tensor* output_tensor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input_tensor.shape(), &output_tensor));
    auto output_flat = output_tensor->flat<int32>();
    for (int64_t i = 0; i < input.size(); i++) output_flat(i) = 0;
    output_flat(preserve_index_) = input(preserve_index_);
  }

 private:
  int preserve_index_;
};

REGISTER_KERNEL_BUILDER(Name("ZeroOutKeep").Device(DEVICE_CPU), ZeroOutKeepOp);

template <typename T>
class ZeroOutTypedOp : public OpKernel {
 public:
  explicit ZeroOutTypedOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& input_tensor = context->input(0);
    auto input = input_tensor.flat<T>();
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input_tensor.shape(), &output));
    auto output_flat = output->template flat<T>();
    const int64_t N = input.size();
    for (int64_t i = 1; i < N; i++) output_flat(i) = T(0);
    if (N > 0) output_flat(0) = input(0);
  }
};

#define REGISTER_KERNEL(type)                                                                  \
  REGISTER_KERNEL_BUILDER(Name("ZeroOutTyped").Device(DEVICE_CPU).TypeConstraint<type>("T"), \
                          ZeroOutTypedOp<type>)

TF_CALL_REAL_NUMBER_TYPES(REGISTER_KERNEL);

#undef REGISTER_KERNEL
