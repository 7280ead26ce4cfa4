#include <cmath>
#include <cstdint>
#include <vector>

struct Mesh {
  std::vector<float> points;
};

extern "C" {
Mesh *mesh_sphere(int rings, int segments) {
  Mesh *m = new Mesh;
  m->points.reserve(3 * (size_t)rings * segments);
  for (int r = 0; r < rings; r++)
    for (int s = 0; s < segments; s++) {
      float a = 3.14159265f * r / rings, b = 6.2831853f * s / segments;
      m->points.insert(m->points.end(), {std::sin(a) * std::cos(b), std::sin(a) * std::sin(b), std::cos(a)});
    }
  return m;
}
int64_t mesh_count(const Mesh *m) { return m->points.size() / 3; }
float *mesh_points(Mesh *m) { return m->points.data(); }
void mesh_free(Mesh *m) { delete m; }
}
