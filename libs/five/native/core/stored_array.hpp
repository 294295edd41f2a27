// Stored arrays of samples, which are unpacked straight into a batch's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace five {

// How an array's bytes are written. Packed: one bit per 16-bit value says whether it is not zero, then the values
// that are not zero follow. Changes: packed after each row but a part's first was replaced by its exclusive or
// with the row before.
enum class Encoding : std::uint8_t { Plain, Packed, Changes, Count };
// Instructions that unpack. Best: the fastest that the CPU has; tests compare the others with it. A method that
// the CPU lacks falls back to the portable one.
enum class UnpackMethod : std::uint8_t { Best, Portable, Shuffle, Expand, Count };

// An array cut along its first dimension into equal parts, each of `rows` rows of `width` bytes.
struct StoredArray {
  std::span<const std::uint8_t> data;
  Encoding encoding = Encoding::Plain;
  std::size_t rows = 1, width = 0;
  std::vector<std::size_t> values;  // Packed: offset in `data` of the values of each part.
};

// Fills `values`. Returns false when `data` does not match `parts` parts of that encoding and size: too short, too
// long, a presence bit behind the end, or packed rows of an odd number of bytes.
bool index_parts(StoredArray& array, std::size_t parts);

// Writes the rows of one part to `out`, `stride` bytes apart.
void write_part(const StoredArray& array, std::size_t part, std::uint8_t* out, std::size_t stride,
                UnpackMethod method = UnpackMethod::Best);

}  // namespace five
