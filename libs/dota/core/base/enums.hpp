// Enumerators as indices of arrays.
#pragma once

#include <cstddef>
#include <type_traits>

namespace dota {

// Returns the position of an enumerator in its enum: the index into an array with one element per enumerator.
template <class Enum>
  requires std::is_enum_v<Enum>
constexpr std::size_t ordinal(Enum e) {
  return static_cast<std::size_t>(e);
}

}  // namespace dota
