// One planted mistake in each kernel, for compute-sanitizer. Called through ctypes: see drive.py.

#include <cuda_runtime.h>

#include <cstddef>

#define EXPORT extern "C" __attribute__((visibility("default")))

__global__ void WritesPastTheEnd(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) values[i] = 2.0f * i;
}

__global__ void ReadsAWildIndex(const float* values, const int* indices, float* picked, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) picked[i] = values[indices[i]];
}

__global__ void ReadsMisaligned(const char* bytes, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(bytes + 4 + 16 * threadIdx.x);
}

__global__ void RacesInSharedMemory(const float* values, float* sum) {
  __shared__ float part[64];
  part[threadIdx.x] = values[threadIdx.x];  // race
  if (threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < 64; ++i) total += part[i];  // raced
    *sum = total;
  }
}

__global__ void ReadsUninitialised(const float* values, float* out) {
  out[threadIdx.x] = values[threadIdx.x] + 1.0f;
}

__global__ void WaitsInABranch(float* values) {
  if (threadIdx.x < 16) __syncthreads();
  values[threadIdx.x] = 1.0f;
}

__device__ __noinline__ float Neighbour(const float* values, int i) {
  return values[i + 1];  // one too far
}

__global__ void AsksItsNeighbour(const float* values, float* out, int count) {
  const int i = threadIdx.x;
  if (i < count) out[i] = Neighbour(values, i);
}

__global__ void WritesPastSharedMemory(float* out) {
  __shared__ float part[32];
  part[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x];
}

__global__ void SumsInSharedMemory(const float* values, float* sum) {
  __shared__ float part[64];
  part[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < 64; ++i) total += part[i];
    *sum = total;
  }
}

__global__ void Picks(const float* values, int height, const int* indices, float* picked, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) picked[i] = indices[i] >= 0 && indices[i] < height ? values[indices[i]] : 0.0f;
}

__global__ void Doubles(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= 2.0f;
}

namespace {

template <typename T>
T* Device(size_t count) {
  T* memory = nullptr;
  return cudaMalloc(&memory, count * sizeof(T)) == cudaSuccess ? memory : nullptr;
}

int Ended() { return static_cast<int>(cudaDeviceSynchronize()); }

}  // namespace

// What the others do, done right: nobody may say a word about it.
EXPORT int healthy() {
  float *values = Device<float>(100), *picked = Device<float>(4), *sum = Device<float>(1);
  int* indices = Device<int>(4);
  const int host[4] = {0, 3, 1 << 28, -2};
  float result[4];
  cudaMemset(values, 0, 400);
  cudaMemcpy(indices, host, sizeof host, cudaMemcpyHostToDevice);
  Doubles<<<1, 128>>>(values, 100);
  Picks<<<1, 128>>>(values, 100, indices, picked, 4);
  SumsInSharedMemory<<<1, 64>>>(values, sum);
  cudaMemcpy(result, picked, sizeof result, cudaMemcpyDeviceToHost);
  const int status = Ended();
  cudaFree(values);
  cudaFree(picked);
  cudaFree(sum);
  cudaFree(indices);
  return status;
}

EXPORT int past_the_end() {
  float* values = Device<float>(100);
  WritesPastTheEnd<<<1, 128>>>(values, 100);
  const int status = Ended();
  cudaFree(values);
  return status;
}

EXPORT int wild_index() {
  float *values = Device<float>(16), *picked = Device<float>(4);
  int* indices = Device<int>(4);
  const int host[4] = {0, 3, 1 << 28, 2};
  cudaMemset(values, 0, 64);
  cudaMemcpy(indices, host, sizeof host, cudaMemcpyHostToDevice);
  ReadsAWildIndex<<<1, 4>>>(values, indices, picked, 4);
  return Ended();
}

EXPORT int misaligned() {
  char* bytes = Device<char>(1024);
  float4* out = Device<float4>(8);
  cudaMemset(bytes, 0, 1024);
  ReadsMisaligned<<<1, 8>>>(bytes, out);
  return Ended();
}

EXPORT int race() {
  float *values = Device<float>(64), *sum = Device<float>(1);
  cudaMemset(values, 0, 256);
  RacesInSharedMemory<<<1, 64>>>(values, sum);
  const int status = Ended();
  cudaFree(values);
  cudaFree(sum);
  return status;
}

EXPORT int uninitialised() {
  float *values = Device<float>(32), *out = Device<float>(32);
  ReadsUninitialised<<<1, 32>>>(values, out);
  const int status = Ended();
  cudaFree(values);
  cudaFree(out);
  return status;
}

EXPORT int barrier() {
  float* values = Device<float>(32);
  WaitsInABranch<<<1, 32>>>(values);
  const int status = Ended();
  cudaFree(values);
  return status;
}

EXPORT int freed() {
  float* values = Device<float>(100);
  cudaMemset(values, 0, 400);
  cudaFree(values);
  Doubles<<<1, 128>>>(values, 100);
  return Ended();
}

EXPORT int freed_twice() {
  float* values = Device<float>(100);
  cudaFree(values);
  return static_cast<int>(cudaFree(values));
}

EXPORT int leak() {
  float* values = Device<float>(1000);
  cudaMemset(values, 0, 4000);
  Doubles<<<8, 128>>>(values, 1000);
  return Ended();
}

EXPORT int too_many_threads() {
  float* values = Device<float>(100);
  Doubles<<<1, 4096>>>(values, 100);
  const int status = static_cast<int>(cudaGetLastError());
  cudaFree(values);
  return status;
}

EXPORT int in_a_function() {
  float *values = Device<float>(128), *out = Device<float>(128);
  cudaMemset(values, 0, 512);
  AsksItsNeighbour<<<1, 128>>>(values, out, 128);
  return Ended();
}

EXPORT int shared_past_the_end() {
  float* out = Device<float>(32);
  WritesPastSharedMemory<<<1, 32>>>(out);
  return Ended();
}

EXPORT int copies_unset() {
  float *values = Device<float>(32), host[32];
  cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  const int status = Ended();
  cudaFree(values);
  return status;
}

EXPORT int copies_too_much() {
  float *values = Device<float>(32), host[64] = {};
  const int status = static_cast<int>(cudaMemcpy(values, host, 1 << 30, cudaMemcpyDeviceToDevice));
  cudaFree(values);
  return status;
}

// Of memory that others have allocated: see drive.py.
EXPORT int doubles_in_place(float* values, int count) {
  WritesPastTheEnd<<<1, 1024>>>(values, count);
  return Ended();
}
