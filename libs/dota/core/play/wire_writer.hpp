// Writer of protobuf messages: fields by number, in the order they are given.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace dota {

class WireWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3 | kVarint);
    varint(value);
  }
  void signed_number(std::uint32_t field, std::int64_t value) { number(field, static_cast<std::uint64_t>(value)); }
  void flag(std::uint32_t field, bool value) { number(field, value ? 1 : 0); }
  void real(std::uint32_t field, float value) {
    varint(field << 3 | kFixed32);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      out_ += static_cast<char>(bits >> shift & 0xFFu);
  }
  // The nearest whole number, of those that are not negative.
  void whole(std::uint32_t field, float value) {
    number(field, value > 0 ? static_cast<std::uint64_t>(std::lround(value)) : 0);
  }
  void text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | kBytes);
    varint(value.size());
    out_ += value;
  }
  // A message whose fields `fill` writes. Its length goes before it afterwards.
  template <class Fill>
  void message(std::uint32_t field, Fill&& fill) {
    varint(field << 3 | kBytes);
    const std::size_t begin = out_.size();
    fill();
    char length[10];
    std::size_t n = 0;
    std::uint64_t left = out_.size() - begin;
    for (; left >= 0x80; left >>= 7)
      length[n++] = static_cast<char>((left & 0x7Fu) | 0x80u);
    length[n++] = static_cast<char>(left);
    out_.insert(begin, length, n);
  }
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  std::string take() { return std::move(out_); }

 private:
  enum WireType : std::uint32_t { kVarint = 0, kBytes = 2, kFixed32 = 5 };
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      out_ += static_cast<char>((value & 0x7Fu) | 0x80u);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace dota
