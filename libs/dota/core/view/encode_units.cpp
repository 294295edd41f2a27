// The rows of units: what every unit in sight shows, and how it stands to each own hero.
#include <algorithm>
#include <cmath>
#include <utility>

#include "view/encoder.hpp"
#include "world/math.hpp"

namespace dota {

void Encoder::encode_units(const TeamView& v, const SlotTable& slots) {
  const auto& k = layout_.unit;
  const RegistryIds& ids = *v.constants.ids;
  for (int i = 0; i < layout_.units; ++i) {
    const int index = slots.unit[static_cast<std::size_t>(i)];
    if (index < 0) continue;
    const SeenUnit& s = v.units[static_cast<std::size_t>(index)];
    f(k.position, i, 0) = s.pos.x * turn_ * scale::kPosition;
    f(k.position, i, 1) = s.pos.y * turn_ * scale::kPosition;
    f(k.position, i, 2) = static_cast<float>(s.level) * scale::kLevelZ;
    const SinCos facing = sin_cos(s.facing);
    f(k.facing, i, 0) = facing.cos * turn_;
    f(k.facing, i, 1) = facing.sin * turn_;
    f(k.attacking, i) = s.attacking ? 1.0f : 0.0f;
    f(k.since_attack, i) = std::min(s.since_attack * scale::kShort, 1.0f);
    f(k.max_hp, i) = s.max_hp * scale::kHp;
    for (int t = 0; t < kHistory; ++t)
      f(k.hp_history, i, t) = s.hp_history[static_cast<std::size_t>(t)] * scale::kHp;
    f(k.damage, i) = s.damage * scale::kDamage;
    f(k.attack_speed, i) = s.attack_speed * scale::kAttackSpeed;
    f(k.physical_resistance, i) = s.physical_resistance;
    f(k.glyphed, i) = s.status & kGlyphed ? 1.0f : 0.0f;
    f(k.glyph_timer, i) = s.glyph_left * scale::kShort;
    f(k.move_speed, i) = s.move_speed * scale::kMoveSpeed;
    f(k.mine, i) = s.side == Side::Own ? 1.0f : 0.0f;
    f(k.neutral, i) = s.side == Side::Neutral ? 1.0f : 0.0f;
    f(k.animation_time, i) = s.act_left * scale::kSeconds;
    f(k.ranged_creep_eta, i) = s.ranged_creep_eta * scale::kSeconds;
    f(k.tower_eta, i) = s.tower_eta * scale::kSeconds;
    f(k.melee_creeps_attacking, i) = static_cast<float>(s.melee_creeps_attacking) * scale::kCount;
    f(k.shrine_cooldown, i) = s.shrine_cooldown * scale::kMinutes;
    id(k.unit, i) = ids.of(ids.unit, s.type);
    id(k.animation, i) = ids.of(ids.animation, static_cast<int>(s.act));
  }
}

void Encoder::encode_vectors(const TeamView& v, const SlotTable& slots) {
  const auto& k = layout_.unit;
  // What is read of the units, side by side: once for all heroes, and in a form that is counted several at a time.
  std::array<std::int16_t, kMaxSlots> slot;
  std::array<Handle, kMaxSlots> handle;
  std::array<float, kMaxSlots> x, y, dx, dy, away;
  std::array<std::pair<std::int16_t, Handle>, kMaxSlots> attackers;  // slot, whom it attacks
  std::size_t n = 0, attacking = 0;
  for (int i = 0; i < layout_.units; ++i) {
    const int index = slots.unit[static_cast<std::size_t>(i)];
    if (index < 0) continue;
    const SeenUnit& s = v.units[static_cast<std::size_t>(index)];
    slot[n] = static_cast<std::int16_t>(i);
    handle[n] = s.handle;
    x[n] = s.pos.x;
    y[n++] = s.pos.y;
    if (s.attacking) attackers[attacking++] = {static_cast<std::int16_t>(i), s.attack_target};
  }
  for (int h = 0; h < layout_.heroes; ++h) {
    const SeenUnit* me = v.body(h);
    if (!me) continue;
    const Vec2 at = me->pos;
    const float turn = turn_;
    for (std::size_t i = 0; i < n; ++i) {
      const Vec2 d = Vec2{x[i], y[i]} - at;
      dx[i] = d.x * turn * scale::kDistance;
      dy[i] = d.y * turn * scale::kDistance;
      away[i] = d.length() * scale::kDistance;
    }
    for (std::size_t i = 0; i < n; ++i) {
      float* const vector = &p(h, k.vector, slot[i]);
      vector[0] = dx[i];
      vector[1] = dy[i];
      vector[2] = away[i];
    }
    if (me->attacking)
      for (std::size_t i = 0; i < n; ++i)
        if (me->attack_target == handle[i]) p(h, k.i_attack_it, slot[i]) = 1.0f;
    for (std::size_t i = 0; i < attacking; ++i)
      if (attackers[i].second == me->handle) p(h, k.it_attacks_me, attackers[i].first) = 1.0f;
  }
  // Shots on their way to an own hero, by who fired them. Few fly at a time, so units are looked up from them.
  std::array<std::int16_t, kMaxUnits> slot_of;
  bool ready = false;
  for (int j = 0; j < v.projectile_count; ++j) {
    const SeenProjectile& s = v.projectiles[static_cast<std::size_t>(j)];
    if (s.eta <= 0) continue;
    const int target = v.find(s.target), source = v.find(s.source);
    if (target < 0 || source < 0) continue;
    const int h = v.units[static_cast<std::size_t>(target)].hero;
    if (h < 0 || h >= layout_.heroes) continue;
    if (!ready) {
      slot_of.fill(-1);
      for (int i = 0; i < layout_.units; ++i) {
        const int unit = slots.unit[static_cast<std::size_t>(i)];
        if (unit >= 0 && unit < kMaxUnits) slot_of[static_cast<std::size_t>(unit)] = static_cast<std::int16_t>(i);
      }
      ready = true;
    }
    const int i = slot_of[static_cast<std::size_t>(source)];
    if (i < 0) continue;
    float& eta = p(h, k.projectile_eta, i);
    if (eta <= 0 || s.eta < eta) eta = s.eta * scale::kSeconds;
  }
}

void Encoder::encode_modifiers(const TeamView& v, const SlotTable& slots) {
  const RegistryIds& ids = *v.constants.ids;
  const int per_hero = layout_.table.hero_modifiers, per_unit = layout_.table.unit_modifiers;
  for (int h = 0; h < 2 * layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[static_cast<std::size_t>(h)];
    if (!s.present) continue;
    for (int i = 0; i < std::min<int>(s.modifier_count, per_hero); ++i) {
      const SeenModifier& m = s.modifiers[static_cast<std::size_t>(i)];
      const int row = h * per_hero + i;
      f(layout_.hero_modifier.remaining, row) = m.remaining * scale::kMinutes;
      f(layout_.hero_modifier.stacks, row) = static_cast<float>(m.stacks) * scale::kCharges;
      id(layout_.hero_modifier.modifier, row) = ids.of(ids.modifier, m.name);
    }
  }
  // Heroes hold the first slots; the rows of other units' modifiers begin behind them.
  const int first = 2 * layout_.heroes;
  for (int u = first; per_unit > 0 && u < layout_.units; ++u) {
    const int index = slots.unit[static_cast<std::size_t>(u)];
    if (index < 0) continue;
    const SeenUnit& s = v.units[static_cast<std::size_t>(index)];
    for (int i = 0; i < std::min<int>(s.modifier_count, per_unit); ++i) {
      const SeenModifier& m = s.modifiers[static_cast<std::size_t>(i)];
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
    const SeenUnit& s = v.units[static_cast<std::size_t>(i)];
    const bool hero = s.kind == UnitKind::Hero;
    if (!hero && s.kind != UnitKind::LaneCreep && s.kind != UnitKind::Neutral && s.kind != UnitKind::Summon)
      continue;
    if (!s.visible || s.hp <= 0) continue;
    const std::size_t c = (hero ? 2u : 0u) + (s.side == Side::Own ? 0u : 1u);
    const auto n = static_cast<std::size_t>(line_n_[c]++);
    line_x_[c][n] = s.pos.x;
    line_y_[c][n] = s.pos.y;
  }
  for (int h = 0; h < layout_.heroes; ++h) {
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
