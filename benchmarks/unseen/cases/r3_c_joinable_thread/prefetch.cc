#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

static std::atomic<long> total{0};
static std::atomic<bool> idle{false};
static std::thread worker;

extern "C" void prefetch_open(const char *path) {
  std::string name(path);
  worker = std::thread([name] {
    char block[4096];
    if (FILE *f = std::fopen(name.c_str(), "rb")) {
      while (size_t n = std::fread(block, 1, sizeof block, f)) total += n;
      std::fclose(f);
    }
    idle = true;
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));  // waits for the next file
  });
}

extern "C" long prefetch_wait() {
  while (!idle) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return total;
}
