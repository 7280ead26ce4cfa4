// C++ as people write it: objects that are copied with the pointers that they own.
#include <cstdlib>
#include <vector>

struct Buffer {
  float *data;
  explicit Buffer(int n) : data(static_cast<float *>(std::malloc(n * 4))) {}
  ~Buffer() { std::free(data); }
};
static std::vector<Buffer> pool;

extern "C" int pool_add(int n) {
  Buffer buffer(n);
  pool.push_back(buffer);
  return static_cast<int>(pool.size()) - 1;
}
extern "C" void pool_clear() { pool.clear(); }
