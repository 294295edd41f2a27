#include "view/encoder.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "view/half.hpp"

namespace dota {

Encoder::Encoder(const Layout& layout)
    : layout_(layout),
      pitch_private_(layout.pitch(ObsArray::Private)),
      pitch_private_ids_(layout.pitch(ObsArray::PrivateIds)),
      width_private_(layout.width(ObsArray::Private)) {
  shared_.assign(layout.pitch(ObsArray::Shared), 0.0f);
  private_.assign(layout.heroes * pitch_private_, 0.0f);
  const int n = layout.table.minimap;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x)
      minimap_cells_.push_back({(2.0f * (static_cast<float>(x) + 0.5f) / static_cast<float>(n)) - 1.0f,
                                (2.0f * (static_cast<float>(y) + 0.5f) / static_cast<float>(n)) - 1.0f,
                                static_cast<float>(y * n + x) / static_cast<float>(n * n)});
  const int near = layout.table.nearby_map;
  const float half = 0.5f * static_cast<float>(near) * kNearbyCell;
  for (int i = 0; i < near * near; ++i) {
    cell_x_[i] = (static_cast<float>(i % near) + 0.5f) * kNearbyCell - half;
    cell_y_[i] = (static_cast<float>(i / near) + 0.5f) * kNearbyCell - half;
  }
  for (int i = 0; i < 256; ++i)
    levels_[i] = to_half(static_cast<float>(static_cast<std::int8_t>(i)) * scale::kLevelZ);
  if (layout.unit_rows.made * sizeof(float) != sizeof(UnitRow) ||
      layout.look_rows.made * sizeof(std::uint16_t) != sizeof(UnitLook) ||
      layout.ground_rows.made * sizeof(std::uint16_t) != sizeof(GroundRow))
    throw std::logic_error("the encoder's rows are not those of the layout");
  float sum = 0;
  for (int i = 0; i < kMaxUnits + 6; ++i, sum += scale::kCount)
    counts_.push_back(to_half(sum));
  const auto stretch = [](const Rows& rows, int n) {
    return Stretch{rows.row(0), static_cast<std::size_t>(rows.stride * n)};
  };
  shared_rest_ = between({stretch(layout.unit_rows, layout.units)}, layout.width(ObsArray::Shared));
  private_rest_ = between({stretch(layout.look_rows, layout.units),
                           stretch(layout.ground_rows, layout.table.nearby_map * layout.table.nearby_map)},
                          layout.width(ObsArray::Private));
  ids_.assign(layout.pitch(ObsArray::SharedIds), 0);
  private_ids_.assign(layout.heroes * pitch_private_ids_, 0);
}

std::vector<Encoder::Stretch> Encoder::between(std::vector<Stretch> rows, std::size_t width) {
  std::sort(rows.begin(), rows.end(), [](const Stretch& a, const Stretch& b) { return a.from < b.from; });
  std::vector<Stretch> out;
  std::size_t at = 0;
  for (const Stretch& r : rows) {
    if (r.n == 0) continue;
    if (r.from > at) out.push_back({at, r.from - at});
    at = r.from + r.n;
  }
  if (at < width) out.push_back({at, width - at});
  return out;
}

void Encoder::encode(const TeamView& v, const SlotTable& slots, const Choices& choices, const TeamStepBuffers& out,
                     PrefetchQueue* ahead) {
  ahead_ = ahead;
  std::fill(ids_.begin(), ids_.end(), std::uint16_t{0});
  std::fill(private_ids_.begin(), private_ids_.end(), std::uint16_t{0});
  turn_ = v.mirrored ? -1.0f : 1.0f;
  encode_global(v);
  encode_units(v, slots, out.shared);
  encode_looks(v, slots, out.private_);
  encode_heroes(v);
  prefetch_some(ahead_);
  encode_allies(v);
  prefetch_some(ahead_);
  encode_modifiers(v, slots);
  prefetch_some(ahead_);
  encode_abilities(v);
  prefetch_some(ahead_);
  encode_items(v);
  prefetch_some(ahead_);
  encode_in_line(v);
  encode_pickups(v);
  prefetch_some(ahead_);
  if (layout_.minimap.exists) encode_minimap(v);
  prefetch_some(ahead_);
  if (layout_.nearby.exists) encode_nearby(v, out.private_);
  encode_previous(v);
  const auto width = [&](ObsArray a) -> std::size_t { return layout_.width(a); };
  const std::size_t own = width_private_, own_ids = width(ObsArray::PrivateIds);
  for (const Stretch& s : shared_rest_)
    take_half(shared_.data() + s.from, out.shared + s.from, s.n);
  encode_passability(v, out.shared);
  std::fill(shared_.begin() + layout_.width(ObsArray::Shared), shared_.end(), 0.0f);
  std::memcpy(out.shared_ids, ids_.data(), width(ObsArray::SharedIds) * sizeof(std::uint16_t));
  const std::size_t units = layout_.units;
  for (int h = 0; h < layout_.heroes; ++h) {
    float* const mine = private_.data() + h * pitch_private_;
    prefetch_some(ahead_);
    for (const Stretch& s : private_rest_)
      take_half(mine + s.from, out.private_ + h * own + s.from, s.n);
    std::fill(mine + own, mine + pitch_private_, 0.0f);
    std::memcpy(out.private_ids + h * own_ids, private_ids_.data() + h * pitch_private_ids_,
                own_ids * sizeof(std::uint16_t));
    std::memcpy(out.available + h * kMaxAvailable, choices.available[h].data(),
                kMaxAvailable * sizeof(std::uint16_t));
    for (std::size_t c = 0; c < kMaskClasses; ++c)
      std::memcpy(out.target_mask + (h * kMaskClasses + c) * units, choices.mask[h][c].data(), units);
  }
}

void Encoder::encode_global(const TeamView& v) {
  const auto& g = layout_.global;
  f(g.time) = v.time * scale::kGameTime;
  f(g.day) = v.day ? 1.0f : 0.0f;
  f(g.time_to_day_change) = v.time_to_day_change * scale::kMinutes;
  f(g.time_to_creeps) = v.time_to_creeps * scale::kMinutes;
  f(g.time_to_neutrals) = v.time_to_neutrals * scale::kMinutes;
  f(g.time_to_bounty) = v.time_to_bounty * scale::kMinutes;
  f(g.time_to_runes) = v.time_to_runes * scale::kMinutes;
  f(g.enemy_courier_unseen) = std::min(v.enemy_courier_unseen * scale::kCourierUnseen, 1.0f);
  f(g.roshan_spawn_min) = v.roshan_spawn_min * scale::kMinutes;
  f(g.roshan_spawn_max) = v.roshan_spawn_max * scale::kMinutes;
  f(g.roshan_max_hp) = v.roshan_max_hp * scale::kHp;
  f(g.roshan_alive) = v.roshan_alive ? 1.0f : 0.0f;
  f(g.roshan_dead) = v.roshan_dead ? 1.0f : 0.0f;
  f(g.roshan_cheese) = v.roshan_cheese ? 1.0f : 0.0f;
  f(g.roshan_refresher) = v.roshan_refresher ? 1.0f : 0.0f;
  f(g.roshan_randomisation) = v.roshan_randomisation;
  for (int i = 0; i < 2; ++i)
    f(g.glyph_cooldown, 0, i) = v.glyph_cooldown[i] * scale::kMinutes;
  for (int i = 0; i < 4; ++i)
    f(g.stock, 0, i) = static_cast<float>(v.stock[i]) * scale::kCount;
}

void Encoder::encode_pickups(const TeamView& v) {
  const auto& k = layout_.pickup;
  for (int i = 0; i < layout_.pickups; ++i) {
    // Spots keep their rows on the turned map: the real map's spots are not symmetric.
    const SeenPickup& s = v.pickups[i];
    f(k.status, i, s.status == 1 ? 0 : (s.status == 2 ? 1 : 2)) = 1.0f;
    f(k.location, i, 0) = s.pos.x * turn_ * scale::kPosition;
    f(k.location, i, 1) = s.pos.y * turn_ * scale::kPosition;
    for (int h = 0; h < 2 * layout_.heroes; ++h)
      if (const SeenUnit* body = v.body(h)) f(k.distance, i, h) = distance(body->pos, s.pos) * scale::kPosition;
    id(k.pickup, i) = v.constants.ids->of(v.constants.ids->pickup, s.kind);
  }
}

void Encoder::encode_previous(const TeamView& v) {
  const auto& k = layout_.previous;
  for (int h = 0; h < layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present || s.previous.action <= kNoAction) continue;
    pid(h, k.action) = static_cast<std::uint16_t>(s.previous.action);
    pid(h, k.target_slot) = static_cast<std::uint16_t>(s.previous_slot + 1);
    // One-hot offsets of regular, caster and ward heads, x then y; only the head the action read.
    int head = -1;
    switch (v.constants.actions->defs[s.previous.action].target) {
      case TargetType::UnitOffset:
      case TargetType::Teleport:
        head = 0;
        break;
      case TargetType::Point:
        head = 1;
        break;
      case TargetType::Ward:
        head = 2;
        break;
      default:
        break;
    }
    if (head < 0) continue;
    for (int axis = 0; axis < 2; ++axis)
      p(h, k.offsets, 0, (2 * head + axis) * kOffsets + s.previous_offset[axis] + kOffsets / 2) = 1.0f;
  }
}

}  // namespace dota
