// What the type of a value from outside (a snapshot) says about it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "data/tables.hpp"
#include "world/world.hpp"

namespace dota {

constexpr float kFarthest = 100000;  // no place of a game is farther from the middle

// Greatest value of an enum type. Each type that a snapshot contains has one.
template <class T>
constexpr int kLastValue = -1;
template <>
inline constexpr int kLastValue<UnitKind> = kUnitKinds - 1;
template <>
inline constexpr int kLastValue<Act> = static_cast<int>(Act::Dead);
template <>
inline constexpr int kLastValue<OrderType> = static_cast<int>(OrderType::Pickup);
template <>
inline constexpr int kLastValue<Projectile::Kind> = static_cast<int>(Projectile::Kind::Linear);
template <>
inline constexpr int kLastValue<Winner> = static_cast<int>(Winner::Draw);
template <>
inline constexpr int kLastValue<Stat> = static_cast<int>(Stat::Count);

// Types of which not every bit pattern is a value of a game.
template <class T>
constexpr bool kRestricted = std::is_same_v<T, bool> || std::is_enum_v<T> || std::is_floating_point_v<T> ||
                             std::is_same_v<T, Vec2> || std::is_same_v<T, Handle>;

// Returns false for a bool other than 0 and 1, an unknown enum value, NaN, a place outside of the map and a handle
// of no unit slot.
template <class T>
bool well_formed(const T& x) {
  static_assert(kRestricted<T>);
  if constexpr (std::is_same_v<T, bool>) {
    unsigned char byte;  // to read another value as a bool would be undefined
    static_assert(sizeof x == sizeof byte);
    std::memcpy(&byte, &x, sizeof byte);
    return byte <= 1;
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(kLastValue<T> >= 0);
    std::underlying_type_t<T> raw;
    std::memcpy(&raw, &x, sizeof raw);
    return raw >= 0 && static_cast<int>(raw) <= kLastValue<T>;
  } else if constexpr (std::is_floating_point_v<T>) {
    return !std::isnan(x);
  } else if constexpr (std::is_same_v<T, Vec2>) {
    return std::fabs(x.x) <= kFarthest && std::fabs(x.y) <= kFarthest;  // false for NaN
  } else {
    return x.index >= -1 && x.index < kMaxUnits;
  }
}

inline bool within(int i, std::size_t n) { return i >= 0 && std::cmp_less(i, n); }
inline bool within_or_none(int i, std::size_t n) { return i == -1 || within(i, n); }

}  // namespace dota
