// A point or a direction on the ground, in world units.
#pragma once

#include <cmath>

namespace dota {

struct Vec2 {
  float x = 0, y = 0;
  friend Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
  friend Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
  friend Vec2 operator*(Vec2 a, float s) { return {a.x * s, a.y * s}; }
  float dot(Vec2 b) const { return x * b.x + y * b.y; }
  float length() const { return std::sqrt(x * x + y * y); }
};
inline float distance(Vec2 a, Vec2 b) { return (a - b).length(); }

}  // namespace dota
