// What the op and its CUDA kernel share. No header of TensorFlow is needed to compile the kernel, and none of CUDA to
// compile the op.

#ifndef SCALED_ROWS_GPU_H_
#define SCALED_ROWS_GPU_H_

#include <cstdint>

namespace scaled_rows {

// Starts the kernel on a stream (a cudaStream_t). Returns nullptr, or what CUDA says about a launch that failed.
template <typename T, typename Index>
const char* LaunchScaledRows(void* stream, const T* values, const Index* rows, T factor, T* picked, int64_t count,
                             int64_t height, int64_t width);

}  // namespace scaled_rows

#ifdef SCALED_ROWS_WITH_CUDA
#include "tensorflow/core/framework/op_kernel.h"
#include "xla/stream_executor/stream.h"

namespace scaled_rows {

inline void* GpuStreamOf(tensorflow::OpKernelContext* context) {
  return context->op_device_context()->stream()->platform_specific_handle().stream;
}

}  // namespace scaled_rows
#endif

#endif  // SCALED_ROWS_GPU_H_
