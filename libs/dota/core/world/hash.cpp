// Checksum of a world, field by field, because padding may differ between equal states. It covers everything that
// affects the rest of the game. Outputs (signals, events) are left out: reading them must not change the hash.
#include <cstring>
#include <type_traits>

#include "world/fields.hpp"
#include "world/hash.hpp"

namespace dota {
namespace {

class Hasher {
 public:
  std::uint64_t value() const { return h_ ^ (h_ >> 29); }

  template <class... T>
  void all(const T&... fields) {
    (one(fields), ...);
  }

 private:
  void fold(std::uint64_t v) {
    h_ = (h_ ^ v) * 0xD6E8FEB86659FD93ull;
    h_ ^= h_ >> 32;
  }

  template <class T>
  void one(const T& x) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      std::uint64_t v = 0;
      std::memcpy(&v, &x, sizeof(T));
      fold(v);
    } else if constexpr (std::is_array_v<T>) {
      for (const auto& e : x)
        one(e);
    } else {
      fields(*this, x);
    }
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N>& list) {
    if constexpr (std::is_arithmetic_v<T>) {  // no padding: eight bytes at a time
      std::size_t i = 0;
      const auto* bytes = reinterpret_cast<const unsigned char*>(list.data());
      for (std::uint64_t v = 0; i < sizeof(T) * N; i += 8, v = 0) {
        std::memcpy(&v, bytes + i, sizeof(T) * N - i < 8 ? sizeof(T) * N - i : 8);
        fold(v);
      }
    } else {
      for (const T& e : list)
        one(e);
    }
  }

  std::uint64_t h_ = 0x9E3779B97F4A7C15ull;
};

}  // namespace

std::uint64_t hash_world(const World& w) {
  Hasher h;
  fields(h, w);
  return h.value();
}

}  // namespace dota
