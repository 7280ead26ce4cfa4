#include <math.h>
#include <stddef.h>

void normalise(float *image, size_t pixels) {
  double sum = 0, square = 0;
  for (size_t i = 0; i < pixels; i++) {
    sum += image[i];
    square += (double)image[i] * image[i];
  }
  double mean = sum / pixels, dev = sqrt(square / pixels - mean * mean) + 1e-6;
  for (size_t i = 0; i < pixels; i++) image[i] = (float)((image[i] - mean) / dev);
}
