#include "world/fingerprint.hpp"

#include <cstring>
#include <stdexcept>

#include "core_sources.hpp"

namespace dota {

std::uint64_t splitmix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

std::uint64_t mix_bytes(const void* data, std::size_t size, std::uint64_t h) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, p + i, 8);
    h = splitmix(h ^ word);
  }
  for (; i < size; ++i)
    h = splitmix(h ^ p[i]);
  return h;
}

std::uint64_t core_fingerprint() { return FIVE_CORE_SOURCES; }

std::uint64_t node_fingerprint(const Node& n) {
  std::uint64_t h = splitmix(static_cast<std::uint64_t>(n.type));
  h = mix_bytes(&n.number, sizeof n.number, h);
  h = mix_text(n.string, h);
  for (const Node& e : n.list)
    h = splitmix(h ^ node_fingerprint(e));
  for (const auto& [key, value] : n.object)
    h = splitmix(mix_text(key, h) ^ node_fingerprint(value));
  return h;
}

namespace {

template <class... T>
std::uint64_t mix_all(std::uint64_t h, const T&... values) {
  ((h = mix_bytes(&values, sizeof values, h)), ...);
  return h;
}

}  // namespace

std::uint64_t settings_fingerprint(const GameSettings& s) {
  // A new setting must be added below; then the size here is brought up to date.
  static_assert(sizeof(GameSettings) == 144, "a setting was added: add it to the fingerprint");
  return mix_all(0, s.heroes_per_team, s.mode_1v1_mid, s.kills_to_win, s.tower_wins, s.lane_enabled, s.neutrals,
                 s.roshan, s.runes, s.courier_scripted, s.max_game_s, s.start_s, s.offset_cell, s.buyback,
                 s.timesteps_per_action, s.commit_windups, s.commit_moves, s.save_consumables, s.hide_unseen,
                 s.aggro_orders, s.keep_tango, s.keep_salve, s.keep_clarity, s.keep_teleport,
                 s.consumables_until_s, s.upkeep_share, s.random_attributes, s.random_armor, s.random_move_speed,
                 s.random_hp_regen, s.random_mana_regen, s.random_magic_resist, s.random_gold, s.random_xp,
                 s.random_item_drop, s.random_item_insert, s.random_consumables, s.random_lane, s.random_skill,
                 s.random_roshan, s.random_lane_until_s);
}

SnapshotHead snapshot_head(const char* magic, std::uint64_t data, std::uint64_t settings, const void* payload,
                           std::size_t size) {
  SnapshotHead head;
  std::memcpy(head.magic, magic, sizeof head.magic);
  head.core = core_fingerprint();
  head.data = data;
  head.settings = settings;
  head.size = size;
  head.checksum = mix_bytes(payload, size, splitmix(head.core ^ data) ^ settings);
  return head;
}

void seal_snapshot(void* bytes, std::size_t size) {
  SnapshotHead head;
  if (size < sizeof head) return;
  std::memcpy(&head, bytes, sizeof head);
  head.checksum = mix_bytes(static_cast<const std::uint8_t*>(bytes) + sizeof head, size - sizeof head,
                            splitmix(head.core ^ head.data) ^ head.settings);
  std::memcpy(bytes, &head, sizeof head);
}

SnapshotHead read_snapshot_head(const char* magic, const void* bytes, std::size_t size, std::size_t payload) {
  SnapshotHead head;
  if (size < sizeof head)
    throw std::invalid_argument("snapshot: " + std::to_string(size) + " bytes are too few to be one");
  std::memcpy(&head, bytes, sizeof head);
  if (std::memcmp(head.magic, magic, sizeof head.magic - 1) != 0)
    throw std::invalid_argument("snapshot: the bytes are not a snapshot of this kind");
  if (head.magic[7] != magic[7])
    throw std::invalid_argument(std::string("snapshot: its format is '") + head.magic[7] +
                                "', this program reads '" + magic[7] + "'");
  if (head.core != core_fingerprint() || head.size != payload)
    throw std::invalid_argument(
        "snapshot: it was taken by another build of the game, whose state is laid out otherwise");
  if (size != sizeof head + payload)
    throw std::invalid_argument("snapshot: it has " + std::to_string(size) + " bytes, " +
                                std::to_string(sizeof head + payload) + " are expected: it was cut or added to");
  const auto* body = static_cast<const std::uint8_t*>(bytes) + sizeof head;
  if (mix_bytes(body, payload, splitmix(head.core ^ head.data) ^ head.settings) != head.checksum)
    throw std::invalid_argument("snapshot: its checksum does not match, the bytes are damaged");
  return head;
}

}  // namespace dota
