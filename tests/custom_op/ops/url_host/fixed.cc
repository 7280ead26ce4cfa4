#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace web {

std::string HostOf(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
  return rest.substr(0, rest.find('/'));
}

}  // namespace web

using namespace tensorflow;

REGISTER_OP("UrlHost").Input("urls: string").Output("hosts: string").SetShapeFn(shape_inference::UnchangedShape);

class UrlHostOp : public OpKernel {
 public:
  explicit UrlHostOp(OpKernelConstruction* c) : OpKernel(c) {}

  void Compute(OpKernelContext* c) override {
    const Tensor& urls = c->input(0);
    Tensor* hosts = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, urls.shape(), &hosts));
    const tstring* from = urls.flat<tstring>().data();
    tstring* to = hosts->flat<tstring>().data();
    for (int64_t i = 0, n = urls.NumElements(); i < n; ++i) to[i] = web::HostOf(std::string(from[i]));
  }
};
REGISTER_KERNEL_BUILDER(Name("UrlHost").Device(DEVICE_CPU), UrlHostOp);
