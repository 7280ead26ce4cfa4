#include <charconv>
#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("ParsePort")
    .Input("addresses: string")
    .Output("ports: int32")
    .SetShapeFn(shape_inference::UnchangedShape)
    .Doc("The number behind the colon of each host:port.");

static bool ReadPort(const std::string& text, int32* port) {
  *port = -1;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *port);
  return result.ec == std::errc() && result.ptr == end && *port >= 0 && *port < 65536;
}

class ParsePortOp : public OpKernel {
 public:
  explicit ParsePortOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& addresses = context->input(0);
    Tensor* ports = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, addresses.shape(), &ports));
    const auto in = addresses.flat<tstring>();
    auto out = ports->flat<int32>();
    for (int64_t i = 0; i < in.size(); ++i) {
      const std::string address(in(i).data(), in(i).size());
      const size_t colon = address.rfind(':');
      OP_REQUIRES(context, colon != std::string::npos, errors::InvalidArgument("no port in address ", i));
      int32 port = 0;
      OP_REQUIRES(context, ReadPort(address.substr(colon + 1), &port),
                  errors::InvalidArgument("bad port in address ", i));
      out(i) = port;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("ParsePort").Device(DEVICE_CPU), ParsePortOp);
