#include <exception>
#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("TextNumbers")
    .Input("texts: string")
    .Output("numbers: double")
    .SetShapeFn(shape_inference::UnchangedShape);

class TextNumbersOp : public OpKernel {
 public:
  explicit TextNumbersOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& texts = context->input(0);
    Tensor* numbers = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, texts.shape(), &numbers));

    const auto in = texts.flat<tstring>();
    auto out = numbers->flat<double>();
    mutex mu;
    absl::Status failure;
    auto parse = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out(i) = 0.0;
        try {
          const std::string text(in(i).data(), in(i).size());
          size_t used = 0;
          out(i) = std::stod(text, &used);
          if (used == text.size()) continue;
        } catch (const std::exception&) {
        }
        mutex_lock lock(mu);
        failure.Update(errors::InvalidArgument("text ", i, " is no number"));
      }
    };
    auto* pool = context->device()->tensorflow_cpu_worker_threads();
    Shard(pool->num_threads, pool->workers, in.size(), 200, parse);
    OP_REQUIRES_OK(context, failure);
  }
};

REGISTER_KERNEL_BUILDER(Name("TextNumbers").Device(DEVICE_CPU), TextNumbersOp);
