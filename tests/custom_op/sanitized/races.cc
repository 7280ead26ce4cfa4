// Data races, and ops that only look like it.

#define EIGEN_USE_THREADS

#include <vector>
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"
using namespace tensorflow;

static absl::Status SameShape(shape_inference::InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

#define PLANTED(NAME) \
  REGISTER_OP(#NAME).Input("x: float").Output("y: float").SetShapeFn(SameShape); \
  REGISTER_KERNEL_BUILDER(Name(#NAME).Device(DEVICE_CPU), NAME##Op)

class RacyOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) {
      total_ += in(i);  // race of kernels
    }
    y->flat<float>().setConstant(1.0f);
  }

 private:
  float total_ = 0;
};
PLANTED(Racy);

class ShardRaceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    auto out = y->flat<float>();
    auto workers = context->device()->tensorflow_cpu_worker_threads();
    float sum = 0;
    Shard(workers->num_threads, workers->workers, in.size(), 1000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sum += in(i);  // race of shards
      }
    });
    out.setConstant(sum);
  }
};
PLANTED(ShardRace);

class LockedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    auto out = y->flat<float>();
    mutex_lock lock(mu_);
    for (int64_t i = 0; i < in.size(); ++i) {
      total_ += in(i);
      out(i) = total_;
    }
  }

 private:
  mutex mu_;
  float total_ = 0;
};
PLANTED(Locked);
class ShardedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    auto out = y->flat<float>();
    std::vector<float> copy(in.size());
    for (int64_t i = 0; i < in.size(); ++i) copy[i] = in(i);
    auto workers = context->device()->tensorflow_cpu_worker_threads();
    Shard(workers->num_threads, workers->workers, in.size(), 1000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out(i) = copy[i];
        copy[i] += 1;
      }
    });
    float s = 0;
    for (int64_t i = 0; i < in.size(); ++i) s += out(i) + copy[i];
    out(0) = s;
    out.device(context->eigen_cpu_device()) = out * 2.0f;
    out.device(context->eigen_cpu_device()) = out + in;
    out(1) += 1;
  }
};
PLANTED(Sharded);
