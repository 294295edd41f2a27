#include "client/wire.hpp"

namespace dota {

bool WireReader::fail(const char* why) {
  fault_ = why;
  rest_ = {};
  return false;
}

bool WireReader::varint(std::uint64_t& out) {
  out = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    if (i >= rest_.size()) return fail("a number is cut off");
    const auto byte = static_cast<std::uint8_t>(rest_[i]);
    if (i == 9 && byte > 1) return fail("a number has more than 64 bits");
    out |= static_cast<std::uint64_t>(byte & 0x7Fu) << (7 * i);
    if (byte & 0x80u) continue;
    rest_.remove_prefix(i + 1);
    return true;
  }
  return fail("a number has more than 10 bytes");
}

bool WireReader::fixed(std::size_t bytes, std::uint64_t& out) {
  if (rest_.size() < bytes) return fail("a number is cut off");
  out = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    out |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(rest_[i])) << (8 * i);
  rest_.remove_prefix(bytes);
  return true;
}

bool WireReader::next(WireField& out) {
  if (rest_.empty()) return false;
  std::uint64_t key = 0;
  if (!varint(key)) return false;
  if (key >> 32) return fail("a field number has more than 29 bits");
  out.number = static_cast<std::uint32_t>(key >> 3);
  if (out.number == 0) return fail("a field has number 0");
  out.type = static_cast<WireType>(key & 7u);
  out.bytes = {};
  switch (out.type) {
    case WireType::Varint:
      return varint(out.bits);
    case WireType::Fixed32:
      return fixed(4, out.bits);
    case WireType::Fixed64:
      return fixed(8, out.bits);
    case WireType::Bytes: {
      std::uint64_t size = 0;
      if (!varint(size)) return false;
      if (size > rest_.size()) return fail("a field is cut off");
      out.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
  }
  return fail("a field has an unknown wire type");
}

}  // namespace dota
