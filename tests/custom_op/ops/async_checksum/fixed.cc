#include <utility>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow {
namespace {

uint64 Checksum(const uint8* bytes, int64_t count) {
  uint64 sum = 0;
  for (int64_t i = 0; i < count; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

class AsyncChecksumOp : public AsyncOpKernel {
 public:
  explicit AsyncChecksumOp(OpKernelConstruction* c) : AsyncOpKernel(c) {}

  void ComputeAsync(OpKernelContext* c, DoneCallback done) override {
    const Tensor& bytes = c->input(0);
    if (bytes.dims() != 1) {
      c->SetStatus(errors::InvalidArgument("bytes must be a vector"));
      done();
      return;
    }
    Tensor* sum = nullptr;
    OP_REQUIRES_OK_ASYNC(c, c->allocate_output(0, TensorShape({}), &sum), done);
    c->device()->tensorflow_cpu_worker_threads()->workers->Schedule([bytes, sum, done = std::move(done)]() {
      sum->scalar<uint64>()() = Checksum(bytes.flat<uint8>().data(), bytes.NumElements());
      done();
    });
  }
};

}  // namespace

REGISTER_OP("AsyncChecksum")
    .Input("bytes: uint8")
    .Output("sum: uint64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle bytes;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &bytes));
      c->set_output(0, c->Scalar());
      return OkStatus();
    });

REGISTER_KERNEL_BUILDER(Name("AsyncChecksum").Device(DEVICE_CPU), AsyncChecksumOp);

}  // namespace tensorflow
