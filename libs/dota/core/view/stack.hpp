// Samples at rest, put side by side in a batch's arrays: unpacked on the way, and not copied besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dota {

// How an array's bytes are written: as they are; packed as `pack16` does it; or packed after each row but a part's
// first has become its difference (exclusive or) to the row before.
enum class Form : std::uint8_t { Plain, Packed, Changes, Count };
// What unpacks: the best of what the processor has, or one of the others, for the test that compares them. One
// that the processor lacks is the portable one.
enum class UnpackWay : std::uint8_t { Best, Portable, Shuffle, Expand, Count };

// An array cut along its first dimension into equal parts, each of `rows` rows of `width` bytes.
struct StoredArray {
  std::span<const std::uint8_t> data;
  Form form = Form::Plain;
  std::size_t rows = 1, width = 0;
  std::vector<std::size_t> values;  // of packed ones: where in `data` the values of each part begin
};

// Finds where the parts begin. False when `data` is not what `parts` parts of that form and size take: too short,
// too long, a presence bit behind the end, or packed rows of an odd number of bytes.
bool index_parts(StoredArray& array, std::size_t parts);

// Writes the rows of one part to `out`, `stride` bytes from row to row.
void write_part(const StoredArray& array, std::size_t part, std::uint8_t* out, std::size_t stride,
                UnpackWay way = UnpackWay::Best);

}  // namespace dota
