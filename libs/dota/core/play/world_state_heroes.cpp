// Heroes of a world state, and the abilities, items and modifiers of all units.
#include <algorithm>
#include <cmath>

#include "effects/abilities.hpp"
#include "effects/gold.hpp"
#include "effects/interpreter.hpp"
#include "play/world_state.hpp"
#include "rules/heroes.hpp"
#include "world/game_rules.hpp"
#include "world/loadout.hpp"

namespace dota {
namespace {

constexpr float kEndless = -1;  // remaining_duration of a modifier without an end

bool uses(const Unit& u, int slot, Act act) { return u.alive && u.act == act && u.order.slot == slot; }

// Fields that abilities and items share. Of others a bot knows what it can see of them.
void write_shared(WireWriter& out, const BotEye& eye, const Unit& u, int slot, std::uint64_t number) {
  const Handle h = eye.w().handle(u);
  out.number(1, bot_ability_handle(h, slot));
  out.number(2, number);
  out.signed_number(3, slot < 16 ? slot : slot - 16);
  out.number(5, bot_handle(h));
}

void write_state(WireWriter& out, const BotEye& eye, const Unit& u, int slot, float ready) {
  const World& w = eye.w();
  const bool own = eye.own(u);
  int level = 0;
  const AbilityDef* a = slot_ability(eye.c, u, slot, &level);
  if (own) out.signed_number(6, level);
  out.whole(10, a && level > 0 ? cast_number(eye.c, u, *a, CastNumber::Range, level) : 0);
  out.real(11, a ? cast_number(eye.c, u, *a, CastNumber::Channel, level) : 0);
  if (own) {
    out.real(12, w.due(ready) ? 0 : ready - w.time);
    out.flag(20, !(u.status & kBroken) || !a || !a->passive);
  }
  out.flag(22, uses(u, slot, Act::CastWindup));
  out.flag(23, uses(u, slot, Act::Channel));
  out.flag(24, false);
  if (own) out.flag(25, a && u.alive && castable(eye.c, u, slot));
}

}  // namespace

int slot_with(const BotEye& eye, const Unit& u, int ability) {
  const World& w = eye.w();
  if (ability < 0) return -1;
  for (int i = 0; i < kAbilitySlots; ++i) {
    const AbilityState* s = ability_state(w, u, i);
    if (s && s->id == ability) return i;
  }
  const int item = eye.c.tables.abilities[ability].is_item;
  for (int i = 0; item >= 0 && i < item_slots(u); ++i) {
    const ItemState* s = item_state(w, u, 16 + i);
    if (s && s->id == item) return 16 + i;
  }
  return -1;
}

void write_abilities(WireWriter& out, const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  for (int i = 0; i < kAbilitySlots; ++i) {
    const AbilityState* s = ability_state(w, u, i);
    if (!s || s->id < 0) continue;
    out.message(90, [&] {
      write_shared(out, eye, u, i, ability_number(eye.c.tables, s->id));
      write_state(out, eye, u, i, s->ready);
      if (!eye.own(u)) return;
      out.flag(21, s->toggled);
      out.signed_number(30, std::max<int>(s->charges, 0));
    });
  }
}

// Others' backpacks and stashes are shown to nobody, and of their items neither charges nor cooldowns.
void write_items(WireWriter& out, const BotEye& eye, const Unit& u) {
  if (u.hero < 0) return;
  const bool own = eye.own(u);
  for (int i = 0; i < kItemSlots; ++i) {
    const ItemState* s = item_state(eye.w(), u, 16 + i);
    if (!s || s->id < 0 || (!own && i >= kInventory && i != kTpSlot)) continue;
    const ItemDef& def = eye.c.tables.items[s->id];
    out.message(91, [&] {
      write_shared(out, eye, u, 16 + i, static_cast<std::uint64_t>(def.number));
      write_state(out, eye, u, 16 + i, std::max(s->ready, s->enabled_at));  // not at once out of the backpack
      if (own) out.signed_number(30, std::max<int>(s->charges, 0));
      if (s->id == eye.view.constants.treads) out.signed_number(50, s->toggle);
    });
  }
}

void write_modifiers(WireWriter& out, const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  const Tables& t = eye.c.tables;
  for (std::int16_t i = u.modifiers; i >= 0; i = w.modifiers[i].next) {
    const Modifier& m = w.modifiers[i];
    if (m.name < 0) continue;
    out.message(92, [&] {
      out.text(1, t.modifiers[m.name]);
      out.number(2, m.stacks);
      const Unit* source = eye.listed(m.source);
      const int slot = source ? slot_with(eye, *source, m.ability) : -1;
      if (slot >= 0) out.number(3, bot_ability_handle(m.source, slot));
      if (const std::uint64_t number = ability_number(t, m.ability)) out.number(4, number);
      out.real(5, m.until >= kForever ? kEndless : std::max(m.until - w.time, 0.0f));
    });
  }
  const bool fortified = u.team < kTeams && (u.building > 0 || u.kind == UnitKind::LaneCreep);
  if (!fortified || w.teams[u.team].glyph_until <= 0 || w.due(w.teams[u.team].glyph_until)) return;
  out.message(92, [&] {
    out.text(1, "modifier_fountain_glyph");
    out.number(2, 0);
    out.real(5, w.teams[u.team].glyph_until - w.time);
  });
}

void write_hero(WireWriter& out, const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  const HeroState& h = w.heroes[u.hero];
  out.number(110, ordinal(eye.c.tables.heroes[h.def].primary));
  out.flag(111, false);
  if (!u.alive) out.real(112, w.due(h.respawn_at) ? 0 : h.respawn_at - w.time);
  out.real(115, u.spell_amp);
  out.whole(127, u.str);
  out.whole(128, u.agi);
  out.whole(129, u.intellect);
  if (!eye.own(u)) return;
  const auto& table = eye.c.tables.rules.xp_for_level;
  const bool grows = h.level < eye.c.tables.game->max_level;
  out.whole(113, buyback_cost(eye.c, h));
  out.real(114, w.due(h.buyback_ready) ? 0 : h.buyback_ready - w.time);
  out.number(120, grows ? static_cast<std::uint64_t>(std::ceil(std::max(table[h.level] - h.xp, 0.0f))) : 0);
  out.number(121, h.ability_points);
  out.signed_number(122, static_cast<int>(h.reliable));
  out.signed_number(123, static_cast<int>(h.gold));
  out.number(124, h.last_hits);
  out.number(125, h.denies);
  out.whole(126, net_worth(eye.c, h));
}

}  // namespace dota
