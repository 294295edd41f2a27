#include "view/changes.hpp"

#include <cstring>

#include "view/pack.hpp"

namespace dota {

void ChangesPacker::begin(std::size_t rows, std::size_t n) {
  used_ = 0;
  ends_.clear();
  ends_.reserve(rows);
  changed_.resize(n);
  for (auto& row : rows_)
    row.resize(n);
}

void ChangesPacker::add(const std::uint16_t* row, const std::uint16_t* before, std::size_t n) {
  if (before) {
    for (std::size_t i = 0; i < n; ++i)
      changed_[i] = static_cast<std::uint16_t>(row[i] ^ before[i]);
    row = changed_.data();
  }
  if (packed_.size() < used_ + pack_bound(n)) packed_.resize(2 * used_ + pack_bound(n));
  used_ += pack16(row, n, packed_.data() + used_);
  ends_.push_back(used_);
}

std::vector<std::uint8_t> ChangesPacker::all(std::size_t n) {
  if (ends_.empty() || n == 0) return {};  // pointers may be null then
  std::vector<std::span<const std::uint8_t>> rows;
  rows.reserve(ends_.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    rows.emplace_back(packed_.data() + begin, end - begin);
    begin = end;
  }
  const std::size_t head = (n + 7) / 8;
  std::vector<std::uint8_t> out((rows.size() * n + 7) / 8 + used_ - rows.size() * head);
  join16(rows, n, out.data());
  return out;
}

std::vector<std::uint8_t> ChangesPacker::pack(const std::uint8_t* in, std::size_t rows, std::size_t n,
                                              std::size_t period) {
  begin(rows, n);
  if (n == 0) return {};
  for (std::size_t r = 0; r < rows; ++r) {
    // Copied because the rows may be unaligned.
    std::memcpy(rows_[r % 2].data(), in + r * 2 * n, 2 * n);
    add(rows_[r % 2].data(), r % period == 0 ? nullptr : rows_[(r + 1) % 2].data(), n);
  }
  return all(n);
}

bool ChangesPacker::join(std::span<const std::span<const std::uint8_t>> rows, std::size_t n, std::size_t period,
                         std::vector<std::uint8_t>& out) {
  begin(rows.size(), n);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::uint16_t* to = rows_[r % 2].data();
    if (!unpack16(rows[r].data(), rows[r].size(), to, n)) return false;
    add(to, r % period == 0 ? nullptr : rows_[(r + 1) % 2].data(), n);
  }
  out = all(n);
  return true;
}

}  // namespace dota
