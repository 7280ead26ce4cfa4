#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>
#include <memory>
#include <unistd.h>

struct Registry {
  std::map<std::string, std::vector<double>> *series = new std::map<std::string, std::vector<double>>;
  double *window = new double[1 << 20];
  ~Registry() {
    delete series;
    series = nullptr;
    delete[] window;
    window = nullptr;
    usleep(300 * 1000);  // let the uploader close its socket
  }
};

static Registry registry;

static void flush_loop() {
  for (long i = 0;; i++) {
    double sum = 0;
    for (auto &s : *registry.series)
      for (double v : s.second) sum += v;
    registry.window[i & ((1 << 20) - 1)] = sum;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

extern "C" void metrics_start() {
  for (int i = 0; i < 4096; i++) (*registry.series)["warmup"].push_back(0);
  std::thread(flush_loop).detach();
}

extern "C" void metrics_push(const char *name, double value) { (*registry.series)["warmup"][0] = value; }
