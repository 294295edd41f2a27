// Delta codec of a team's consecutive observations, which mostly equal the previous one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dota {

// The packed form (`pack16`) of rows of n 16-bit values, after each but every `period`-th, counted from the first,
// has become its exclusive or with the row before.
class ChangesPacker {
 public:
  // `rows` rows one after another.
  std::vector<std::uint8_t> pack(const std::uint8_t* in, std::size_t rows, std::size_t n, std::size_t period);
  // Encodes separately packed rows. Returns false if one is not the packed form of n values.
  bool join(std::span<const std::span<const std::uint8_t>> rows, std::size_t n, std::size_t period,
            std::vector<std::uint8_t>& out);

 private:
  void begin(std::size_t rows, std::size_t n);
  // Packs a row, against the one before where that is not null.
  void add(const std::uint16_t* row, const std::uint16_t* before, std::size_t n);
  std::vector<std::uint8_t> all(std::size_t n);

  // Kept from call to call: to ask the system for so much memory and clear it costs more than to pack.
  std::vector<std::uint16_t> rows_[2], changed_;
  std::vector<std::uint8_t> packed_;
  std::vector<std::size_t> ends_;
  std::size_t used_ = 0;
};

}  // namespace dota
