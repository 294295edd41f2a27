// The keys of an effect node: those with a closed set of words, which every node may have, and each primitive's
// own.
#include <stdexcept>

#include "effects/compile/compile.hpp"
#include "world/unit.hpp"

namespace dota {

namespace {

template <typename E>
struct Word {
  const char* name;
  E value;
};

template <typename E, std::size_t N>
bool find_word(const Word<E> (&words)[N], const std::string& text, E& out) {
  for (const auto& w : words)
    if (text == w.name) {
      out = w.value;
      return true;
    }
  return false;
}

constexpr Word<Trigger> kTriggers[] = {{"cast", Trigger::Cast},
                                       {"passive", Trigger::Passive},
                                       {"channel", Trigger::Channel},
                                       {"channel_end", Trigger::ChannelEnd},
                                       {"toggle", Trigger::Toggle},
                                       {"interval", Trigger::Interval},
                                       {"attack_landed", Trigger::AttackLanded},
                                       {"attacked", Trigger::Attacked},
                                       // 7.19 Frost Armor slows every attacker.
                                       {"attacked_melee_or_any", Trigger::Attacked},
                                       {"damaged_by_enemy", Trigger::DamagedByEnemy},
                                       {"own_ability_cast", Trigger::OwnAbilityCast},
                                       {"kill_unit", Trigger::KillUnit},
                                       {"kill_hero_within_3s", Trigger::KillHeroWithin3s},
                                       {"death", Trigger::Death},
                                       {"auto", Trigger::Auto},
                                       {"invis_break_attack", Trigger::InvisBreakAttack},
                                       {"target_attacked", Trigger::TargetAttacked},
                                       {"toggle_include_creeps", Trigger::ToggleIncludeCreeps},
                                       {"expired", Trigger::Expired},
                                       {"before_own_ability_cast", Trigger::BeforeOwnAbilityCast},
                                       {"own_ability_hits", Trigger::OwnAbilityHits}};
constexpr Word<Who> kWho[] = {{"self", Who::Self},
                              {"target", Who::Target},
                              {"enemies", Who::Enemies},
                              {"allied_heroes", Who::AlliedHeroes},
                              {"allies", Who::Allies},
                              {"source", Who::Source},
                              {"hit_enemies", Who::HitEnemies},
                              {"all", Who::All},
                              {"enemy_heroes", Who::EnemyHeroes},
                              {"enemies_invisible", Who::EnemiesInvisible},
                              {"allies_and_self", Who::AlliesAndSelf},
                              {"target_and_self", Who::TargetAndSelf},
                              {"creep_target", Who::CreepTarget},
                              {"behind_target", Who::BehindTarget},
                              {"self_or_enemy", Who::SelfOrEnemy},
                              {"enemies_and_buildings", Who::EnemiesAndBuildings},
                              {"allies_and_buildings", Who::AlliesAndBuildings},
                              {"allied_heroes_and_buildings", Who::AlliedHeroesAndBuildings},
                              {"allied_building", Who::AlliedBuilding},
                              {"allied_building_or_creep", Who::AlliedBuildingOrCreep},
                              {"allied_building_creep_or_hero", Who::AlliedBuildingCreepOrHero},
                              {"creep", Who::Creep},
                              {"target_or_closest_hero", Who::TargetOrClosestHero}};
constexpr Word<Where> kWhere[] = {
    {"point", Where::Point}, {"self", Where::Self}, {"target", Where::Target}, {"front", Where::Front}};
constexpr Word<Cond> kConds[] = {{"ally", Cond::Ally},
                                 {"enemy", Cond::Enemy},
                                 {"killed", Cond::Killed},
                                 {"killed_hero", Cond::KilledHero},
                                 {"not_broken", Cond::NotBroken},
                                 {"no_damage_for_cooldown", Cond::NoDamageForCooldown},
                                 {"not_visible_to_enemy", Cond::NotVisibleToEnemy},
                                 {"in_river", Cond::InRiver},
                                 {"not_invisible", Cond::NotInvisible}};
constexpr Word<EndsOn> kEnds[] = {{"damage_by_player_or_roshan", EndsOn::DamageByPlayerOrRoshan},
                                  {"shield_consumed", EndsOn::ShieldConsumed},
                                  {"target_kills_unit", EndsOn::TargetKillsUnit},
                                  {"damage_or_full", EndsOn::DamageOrFull}};
constexpr Word<Decay> kDecays[] = {{"linear_to_zero", Decay::LinearToZero},
                                   {"step_by_purge_rate", Decay::StepByPurgeRate},
                                   {"each_second", Decay::EachSecond}};
constexpr Word<DamageType> kTypes[] = {{"physical", DamageType::Physical},
                                       {"magical", DamageType::Magical},
                                       {"pure", DamageType::Pure},
                                       {"hp_loss", DamageType::HpLoss}};
constexpr Word<std::uint32_t> kStatusWords[] = {
    {"break", kBroken}, {"silence", kSilenced}, {"hidden", kInvisible | kUnseen}};
constexpr Word<Dispellable> kDispels[] = {
    {"no", Dispellable::No}, {"yes", Dispellable::Yes}, {"yes_strong", Dispellable::Strong}};

}  // namespace

// A program that combines what never runs is refused: it would look whole and do nothing.
void ProgramCompiler::check_trigger(const EffectNode& n, const PrimitiveSpec& spec, bool root) const {
  const auto name_of = [](Trigger t) {
    for (const auto& w : kTriggers)
      if (w.value == t) return std::string(w.name);
    return std::string("then");
  };
  const std::string p = primitive_name(n.prim);
  if (!(spec.on >> static_cast<int>(n.on) & 1u)) {
    if (n.on == Trigger::Then)
      fail("'" + p + "' within another effect: it is there while the ability is learned or the item is held");
    std::string has;
    for (const auto& w : kTriggers)
      if (spec.on >> static_cast<int>(w.value) & 1u) has += (has.empty() ? "" : ", ") + std::string(w.name);
    fail("'on' of " + p + ": nothing runs it on '" + name_of(n.on) + "' (it has: " + has + ")");
  }
  const Node* behavior = ability_.find("behavior");
  if (!root || !behavior) return;
  const auto needs = [&](const char* word) {
    if (!list_holds(behavior, word))
      fail("'on' of " + p + ": '" + name_of(n.on) + "', but 'behavior' has no '" + word + "'");
  };
  if (n.on == Trigger::Channel || n.on == Trigger::ChannelEnd) needs("channelled");
  if (n.on == Trigger::Toggle) needs("toggle");
  if (n.on == Trigger::Cast && list_holds(behavior, "passive") && !passive_at_root(n, passive_behavior_))
    fail("'" + p + "' waits for a cast, but 'behavior' says passive: nothing runs it");
}

// Keys with a closed set of words, which every node may carry.
bool ProgramCompiler::word(EffectNode& n, const std::string& key, const Node& v) {
  const auto need = [&](bool ok) {
    if (!ok) fail("'" + key + "' of " + primitive_name(n.prim) + ": '" + v.string + "' is unknown");
    return true;
  };
  if (key == "on") return need(find_word(kTriggers, v.string, n.on));
  if (key == "to") return need(find_word(kWho, v.string, n.to));
  if (key == "at") return need(find_word(kWhere, v.string, n.at));
  if (key == "if") {
    if (v.string.rfind("no_enemy_lane_creep_in", 0) == 0) {
      n.cond = Cond::NoEnemyLaneCreepNear;
      return true;
    }
    return need(find_word(kConds, v.string, n.cond));
  }
  if (key == "talent" || key == "unless_talent") {
    n.talent = v.string;
    n.unless_talent = key == "unless_talent";
    return need(!v.string.empty());
  }
  if (key == "scepter") {
    n.scepter = v.number > 0 ? 1 : 0;
    return need(v.is(Node::Type::Number));
  }
  if (key == "deniable") {
    n.status |= kDeniable;
    return need(n.prim == Prim::Dot);
  }
  if (key == "undeniable") {
    n.status |= kUndeniable;
    return need(n.prim == Prim::Dot);
  }
  if (key == "allows_blinks") {
    n.status &= ~kLeashed;
    return need(n.prim == Prim::Leash);
  }
  if (key == "keeps_acting") {
    n.status &= ~kForcedMotion;
    return need(n.prim == Prim::Knockback);
  }
  if (key == "ability" || key == "procs") {
    n.name = v.string;
    return need(n.prim == Prim::AmplifyAbility ||
                n.prim == (key == "ability" ? Prim::CastAbility : Prim::AttackModifier));
  }
  if (key == "from_rank") {
    n.from_rank = static_cast<std::int8_t>(v.number);
    return need(v.is(Node::Type::Number) && v.number >= 1 && v.number <= 7);
  }
  if (key == "dispellable") {
    Dispellable d{};
    need(find_word(kDispels, v.string, d));
    n.dispellable = d;
    return true;
  }
  if (key == "reveals") {
    n.status |= kRevealed;
    return need(n.prim == Prim::TrueSight);
  }
  if (key == "ends_on") return need(find_word(kEnds, v.string, n.ends_on));
  if (key == "decay") {
    need(find_word(kDecays, v.string, n.decay));
    if (n.decay == Decay::StepByPurgeRate) set(n, Role::Rate, atom(key, "$purge_rate"));
    return true;
  }
  if (key == "type") {
    if (v.string == "attack") {
      n.type = DamageType::Physical;
      n.against = Against::Attack;
    } else if (v.string != "as_received") {
      need(find_word(kTypes, v.string, n.type));
      if (n.prim == Prim::ReductionShield) n.against = Against::Magical;
    }
    return true;
  }
  if (key == "vs") {
    n.against = v.string == "attack_physical" ? Against::AttackPhysical : Against::Attack;
    return need(v.string == "attack" || v.string == "attack_physical");
  }
  if (key == "status") {
    for (const Node& s : v.list) {
      std::uint32_t bits = 0;
      if (!find_word(kStatusWords, s.string, bits)) fail("status '" + s.string + "' is unknown");
      n.status |= bits;
    }
    return true;
  }
  if (key == "kind") {
    n.strong = v.string == "strong";
    return need(v.string == "strong" || v.string == "basic");
  }
  if (key == "dispel") {
    n.dispels = true;
    n.strong = v.string == "strong";
    return need(v.string == "strong" || v.string == "basic");
  }
  if (key == "by") {
    n.by_distance = true;
    return need(v.string == "distance");
  }
  if (key == "shape") {
    const std::string t = v.str("t");
    n.shape = t == "line" ? Shape::Line : Shape::Circle;
    if (t != "line" && t != "circle") fail("shape '" + t + "' is unknown");
    for (const auto& [k, x] : v.object) {
      Role r;
      if (k == "t") continue;
      if (!parse_role(k, r)) fail("shape key '" + k + "' is unknown");
      set(n, r, value(k, x));
    }
    return true;
  }
  return false;
}

void ProgramCompiler::key(EffectNode& n, const std::string& key, const Node& v, const Node&) {
  static const std::pair<const char*, StatSet> kSets[] = {
      {"stats", StatSet::Main},          {"self_stats", StatSet::Self},    {"creep_stats", StatSet::Creep},
      {"ranged_stats", StatSet::Ranged}, {"ally_stats", StatSet::Ally},    {"enemy_stats", StatSet::Enemy},
      {"else_stats", StatSet::Else},     {"per_stack", StatSet::PerStack}, {"low_hp_stats", StatSet::LowHp},
      {"unseen_stats", StatSet::Unseen}};
  if (n.prim == Prim::ToggleStat && key == "stats") {
    // The order in which power treads cycle is the order of Attribute: strength, agility, intelligence.
    const char* order[] = {"str", "agi", "int"};
    if (v.list.size() != 3) fail("toggle_stat needs three stats");
    for (std::size_t i = 0; i < 3; ++i)
      if (v.list[i].string != order[i]) fail("toggle_stat cycles str, agi, int");
    return;
  }
  for (const auto& [name, which] : kSets)
    if (key == name) return stats(n, v, which);
  if (key == "per_charge" && v.is(Node::Type::Object)) return stats(n, v, StatSet::PerCharge);
  if ((key == "then" || key == "enemies" || key == "allies") && v.is(Node::Type::List)) return;
  if (key == "then") return set(n, Role::Count, value(key, v));  // charge_on_nearby_death: charges of later deaths
  const auto only = [&](const char* word) {
    if (v.string != word) missing(std::string(primitive_name(n.prim)) + "." + key + " " + v.string);
  };
  if (key == "family") {
    n.family = v.string;
    return;
  }
  if (key == "stack" && v.string == "each") {
    n.separate = true;
    return;
  }
  if (key == "stack") {
    if (n.prim == Prim::StackGain)
      n.stack = intern_modifier(tables_, "stack_" + v.string);
    else if (v.is(Node::Type::Number))
      n.stacking = true;
    else
      n.separate = n.per_target = true, only("per_affected_target");
    return;
  }
  if (key == "unit" || key == "gives" || key == "while_on") {
    n.name = v.string;
    return;
  }
  if (key == "transferable") {
    n.transferable = v.number > 0;
    return;
  }
  if (key == "breaks_on") {
    n.any_attack_breaks = list_holds(&v, "attacking");
    const bool heroes = list_holds(&v, "attacking_hero");
    if (n.any_attack_breaks == heroes || !list_holds(&v, "attacked_by_any_unit") || v.list.size() != 2)
      missing("passive_stats.breaks_on");
    return;
  }
  if (key == "what") {
    n.own_only = v.string == "self_ability";
    n.instant_attack = v.string == "instant_attack";
    if (!n.own_only && !n.instant_attack) only("all_but_refresher");
    return;
  }
  if (key == "damage" && v.is(Node::Type::String) && v.string == "attack") return;  // as much as an attack
  if (key == "damage" && n.prim == Prim::Spirits) {
    if (!v.is(Node::Type::List) || v.list.size() != 2) fail("'damage' of spirits needs [min, max]");
    set(n, Role::DamageMin, value(key, v.list[0]));
    return set(n, Role::DamageMax, value(key, v.list[1]));
  }
  if (key == "rings") {  // of a splash: [radius, percent], the nearest first
    constexpr std::pair<Role, Role> kRings[] = {
        {Role::R, Role::Pct}, {Role::RMid, Role::PctMid}, {Role::RFar, Role::PctFar}};
    if (!v.is(Node::Type::List) || v.list.size() != 3) fail("'rings' of a splash needs three [radius, percent]");
    for (std::size_t i = 0; i < 3; ++i) {
      if (!v.list[i].is(Node::Type::List) || v.list[i].list.size() != 2)
        fail("'rings' of a splash needs [radius, percent]");
      set(n, kRings[i].first, value(key, v.list[i].list[0]));
      set(n, kRings[i].second, value(key, v.list[i].list[1]));
    }
    return;
  }
  if (key == "hits") return only("first_enemy_hero");
  if (key == "prefer") {
    n.heroes_first = true;
    return only("heroes");
  }
  if (key == "reappears_on") {
    if (!list_holds(&v, "attack") || !list_holds(&v, "cast") || v.list.size() != 2) missing("invis.reappears_on");
    n.reappears = true;
    return;
  }
  if (key == "pattern") return only("cycle_4_quadrants");
  if (key == "pick") {
    n.hits_all = v.string == "all";
    n.closest = v.string == "closest";
    return n.hits_all || n.closest ? void() : only("lowest_hp_enemy");
  }
  if (key == "targets") return only("enemy_heroes");
  if (key == "counts" && n.prim == Prim::Mod) {
    n.counts_landed = true;
    return only("landed_attacks");
  }
  if (key == "counts") return only("player_owned_damage");
  if (key == "until") {
    n.until_ability_end = true;
    return only("ability_end");
  }
  if (key == "stat") {
    NodeStat s;
    float sign = 1;
    s.stat = node_stat(v.string, &sign);
    if (s.stat == Stat::Count) fail("stat '" + v.string + "' is unknown");
    n.stats.push_back(s);
    return;
  }
  if (key == "proc_on_damaged") {  // a charge that strikes who hits its bearer
    for (const auto& [k, x] : v.object) {
      Role part;
      if (k == "type" && find_word(kTypes, x.string, n.type)) continue;
      if (!parse_role(k, part)) fail("key '" + k + "' of proc_on_damaged is unknown");
      set(n, part, value(k, x));
    }
    return;
  }
  if (key == "self_gains") return stats(n, v, StatSet::Self);
  Role r;
  if (!parse_role(key, r)) fail("key '" + key + "' of " + primitive_name(n.prim) + " is unknown");
  if (r == Role::R && v.is(Node::Type::String) && v.string == "global") {
    n.global_radius = true;
    return;
  }
  if (r == Role::Dur && v.is(Node::Type::String) && v.string == "until_action") {
    n.until_action = true;
    return;
  }
  if (r == Role::Dur && v.is(Node::Type::String) && v.string == "@cooldown") n.dur_is_cooldown = true;
  Value number = value(key, v);
  const bool seconds = r == Role::Interval || r == Role::PulseInterval || r == Role::SpawnInterval;
  for (const Num* list : {&number.base, &number.scepter})
    for (std::size_t i = 0; i < list->n; ++i)
      if ((seconds && !(list->v[i] >= kShortestInterval)) ||
          (r == Role::Rate && list->v[i] > 1 / kShortestInterval))
        fail("'" + key + "' of " + primitive_name(n.prim) + " is " + std::to_string(list->v[i]) +
             ": an effect may tick at most 1,000 times a second");
  set(n, r, std::move(number));
}

}  // namespace dota
