#include <cmath>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("ListNorms")
    .Input("tensors: Types")
    .Attr("Types: list(type) >= 1")
    .Attr("scale: float = 1.0")
    .Output("norms: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Vector(c->num_inputs()));
      return absl::OkStatus();
    })
    .Doc("Euclidean norm of each float tensor of a list.");

class ListNormsOp : public OpKernel {
 public:
  explicit ListNormsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("scale", &scale_));
  }

  void Compute(OpKernelContext* context) override {
    OpInputList tensors;
    OP_REQUIRES_OK(context, context->input_list("tensors", &tensors));
    Tensor* norms = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({tensors.size()}), &norms));
    auto out = norms->vec<float>();
    for (int i = 0; i < tensors.size(); ++i) {
      OP_REQUIRES(context, tensors[i].dtype() == DT_FLOAT,
                  errors::InvalidArgument("tensor ", i, " is ", DataTypeString(tensors[i].dtype()), ", not float"));
      auto values = tensors[i].flat<float>();
      double sum = 0;
      for (int64_t j = 0; j < values.size(); ++j) {
        sum += static_cast<double>(values(j)) * values(j);
      }
      out(i) = static_cast<float>(scale_ * std::sqrt(sum));
    }
  }

 private:
  float scale_;
};

REGISTER_KERNEL_BUILDER(Name("ListNorms").Device(DEVICE_CPU), ListNormsOp);
