// Choice of an ability or item by its effects (bots/book.hpp), not by its name.
#include <cmath>

#include "base/math.hpp"
#include "bots/scene.hpp"

namespace dota {
namespace {

// One thing that can be used now.
struct Tool {
  int action = -1;
  const AbilityDef* ability = nullptr;
  const Usefulness* use = nullptr;
  int level = 1;
  bool toggled = false, item = false;
  TargetType target = TargetType::None;
  float range = 0;
  // Of an untargeted one; what says nothing strikes near.
  float radius() const { return use->radius.given() ? use->radius.at(level) : 450.0f; }
};

struct Tools {
  int n = 0;
  std::array<Tool, kAbilitySlots + kItemSlots> at;
  const Tool* begin() const { return at.data(); }
  const Tool* end() const { return at.data() + n; }
};

Tools tools_of(const Situation& s) {
  Tools out;
  const ViewConstants& k = s.view.constants;
  const auto add = [&](int ability, int level, bool toggled, bool item, float range) {
    if (ability < 0) return;
    const int action = k.actions->of_ability[ability];
    if (action == kNoAction || !s.offered(action)) return;
    Tool& t = out.at[out.n++];
    t = {action,
         &k.tables->abilities[ability],
         &s.scene.book.abilities[ability],
         level,
         toggled,
         item,
         k.actions->defs[action].target,
         range};
  };
  for (const SeenAbility& a : s.hero.abilities)
    if (a.id >= 0 && a.castable) add(a.id, a.level, a.toggled, false, a.reach);
  for (const SeenItem& i : s.hero.items)
    if (i.id >= 0 && i.castable) {
      const ItemDef& item = k.tables->items[i.id];
      add(item.ability, item.base_level, false, true, i.reach);
    }
  return out;
}

Command towards(const Situation& s, const Tool& t, Vec2 p) {
  const float cell = s.view.constants.settings->offset_cell;
  Vec2 d = p - s.body.pos;
  const float most = std::max(std::fabs(d.x), std::fabs(d.y)), reach = 4.0f * cell;
  if (most > reach) d = d * (reach / most);
  Command c = with(t.action);
  c.dx = static_cast<std::int8_t>(std::clamp(std::lround(d.x / cell), -4l, 4l));
  c.dy = static_cast<std::int8_t>(std::clamp(std::lround(d.y / cell), -4l, 4l));
  return c;
}

// Aimed at the unit, when it reaches it (or nearly); else nothing.
Command aim(const Situation& s, const Tool& t, const SeenUnit& target, float walk) {
  const float away = s.away(target.pos), gap = away - s.body.radius - target.radius;
  switch (t.target) {
    case TargetType::Unit: {
      const int at = s.view.find(target.handle);
      if (at < 0 || gap > t.range + walk || !may_target(s.view, *t.ability, s.hero.unit, at)) return {};
      return with(t.action, target.handle);
    }
    case TargetType::UnitOffset:
      return away <= t.range + walk ? with(t.action, target.handle) : Command{};
    case TargetType::Point: {
      const float reach = std::max(t.range, 400.0f);
      return away <= reach + walk ? towards(s, t, target.pos + target.velocity * 0.3f) : Command{};
    }
    case TargetType::None:
      if (t.use->strikes_front) {
        const Vec2 centre = s.body.pos + heading(s.body.facing) * t.use->ahead;
        return distance(centre, target.pos) < 0.9f * t.radius() ? with(t.action) : Command{};
      }
      return away <= 0.85f * t.radius() ? with(t.action) : Command{};
    default:
      return {};
  }
}

int enemies_within(const Situation& s, Vec2 p, float radius) {
  int n = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    if (const SeenUnit* e = s.scene.enemy(i)) n += distance(e->pos, p) <= radius;
  return n;
}

bool jumps_to_unit(const Tool& t) { return (t.use->uses & kMoves) && t.target == TargetType::Unit; }

// How good a use of the tool on an enemy hero is now; 0: none.
float worth(const Situation& s, const Tool& t, const SeenUnit& target, Intent intent) {
  const std::uint32_t uses = t.use->uses;
  const bool held = target.status & (kStunned | kHexed);
  const float left = target.max_hp > 0 ? target.hp / target.max_hp : 1.0f;
  const int around = enemies_within(s, target.pos, 900.0f);
  if (t.ability->toggle && (t.toggled || !(uses & kHarms))) return 0;
  if ((t.ability->autocast && intent != Intent::Harass && !s.skill.disciplined)) return 0;
  if (t.ability->ultimate && !t.ability->toggle && s.skill.disciplined) {  // a switch costs no long wait
    if (intent != Intent::Fight) return 0;
    const bool many = t.target == TargetType::None && !t.use->strikes_front;
    if (around < 2 && left > (many ? 0.6f : 0.8f) && s.scene.enemy_alive > 1) return 0;
    if (t.use->damage.given() && t.use->damage.at(t.level) * 0.3f > target.hp) return 0;  // a blow is enough
  }
  float w = 0;
  if (uses & kDisables) w = held ? (uses & kHarms ? 25.0f : 0.0f) : 100.0f;
  if (uses & kHarms) w = std::max(w, 50.0f + (t.use->damage.given() ? 0.05f * t.use->damage.at(t.level) : 0.0f));
  if (uses & kWeakens) w = std::max(w, 45.0f);
  if (t.ability->ultimate && w > 0) w += 15.0f;
  if ((uses & kBuffsSelf) && intent == Intent::Fight) w = std::max(w, 40.0f);
  if ((uses & kProtects) && intent == Intent::Fight && t.target == TargetType::None)
    w = around >= 2 ? 90.0f : (t.item ? 0.0f : (s.health() < 0.5f ? 80.0f : 0.0f));
  if ((uses & kRemoves) && !(uses & (kHarms | kDisables)))
    w = around >= 2 && left > 0.5f && intent == Intent::Fight ? 30.0f : 0.0f;
  if (t.item && !(uses & (kDisables | kHarms | kWeakens | kProtects | kBuffsSelf | kRemoves))) w = 0;
  if (uses & (kTeleports | kPlacesWard | kSmokes | kReveals)) w = 0;
  if ((uses & kMoves) && !(uses & (kHarms | kDisables)))
    w = jumps_to_unit(t) && intent == Intent::Fight && s.health() > 0.4f &&
                !under_enemy_tower(s.scene, target.pos, 0.0f)
            ? 60.0f
            : 0.0f;
  if (uses & kRefreshes && !(uses & kHarms)) w = 0;
  if (t.ability->channelled && intent != Intent::Fight) w = 0;
  if (intent == Intent::Harass && t.ability->mana_cost.size() > 0 && s.mana() < 0.45f) w = 0;
  return w;
}

// The unit of the highest score above 0 among own creeps and other heroes on whom the tool can be used without a
// step.
template <class Score>
const SeenUnit* best_of_own(const Situation& s, const Tool& t, Score score) {
  const SeenUnit* best = nullptr;
  float most = 0;
  const auto consider = [&](const SeenUnit& u) {
    if (&u == &s.body || score(u) <= most || !said(aim(s, t, u, 0.0f))) return;
    best = &u;
    most = score(u);
  };
  for (const int i : s.scene.own_creeps)
    consider(s.scene.unit(i));
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    if (const SeenUnit* mate = s.scene.ally(i)) consider(*mate);
  return best;
}

}  // namespace

Command cast_at(const Situation& s, const SeenUnit& target, Intent intent) {
  const Tools tools = tools_of(s);
  Command best;
  float most = 0;
  for (const Tool& t : tools) {
    const float w = worth(s, t, target, intent);
    if (w <= most) continue;
    Command c;
    const bool on_self = !(t.use->uses & (kDisables | kHarms | kWeakens | kRemoves)) && !jumps_to_unit(t);
    if (on_self && t.target == TargetType::None)
      c = s.away(target.pos) < s.reach(target) + 300.0f ? with(t.action) : Command{};
    else if (on_self && t.target == TargetType::Unit && t.ability->target_friendly)
      c = with(t.action, s.body.handle);
    else
      c = aim(s, t, target, intent == Intent::Fight ? 150.0f : 0.0f);
    if (!said(c)) continue;
    best = c;
    most = w;
    if (!s.skill.disciplined) break;  // the first that comes to hand
  }
  if (said(best) || intent != Intent::Fight || !s.skill.disciplined) return best;
  // Nothing is in range: jump to the target if possible and not alone there.
  const float away = s.away(target.pos);
  if (away > 450.0f && away < 1100.0f && s.health() > 0.5f)
    for (const Tool& t : tools)
      if ((t.use->uses & kMoves) && t.target == TargetType::Point && !under_enemy_tower(s.scene, target.pos, 0.0f))
        return towards(s, t, target.pos);
  return {};
}

Command cast_on_wave(const Situation& s) {
  if (s.mana() < 0.6f) return {};
  const SeenUnit* middle = nullptr;
  int most = 2;
  for (const UnitIndices* list : {&s.scene.enemy_creeps, &s.scene.neutrals})
    for (const int i : *list) {
      const SeenUnit& u = s.scene.unit(i);
      if (s.away(u.pos) > 900.0f || u.kind == UnitKind::Roshan) continue;
      int near = 0;
      for (const int j : *list)
        near += distance(s.scene.unit(j).pos, u.pos) < 250.0f;
      if (near <= most) continue;
      most = near;
      middle = &u;
    }
  if (!middle) return {};
  for (const Tool& t : tools_of(s)) {
    const bool wide = t.use->radius.given() && t.use->radius.at(t.level) >= 150.0f;
    if (t.item || t.ability->ultimate || t.ability->channelled || t.ability->toggle || !(t.use->uses & kHarms) ||
        (!wide && t.target == TargetType::Unit))
      continue;
    if (const Command c = aim(s, t, *middle, 0.0f); said(c)) return c;
  }
  return {};
}

Command help_allies(const Situation& s) {
  if (s.hero.mana < 50.0f && s.view.time < 0) return {};
  const SeenUnit* worst = nullptr;
  float lowest = 0.75f;
  int hurt = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* mate = s.scene.ally(i);
    if (!mate || s.away(mate->pos) > 1100.0f || mate->max_hp <= 0) continue;
    const float left = mate->hp / mate->max_hp;
    hurt += left < 0.7f;
    if (left >= lowest) continue;
    lowest = left;
    worst = mate;
  }
  const bool danger = enemies_within(s, s.body.pos, 1200.0f) > 0;
  for (const Tool& t : tools_of(s)) {
    const std::uint32_t uses = t.use->uses;
    if (t.ability->toggle) {  // an aura that costs mana: on while someone is hurt
      const bool on = (uses & kHeals) && hurt > 0 && s.mana() > 0.3f;
      if ((uses & kHeals) && on != t.toggled) return with(t.action);
      continue;
    }
    if ((uses & kRestoresMana) && !(uses & kHeals) && t.target == TargetType::None && t.item && s.mana() < 0.6f)
      return with(t.action);
    if ((uses & kRestoresMana) && !t.item && t.target == TargetType::Unit && s.mana() < 0.75f)
      if (const SeenUnit* creep = best_of_own(s, t, [](const SeenUnit& u) { return u.hp; }))
        return with(t.action, creep->handle);
    if (!worst) continue;
    const bool potion =
        t.item && t.ability->is_item >= 0 && s.view.constants.tables->items[t.ability->is_item].consumable;
    if (potion || t.action == s.scene.book.bottle || t.action == s.scene.book.wand ||
        t.action == s.scene.book.stick || t.ability->target_tree)
      continue;
    if ((uses & kHeals) && !(t.ability->ultimate && !danger)) {
      if (t.target == TargetType::None && s.away(worst->pos) < 0.9f * t.radius() && (hurt > 1 || lowest < 0.5f))
        return with(t.action);
      if (t.target == TargetType::Unit && t.ability->target_friendly)
        if (const Command c = aim(s, t, *worst, 0.0f); said(c)) return c;
    }
    if (!danger || lowest > 0.6f) continue;
    if ((uses & kBuffsAllies) && t.target == TargetType::None && s.away(worst->pos) < 0.9f * t.radius())
      return with(t.action);
    if ((uses & (kBuffsAllies | kHides | kProtects)) && t.target == TargetType::Unit && t.ability->target_friendly)
      if (const Command c = aim(s, t, *worst, 0.0f); said(c)) return c;
  }
  return {};
}

Command stop_wasting(const Situation& s) {
  const ViewConstants& k = s.view.constants;
  for (const SeenAbility& a : s.hero.abilities) {
    if (a.id < 0 || !a.toggled || !a.castable || !k.tables->abilities[a.id].toggle) continue;
    const Usefulness& use = s.scene.book.abilities[a.id];
    const int action = k.actions->of_ability[a.id];
    if (!(use.uses & kHarms) || action == kNoAction || !s.offered(action)) continue;
    const float reach = use.radius.at(a.level) + 150.0f;
    bool hits = enemies_within(s, s.body.pos, reach) > 0;
    for (const UnitIndices* list : {&s.scene.enemy_creeps, &s.scene.neutrals})
      for (const int i : *list)
        hits = hits || s.away(s.scene.unit(i).pos) < reach;
    if (!hits) return with(action);
  }
  return {};
}

Command escape(const Situation& s) {
  const Vec2 way = s.scene.home - s.body.pos;
  const float length = std::max(way.length(), 1.0f);
  const SeenUnit* nearest = nullptr;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* e = s.scene.enemy(i);
    if (e && (!nearest || s.away(e->pos) < s.away(nearest->pos))) nearest = e;
  }
  const bool facing_home = way.dot(heading(s.body.facing)) > 0.7f * length;
  for (const Tool& t : tools_of(s)) {
    const std::uint32_t uses = t.use->uses;
    if (t.ability->toggle) continue;
    if ((uses & kMoves) && t.target == TargetType::Point)
      return towards(s, t, s.body.pos + way * (565.0f / length));
    if (jumps_to_unit(t) && t.ability->target_friendly)
      if (const SeenUnit* far =
              best_of_own(s, t, [&](const SeenUnit& u) { return (u.pos - s.body.pos).dot(way) / length - 300; }))
        return with(t.action, far->handle);
    if ((uses & kMoves) && t.target == TargetType::None && facing_home) return with(t.action);
    if ((uses & kHides) && t.target == TargetType::None) return with(t.action);
    if ((uses & (kHides | kBuffsAllies)) && t.target == TargetType::Unit && t.ability->target_friendly)
      return with(t.action, s.body.handle);
    if ((uses & kProtects) && t.target == TargetType::None && !t.ability->channelled) return with(t.action);
    if ((uses & kPushes) && t.target == TargetType::Unit && facing_home) return with(t.action, s.body.handle);
    if ((uses & (kRemoves | kDisables)) && nearest && s.away(nearest->pos) < 600.0f && !t.ability->channelled)
      if (const Command c = aim(s, t, *nearest, 0.0f); said(c)) return c;
  }
  return {};
}

float burst(const Situation& s) {
  float sum = 0;
  for (const SeenAbility& a : s.hero.abilities)
    if (a.id >= 0 && a.castable) {
      const Usefulness& use = s.scene.book.abilities[a.id];
      if (use.damage.given()) sum += 0.7f * use.damage.at(a.level);
    }
  return sum;
}

}  // namespace dota
