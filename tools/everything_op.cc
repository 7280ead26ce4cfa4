// An op with attributes of every kind and inputs of any type, which dies while it computes or while it is constructed.

#include <cstdlib>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("Everything")
    .Input("values: Tin")
    .Attr("Tin: list(type)")
    .Attr("early: bool")
    .Attr("an_int: int")
    .Attr("a_float: float")
    .Attr("a_bool: bool")
    .Attr("a_string: string")
    .Attr("long_string: string")
    .Attr("a_type: type")
    .Attr("a_shape: shape")
    .Attr("open_shape: shape")
    .Attr("a_func: func")
    .Attr("no_ints: list(int)")
    .Attr("one_int: list(int)")
    .Attr("ints: list(int)")
    .Attr("one_float: list(float)")
    .Attr("floats: list(float)")
    .Attr("one_bool: list(bool)")
    .Attr("bools: list(bool)")
    .Attr("one_string: list(string)")
    .Attr("strings: list(string)")
    .Attr("types: list(type)")
    .Attr("shapes: list(shape)")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class EverythingOp : public OpKernel {
 public:
  explicit EverythingOp(OpKernelConstruction* construction) : OpKernel(construction) {
    bool early = false;
    OP_REQUIRES_OK(construction, construction->GetAttr("early", &early));
    if (early) std::abort();
  }

  void Compute(OpKernelContext*) override { std::abort(); }
};

REGISTER_KERNEL_BUILDER(Name("Everything").Device(DEVICE_CPU), EverythingOp);
