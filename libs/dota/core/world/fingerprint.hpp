// Fingerprints: whether a snapshot or a replay belongs to these sources, these data and these settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/node.hpp"
#include "world/settings.hpp"

namespace dota {

std::uint64_t splitmix(std::uint64_t x);
std::uint64_t mix_bytes(const void* data, std::size_t size, std::uint64_t h);
inline std::uint64_t mix_text(const std::string& s, std::uint64_t h) {
  return mix_bytes(s.data(), s.size(), splitmix(h ^ s.size()));
}

std::uint64_t core_fingerprint();                           // of the sources this core was built from
std::uint64_t node_fingerprint(const Node& n);              // of a data file, as it was parsed
std::uint64_t settings_fingerprint(const GameSettings& s);  // of every setting but the vocabulary

// The head of every snapshot; what follows it is `size` bytes.
struct SnapshotHead {
  char magic[8] = {};
  std::uint64_t core = 0, data = 0, settings = 0, size = 0, checksum = 0;
};
// `magic` says what kind of snapshot it is, seven characters and the number of its format.
SnapshotHead snapshot_head(const char* magic, std::uint64_t data, std::uint64_t settings, const void* payload,
                           std::size_t size);
// Whether the bytes begin with a head of that kind and carry the payload it promises, from this core. Throws
// std::invalid_argument saying what they are instead.
SnapshotHead read_snapshot_head(const char* magic, const void* bytes, std::size_t size, std::size_t payload);

// Writes the checksum that the bytes should have into a snapshot's head; nothing when they are too few for one.
void seal_snapshot(void* bytes, std::size_t size);

}  // namespace dota
