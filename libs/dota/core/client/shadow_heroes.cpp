// Heroes of a frame: abilities, items, gold, and what the scripted buyer has bought so far.
#include <algorithm>
#include <cmath>

#include "client/shadow.hpp"
#include "effects/abilities.hpp"
#include "rules/inventory.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr float kSameMoment = 2 * kDt * kFramesPerStep, kMostGold = 1e6f;

std::int8_t small(std::uint32_t v) { return static_cast<std::int8_t>(std::min(v, 127u)); }

// What of an item is there: charges where it has some.
int amount(const Tables& t, const ItemState& s) {
  return t.items[s.id].stackable || t.items[s.id].requires_charges ? std::max<int>(s.charges, 1) : 1;
}

int amount_of(const Tables& t, const std::array<ItemState, kItemSlots>& items, int item) {
  int n = 0;
  for (const ItemState& s : items)
    if (s.id == item) n += amount(t, s);
  return n;
}

}  // namespace

std::int8_t slot_of_ability(const HeroState& h, int ability) {
  for (std::size_t k = 0; k < kAbilitySlots; ++k)
    if (ability >= 0 && h.abilities[k].id == ability) return static_cast<std::int8_t>(k);
  return -1;
}

void Shadow::take_abilities(const WorldState& s, const ClientUnit& m, HeroState& h) {
  World& w = world();
  const HeroDef& def = game_.setup().tables->heroes[h.def];
  const int seat = static_cast<int>(&h - w.heroes.data());
  const bool own = seat / 5 == team_;
  if (own) {
    told_[seat % 5].listed = true;
    told_[seat % 5].castable = 0;
  }
  for (const ClientAbility& a : s.abilities_of(m)) {
    const int id = names_.ability(a.ability_id);
    if (id < 0) continue;
    for (std::size_t k = 0; k < def.talents.size(); ++k)
      if (def.talents[k].ability == id && a.level > 0) h.talents |= 1u << k;
    const int slot = slot_of_ability(h, id);
    if (slot < 0) continue;
    AbilityState& out = h.abilities[slot];
    // Of an enemy's ability a client says no level, but a reach from its first one on.
    out.level = own || a.level > 0 ? small(a.level) : std::max<std::int8_t>(out.level, a.cast_range > 0 ? 1 : 0);
    out.charges = small(a.charges);
    out.toggled = a.is_toggled;
    out.ready = w.time + std::max(a.cooldown_remaining, 0.0f);
    if (own && a.is_fully_castable) told_[seat % 5].castable |= 1u << slot;
  }
}

void Shadow::take_items(const WorldState& s, const ClientUnit& m, HeroState& h) {
  World& w = world();
  const Tables& t = *game_.setup().tables;
  const int seat = static_cast<int>(&h - w.heroes.data());
  const std::array<ItemState, kItemSlots> before = h.items;
  std::array<ItemState, kItemSlots> now{};
  float reach = 0;
  for (const ClientAbility& a : s.items_of(m)) {
    const int id = names_.item(a.ability_id);
    if (id < 0 || a.slot >= kItemSlots) continue;
    ItemState& out = now[a.slot];
    out.id = static_cast<std::int16_t>(id);
    out.charges = small(a.charges);
    out.toggle = a.power_treads_stat >= 0 ? static_cast<std::int8_t>(std::min(a.power_treads_stat, 2))
                                          : static_cast<std::int8_t>(a.is_toggled);
    out.ready = w.time + std::max(a.cooldown_remaining, 0.0f);
    const bool carried = a.slot < kInventory || a.slot == kTpSlot;
    if (carried && a.is_fully_castable && seat / 5 == team_) told_[seat % 5].castable |= 1u << (16 + a.slot);
    for (const auto& [stat, value] : t.items[id].stats)
      if (stat == Stat::CastRange && a.slot < kInventory) reach = std::max(reach, value);
  }
  if (Unit* u = w.get(h.unit)) u->cast_range = reach;
  // An item that comes from the backpack cannot be used at once; a client counts that delay as its cooldown.
  const float delay = t.game->backpack_delay;
  for (std::size_t k = 0; k < kItemSlots; ++k) {
    ItemState& item = now[k];
    if (item.id < 0) continue;
    const ItemState* was = before[k].id == item.id ? &before[k] : nullptr;
    for (std::size_t b = 0; b < kItemSlots && !was; ++b)
      if (before[b].id == item.id && now[b].id != item.id) was = &before[b];
    const float ready = was ? was->ready : kNever, left = item.ready - w.time;
    if (was && !w.due(was->enabled_at))
      item.enabled_at = was->enabled_at;
    else if (std::fabs(item.ready - ready) > kSameMoment && left <= delay + kTimeSlack &&
             left > delay - kSameMoment)
      item.enabled_at = item.ready;
    if (!w.due(item.enabled_at) && std::fabs(item.ready - item.enabled_at) < kSameMoment) item.ready = ready;
  }
  h.items = now;
  if (seat / 5 != team_) return;
  if (taken_ > 0) return follow_purchases(h, before);
  // The first frame of a game that is under way: what is there was bought, in whatever order.
  if (w.step_index > 0) {
    Context c = game_.context();
    skip_owned(c, h);
  }
}

void Shadow::take_purse(const ClientUnit& m, HeroState& h) {
  World& w = world();
  h.gold = std::clamp(m.unreliable_gold, 0.0f, kMostGold);
  h.reliable = std::clamp(m.reliable_gold, 0.0f, kMostGold);
  h.buyback_ready = w.time + std::max(m.buyback_cooldown, 0.0f);
  h.last_hits = static_cast<std::uint16_t>(m.last_hits);
  h.denies = static_cast<std::uint16_t>(m.denies);
  h.ability_points = static_cast<std::uint8_t>(std::min(m.ability_points, 25u));
  const int seat = static_cast<int>(&h - w.heroes.data());
  told_[seat % 5].buyback_cost = std::min(m.buyback_cost, kMostGold);
}

// An entry of the build is done as soon as its item is there. A purchase reduces the shop's stock.
void Shadow::follow_purchases(HeroState& h, const std::array<ItemState, kItemSlots>& before) {
  World& w = world();
  const Tables& t = *game_.setup().tables;
  std::array<std::int16_t, kItemSlots> got{};
  std::array<int, kItemSlots> more{};
  std::size_t n = 0;
  for (const ItemState& s : h.items) {
    if (s.id < 0 || std::find(got.begin(), got.begin() + n, s.id) != got.begin() + n) continue;
    const int gained = amount_of(t, h.items, s.id) - amount_of(t, before, s.id);
    if (gained <= 0) continue;
    got[n] = s.id;
    more[n++] = gained;
  }
  TeamState& team = w.teams[team_];
  for (std::size_t k = 0; k < kStocked; ++k)
    for (std::size_t i = 0; i < n; ++i)
      if (got[i] == t.game->stock_items[k])
        team.stock[k] = static_cast<std::int8_t>(std::max(team.stock[k] - more[i], 0));
  const std::vector<int>& order = t.heroes[h.def].item_order;
  for (bool going = true; going;) {
    going = false;
    for (std::size_t i = 0; i < n && h.build_next < static_cast<int>(order.size()); ++i)
      if (more[i] > 0 && order[h.build_next] == got[i]) {
        more[i] -= std::max(t.items[got[i]].initial_charges, 1);
        ++h.build_next;
        going = true;
      }
  }
}

void Shadow::adjust(TeamView& v) const {
  const Context c{const_cast<World&>(game_.state().world), *game_.setup().tables, game_.setup().settings};
  for (std::size_t i = 0; i < v.heroes_per_team; ++i) {
    SeenHero& s = v.heroes[i];
    const Told& told = told_[i];
    const HeroState& h = c.world.heroes[team_ * 5 + i];
    const Unit* u = c.world.get(h.unit);
    if (!s.present || !u || !told.listed) continue;
    for (std::size_t k = 0; k < kAbilitySlots; ++k) {
      SeenAbility& a = s.abilities[k];
      a.castable = a.id >= 0 && u->alive && (told.castable >> k & 1u);
      if (a.castable) a.reach = cast_reach(c, *u, c.tables.abilities[a.id], a.level);
    }
    for (std::size_t k = 0; k < kItemSlots; ++k) {
      SeenItem& item = s.items[k];
      if (item.id < 0 || (k >= kInventory && k != kTpSlot)) continue;
      item.castable = u->alive && (told.castable >> (16 + k) & 1u);
      int level = 0;
      const AbilityDef* a = slot_ability(c, *u, static_cast<int>(16 + k), &level);
      if (item.castable && a && k < kInventory) item.reach = cast_reach(c, *u, *a, level);
    }
    if (told.buyback_cost < 0) continue;
    s.buyback_cost = told.buyback_cost;
    s.can_buyback = c.settings.buyback && !u->alive && c.world.due(h.buyback_ready) && s.gold >= s.buyback_cost;
  }
}

}  // namespace dota
