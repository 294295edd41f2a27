// The rows of units: what every unit in sight shows, and how it stands to each own hero.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.hpp"
#include "view/encoder.hpp"
#include "view/half.hpp"

namespace dota {

void Encoder::encode_units(const TeamView& v, const SlotTable& slots, std::uint16_t* shared) {
  const RegistryIds& ids = *v.constants.ids;
  const Rows& rows = layout_.unit_rows;
  std::array<float, kMaxSlots> facing, sine, cosine;
  std::size_t n = 0;
  for (int i = 0; i < layout_.units; ++i)
    if (const int index = slots.unit[i]; index >= 0) facing[n++] = v.units[index].facing;
  sin_cos_of(facing.data(), n, sine.data(), cosine.data());
  // A row is turned to 16 bits some rows after it was made: to read at once what was just written in small pieces
  // would mean to wait for it.
  constexpr std::size_t kBehind = 4;
  std::array<UnitRow, 2 * kBehind> made;
  std::array<std::uint16_t*, 2 * kBehind> places;
  const auto put = [&](std::size_t k) {
    const auto* const numbers = reinterpret_cast<const float*>(&made[k % made.size()]);
    for (const Rows::Piece& p : rows.pieces)
      to_half(numbers + p.from, places[k % made.size()] + p.at, p.n);
  };
  n = 0;
  for (int i = 0; i < layout_.units; ++i) {
    std::uint16_t* const out = shared + rows.row(i);
    prefetch_some(ahead_, 8);
    const int index = slots.unit[i];
    if (index < 0) {
      std::fill_n(out, rows.stride, std::uint16_t{0});
      continue;
    }
    const SeenUnit& s = v.units[index];
    const HpHistory& hp = v.hp_histories[index];
    UnitRow& r = made[n % made.size()];
    places[n % made.size()] = out;
    r.position[0] = s.pos.x * turn_ * scale::kPosition;
    r.position[1] = s.pos.y * turn_ * scale::kPosition;
    r.position[2] = static_cast<float>(s.level) * scale::kLevelZ;
    r.facing[0] = cosine[n] * turn_;
    r.facing[1] = sine[n] * turn_;
    r.attacking = s.attacking ? 1.0f : 0.0f;
    r.since_attack = std::min(s.since_attack * scale::kShort, 1.0f);
    r.max_hp = s.max_hp * scale::kHp;
    for (std::size_t t = 0; t < kHistory; ++t)
      r.hp_history[t] = hp[t] * scale::kHp;
    r.damage = s.damage * scale::kDamage;
    r.attack_speed = s.attack_speed * scale::kAttackSpeed;
    r.physical_resistance = s.physical_resistance;
    r.glyphed = s.status & kGlyphed ? 1.0f : 0.0f;
    r.glyph_timer = s.glyph_left * scale::kShort;
    r.move_speed = s.move_speed * scale::kMoveSpeed;
    r.mine = s.side == Side::Own ? 1.0f : 0.0f;
    r.neutral = s.side == Side::Neutral ? 1.0f : 0.0f;
    r.animation_time = s.act_left * scale::kSeconds;
    r.ranged_creep_eta = s.ranged_creep_eta * scale::kSeconds;
    r.tower_eta = s.tower_eta * scale::kSeconds;
    r.melee_creeps_attacking = static_cast<float>(s.melee_creeps_attacking) * scale::kCount;
    r.shrine_cooldown = s.shrine_cooldown * scale::kMinutes;
    if (n >= kBehind) put(n - kBehind);
    ++n;
    id(layout_.unit.unit, i) = ids.of(ids.unit, s.type);
    id(layout_.unit.animation, i) = ids.of(ids.animation, static_cast<int>(s.act));
  }
  for (std::size_t k = n < kBehind ? 0 : n - kBehind; k < n; ++k)
    put(k);
}

void Encoder::encode_looks(const TeamView& v, const SlotTable& slots, std::uint16_t* all_private) {
  const Rows& rows = layout_.look_rows;
  // Fields of the units in structure-of-arrays form, read once for all heroes and processed in SIMD groups.
  std::array<std::int16_t, kMaxSlots> slot;
  std::array<Handle, kMaxSlots> handle;
  std::array<float, kMaxSlots> x, y, dx, dy, away;
  std::array<std::uint16_t, kMaxSlots> half_x, half_y, half_away;
  std::array<std::pair<std::int16_t, Handle>, kMaxSlots> attackers;  // which of them, whom it attacks
  std::array<std::int16_t, kMaxUnits + 5> place;                     // of a unit of the view among them
  std::size_t n = 0, attacking = 0;
  std::fill_n(place.begin(), v.unit_count, std::int16_t{-1});
  for (int i = 0; i < layout_.units; ++i) {
    const int index = slots.unit[i];
    if (index < 0) continue;
    const SeenUnit& s = v.units[index];
    if (s.attacking) attackers[attacking++] = {static_cast<std::int16_t>(n), s.attack_target};
    place[index] = static_cast<std::int16_t>(n);
    slot[n] = static_cast<std::int16_t>(i);
    handle[n] = s.handle;
    x[n] = s.pos.x;
    y[n++] = s.pos.y;
  }
  // Seconds until the first shot on its way to an own hero hits, by who fired it. Few fly at a time.
  struct Shot {
    int hero = 0, from = 0;
    float eta = 0;
  };
  std::array<Shot, kViewProjectiles> shots;
  std::size_t flying = 0;
  for (int j = 0; j < v.projectile_count; ++j) {
    const SeenProjectile& s = v.projectiles[j];
    if (s.eta <= 0) continue;
    const int target = v.find(s.target), source = v.find(s.source);
    if (target < 0 || source < 0) continue;
    const int h = v.units[target].hero, from = place[source];
    if (h >= 0 && h < layout_.heroes && from >= 0) shots[flying++] = {h, from, s.eta};
  }
  const std::uint16_t one = kHalfOne;
  // Where nothing is left out of the rows they are made in their places, else aside.
  const bool whole = rows.whole();
  std::array<UnitLook, kMaxSlots> aside;
  for (int h = 0; h < layout_.heroes; ++h) {
    std::uint16_t* const out = all_private + h * width_private_;
    prefetch_some(ahead_);
    std::fill_n(out + rows.row(0), rows.stride * layout_.units, std::uint16_t{0});
    const auto look = [&](std::size_t i) -> UnitLook& {
      return whole ? *reinterpret_cast<UnitLook*>(out + rows.row(slot[i])) : aside[i];
    };
    if (const SeenUnit* const me = v.body(h)) {
      const Vec2 at = me->pos;
      const float turn = turn_;
      for (std::size_t i = 0; i < n; ++i) {
        const Vec2 d = Vec2{x[i], y[i]} - at;
        dx[i] = d.x * turn * scale::kDistance;
        dy[i] = d.y * turn * scale::kDistance;
        away[i] = d.length() * scale::kDistance;
      }
      to_half(dx.data(), half_x.data(), n);
      to_half(dy.data(), half_y.data(), n);
      to_half(away.data(), half_away.data(), n);
      for (std::size_t i = 0; i < n; ++i)
        look(i) = {{half_x[i], half_y[i], half_away[i]}, 0, 0, 0};
      if (me->attacking)
        for (std::size_t i = 0; i < n; ++i)
          if (me->attack_target == handle[i]) look(i).i_attack_it = one;
      for (std::size_t i = 0; i < attacking; ++i)
        if (attackers[i].second == me->handle) look(attackers[i].first).it_attacks_me = one;
    } else if (flying > 0) {
      std::fill_n(aside.begin(), n, UnitLook{});  // in their places there are zeros
    } else {
      continue;
    }
    for (std::size_t j = 0; j < flying; ++j) {
      const Shot& s = shots[j];
      if (s.hero != h) continue;
      const bool first =
          std::none_of(shots.begin(), shots.begin() + static_cast<std::ptrdiff_t>(flying),
                       [&](const Shot& o) { return o.hero == h && o.from == s.from && o.eta < s.eta; });
      if (first) look(s.from).projectile_eta = to_half(s.eta * scale::kSeconds);
    }
    if (whole) continue;
    for (std::size_t i = 0; i < n; ++i)
      for (const Rows::Piece& p : rows.pieces)
        std::copy_n(reinterpret_cast<const std::uint16_t*>(&aside[i]) + p.from, p.n,
                    out + rows.row(slot[i]) + p.at);
  }
}

void Encoder::encode_modifiers(const TeamView& v, const SlotTable& slots) {
  const RegistryIds& ids = *v.constants.ids;
  const int per_hero = layout_.table.hero_modifiers, per_unit = layout_.table.unit_modifiers;
  for (int h = 0; h < 2 * layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present) continue;
    for (int i = 0; i < std::min<int>(s.modifier_count, per_hero); ++i) {
      const SeenModifier& m = s.modifiers[i];
      const int row = h * per_hero + i;
      f(layout_.hero_modifier.remaining, row) = m.remaining * scale::kMinutes;
      f(layout_.hero_modifier.stacks, row) = static_cast<float>(m.stacks) * scale::kCharges;
      id(layout_.hero_modifier.modifier, row) = ids.of(ids.modifier, m.name);
    }
  }
  // Heroes hold the first slots; the rows of other units' modifiers begin behind them.
  const int first = 2 * layout_.heroes;
  for (int u = first; per_unit > 0 && u < layout_.units; ++u) {
    const int index = slots.unit[u];
    if (index < 0) continue;
    const SeenUnit& s = v.units[index];
    for (int i = 0; i < std::min<int>(s.modifier_count, per_unit); ++i) {
      const SeenModifier& m = v.unit_modifiers[index][i];
      const int row = (u - first) * per_unit + i;
      f(layout_.unit_modifier.remaining, row) = m.remaining * scale::kMinutes;
      f(layout_.unit_modifier.stacks, row) = static_cast<float>(m.stacks) * scale::kCharges;
      id(layout_.unit_modifier.modifier, row) = ids.of(ids.modifier, m.name);
    }
  }
}

// Creeps and heroes of either side that stand between an own hero and each hero: within 100 units of the line.
void Encoder::encode_in_line(const TeamView& v) {
  constexpr float kHalfWidth = 100.0f, kReach = 3000.0f;
  line_n_.fill(0);
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[i];
    const bool hero = s.kind == UnitKind::Hero;
    if (!hero && s.kind != UnitKind::LaneCreep && s.kind != UnitKind::Neutral && s.kind != UnitKind::Summon)
      continue;
    if (!s.visible || s.hp <= 0) continue;
    const std::size_t c = (hero ? 2u : 0u) + (s.side == Side::Own ? 0u : 1u);
    const std::size_t n = line_n_[c]++;
    line_x_[c][n] = s.pos.x;
    line_y_[c][n] = s.pos.y;
  }
  for (int h = 0; h < layout_.heroes; ++h) {
    prefetch_some(ahead_);
    const SeenUnit* me = v.body(h);
    if (!me || me->hp <= 0) continue;
    for (int o = 0; o < 2 * layout_.heroes; ++o) {
      const SeenUnit* other = v.body(o);
      if (o == h || !other || other->hp <= 0 || !other->visible) continue;
      const Vec2 d = other->pos - me->pos;
      const float length2 = d.dot(d);
      if (length2 > kReach * kReach || length2 < 1.0f) continue;
      const float limit = kHalfWidth * kHalfWidth * length2;
      for (std::size_t c = 0; c < 4; ++c) {
        int count = 0;
        const float *xs = line_x_[c].data(), *ys = line_y_[c].data();
        for (int i = 0; i < line_n_[c]; ++i) {
          const float x = xs[i] - me->pos.x, y = ys[i] - me->pos.y;
          const float along = x * d.x + y * d.y, across = x * d.y - y * d.x;
          // Strictly between: neither of the two heroes counts.
          count += (along > 0.5f) & (along < length2 - 0.5f) & (across * across <= limit);
        }
        p(h, layout_.hero.in_line, o, static_cast<int>(c)) = static_cast<float>(count) * scale::kCount;
      }
    }
  }
}

}  // namespace dota
