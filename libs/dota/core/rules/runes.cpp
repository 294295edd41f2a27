#include "rules/runes.hpp"
#include "effects/gold.hpp"
#include "effects/runes.hpp"
#include "map/map_data.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kFirstPower = static_cast<int>(PickupKind::DoubleDamage);
constexpr int kPowerKinds = static_cast<int>(PickupKind::Count) - kFirstPower;

void put(World& w, int slot, Vec2 pos, int kind) {
  Pickup& p = w.pickups[slot];
  p.present = true;
  p.kind = static_cast<std::int8_t>(kind);
  p.pos = pos;
  p.known = {};
}

}  // namespace

void take_pickup(Context& c, Unit& hero, int pickup) {
  World& w = c.world;
  Pickup& p = w.pickups[pickup];
  if (!p.present || hero.hero < 0) return;
  p.present = false;
  p.known[hero.team] = 2;
  record_event(c, EventKind::Rune, hero, nullptr, p.kind);
  if (p.kind == static_cast<std::int8_t>(PickupKind::Bounty)) {
    const GameRules& g = *c.tables.game;
    const float gold = g.bounty_base + g.bounty_per_min * std::floor(w.time / 60);
    for (int i = hero.team * 5; i < hero.team * 5 + 5; ++i)
      give_gold(c, w.heroes[i], gold, false);
    refill_bottle(c, hero);
    return;
  }
  if (!store_rune(c, hero, p.kind)) apply_rune(c, hero, p.kind);
}

void runes_frame(Context& c) {
  World& w = c.world;
  if (!c.settings.runes) return;
  const GameRules& g = *c.tables.game;
  const MapData& map = *c.tables.map;
  if (w.due(w.next_bounty)) {
    w.next_bounty += g.bounty_every;
    for (int k = 0; k < kBountySpots && k < static_cast<int>(map.bounty_runes.size()); ++k)
      put(w, k, map.bounty_runes[k], static_cast<int>(PickupKind::Bounty));
  }
  if (w.due(w.next_power_rune)) {
    w.next_power_rune += g.power_every;
    for (int k = 0; k < kPowerSpots; ++k) {
      Pickup& p = w.pickups[kBountySpots + k];
      if (p.present) p.known = {};
      p.present = false;
    }
    const int spot = w.rng.below(kPowerSpots);
    int kind = w.rng.below(kPowerKinds);
    if (kind == w.last_rune_kind) kind = (kind + 1 + w.rng.below(kPowerKinds - 1)) % kPowerKinds;
    w.last_rune_kind = static_cast<std::int8_t>(kind);
    put(w, kBountySpots + spot, map.power_runes[spot], kFirstPower + kind);
  }
}

}  // namespace dota
