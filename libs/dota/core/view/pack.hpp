// Observations at rest and on the wire: one bit a value says whether it is not zero, then the values that are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace dota {

// Packed form of n 16-bit values: ceil(n / 8) bytes of bits, least significant first, then the nonzero values in
// order, little-endian. It holds no length: the reader knows the shape.
inline std::size_t pack_bound(std::size_t n) { return (n + 7) / 8 + 2 * n; }
// What packs: the best of what the processor has, or one of the others, for the test that compares them. One that
// the processor lacks is the portable one.
enum class PackWay : std::uint8_t { Best, Portable, Shuffle, Compress, Count };
// Packs and returns the bytes written, at most pack_bound(n).
std::size_t pack16(const std::uint16_t* in, std::size_t n, std::uint8_t* out, PackWay way = PackWay::Best);
// The packed form of `rows` one after another, each itself the packed form of n values: writes it to `out`, which
// has room for the bits of all and the values of all. False when a row has too few bytes for the bits of n values,
// or a bit behind them; that as many values follow as there are bits is not looked at. `out` then holds
// unspecified bytes.
bool join16(std::span<const std::span<const std::uint8_t>> rows, std::size_t n, std::uint8_t* out);
// Splits the packed form of `rows` rows of n values each into one for each row. `room` returns the output for the
// next row of a given size. Returns false if `packed` is not the packed form of rows * n values; stored zeros are
// not detected. The output is then undefined.
bool split16(std::span<const std::uint8_t> packed, std::size_t rows, std::size_t n,
             const std::function<std::uint8_t*(std::size_t size)>& room);
// Unpacks exactly n values from exactly `size` bytes. False when they do not fit: too short, too long, a bit set
// behind the end, or a value that is zero though its bit is set. `out` then holds unspecified values.
bool unpack16(const std::uint8_t* in, std::size_t size, std::uint16_t* out, std::size_t n,
              PackWay way = PackWay::Best);

}  // namespace dota
