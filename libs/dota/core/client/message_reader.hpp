// Fields of one message into values, with the checks that all messages share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "client/wire.hpp"

namespace dota {

// State of one decode: the first fault, and the fields that no message of the schema has.
class MessageReader {
 public:
  bool ok() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  std::uint32_t unknown() const { return unknown_; }
  void refuse(const char* message, std::uint32_t field, const char* why) {
    if (ok()) why_ = std::string(message) + " field " + std::to_string(field) + ": " + why;
  }
  // Fields that the schema has and nothing here reads are skipped, others counted too.
  void skip(std::uint32_t field, std::initializer_list<std::uint32_t> schema) {
    for (const std::uint32_t known : schema)
      if (known == field) return;
    ++unknown_;
  }
  // Calls set(field) for each field of a message until the first fault.
  template <class Set>
  void each(const char* message, std::string_view bytes, Set&& set) {
    WireReader reader(bytes);
    WireField field;
    while (ok() && reader.next(field))
      set(field);
    if (reader.fault()) refuse(message, field.number, reader.fault());
  }
  // A number, sent as an integer or as a 32-bit float. Integers saturate.
  template <class T>
  void number(const char* message, const WireField& f, T& out) {
    if (!f.is_number()) return refuse(message, f.number, "a number has another wire type");
    if (f.type == WireType::Fixed32) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(f.bits));
      if (!std::isfinite(value)) return refuse(message, f.number, "a number is not finite");
      out = from<T>(static_cast<double>(value));
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      out = static_cast<std::uint32_t>(f.bits);  // -1 is 4294967295
    } else if constexpr (std::is_same_v<T, int>) {
      out = static_cast<int>(static_cast<std::uint32_t>(f.bits));  // a negative int32 has 64 bits on the wire
    } else {
      out = from<T>(static_cast<double>(static_cast<std::int64_t>(f.bits)));
    }
  }
  void text(const char* message, const WireField& f, std::string_view& out) {
    if (f.type != WireType::Bytes) return refuse(message, f.number, "a text has another wire type");
    out = f.bytes;
  }
  bool is_message(const char* message, const WireField& f) {
    if (f.type == WireType::Bytes) return true;
    refuse(message, f.number, "a message has another wire type");
    return false;
  }
  // Whether one more element fits the list.
  template <class T>
  bool fits(const char* message, const WireField& f, const std::vector<T>& list, std::size_t most) {
    if (list.size() < most) return true;
    refuse(message, f.number, "a list is too long");
    return false;
  }

 private:
  template <class T>
  static T from(double value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value != 0;
    } else if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(value);
    } else {
      if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
      if (!(value < static_cast<double>(std::numeric_limits<T>::max()))) return std::numeric_limits<T>::max();
      return static_cast<T>(value);
    }
  }

  std::string why_;
  std::uint32_t unknown_ = 0;
};

}  // namespace dota
