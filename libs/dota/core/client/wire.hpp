// Bounded reader of the protobuf wire format: fields of one message, one after another, without copying.
#pragma once

#include <cstdint>
#include <string_view>

namespace dota {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// One field. Strings and messages are in `bytes`, which points into the buffer that is read.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::Varint;
  std::uint64_t bits = 0;
  std::string_view bytes;

  bool is_number() const { return type == WireType::Varint || type == WireType::Fixed32; }
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}
  // Reads the next field. Returns false at the end and at a fault.
  bool next(WireField& out);
  // Why the bytes are not a message: a constant text; nullptr while they are.
  const char* fault() const { return fault_; }

 private:
  bool varint(std::uint64_t& out);
  bool fixed(std::size_t bytes, std::uint64_t& out);
  bool fail(const char* why);

  std::string_view rest_;
  const char* fault_ = nullptr;
};

}  // namespace dota
