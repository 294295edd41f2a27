#include "effects/compile/compile.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "effects/compile/programs.hpp"
#include "world/unit.hpp"

namespace dota {

namespace {

// Keys of the data that are neither numbers nor words of a closed set.
constexpr const char* kOtherKeys =
    "stats self_stats creep_stats ranged_stats ally_stats enemy_stats else_stats per_stack low_hp_stats "
    "unseen_stats "
    "self_gains then "
    "enemies allies stack unit gives what pattern pick hits breaks_on reappears_on stat prefer counts needs "
    "targets "
    "until proc_on_damaged reactivate disabled_by_neutral_damage push_units_aside transferable pre_reduction "
    "rings lose_on_death_frac_kept per_charge_minus deniable requires_standing_still "
    "kills_illusions attack_does_not_break damage_dealt_and_taken while_on";

// What the data describe as abilities of buildings is done by the rules (rules/buildings.cpp).
bool part_of_the_rules(const std::string& name) {
  return name == "filler_ability" || name == "backdoor_protection" || name == "backdoor_protection_in_base";
}

bool has_word(const char* list, const std::string& word) {
  const std::size_t n = word.size();
  for (const char* p = std::strstr(list, word.c_str()); p; p = std::strstr(p + 1, word.c_str())) {
    const bool starts = p == list || p[-1] == ' ';
    if (starts && (p[n] == '\0' || p[n] == ' ')) return true;
  }
  return false;
}

bool ignored(const char* list, const std::string& key) {
  const std::string text = std::string("; ") + list;
  return text.find("; " + key + ":") != std::string::npos;
}

}  // namespace

bool list_holds(const Node* list, const std::string& word) {
  if (!list || !list->is(Node::Type::List)) return false;
  return std::any_of(list->list.begin(), list->list.end(), [&](const Node& n) { return n.string == word; });
}

std::int16_t intern_modifier(Tables& tables, const std::string& name) {
  auto& names = tables.modifiers;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<std::int16_t>(it - names.begin());
  names.push_back(name);
  return static_cast<std::int16_t>(names.size() - 1);
}

ProgramCompiler::ProgramCompiler(const Node& ability, std::string name, Tables& tables)
    : ability_(ability), name_(std::move(name)), tables_(tables) {
  is_item_ = name_.rfind("item_", 0) == 0;
  passive_behavior_ = is_item_ || list_holds(ability_.find("behavior"), "passive");
}

void ProgramCompiler::fail(const std::string& what) const {
  throw std::runtime_error("ability '" + name_ + "': " + what);
}

void ProgramCompiler::missing(const std::string& what) {
  if (std::find(out_.missing.begin(), out_.missing.end(), what) == out_.missing.end())
    out_.missing.push_back(what);
  incomplete_.insert(root_);
}

Program ProgramCompiler::compile() {
  out_.owner = ability_.str("owner");
  const std::string dispel = ability_.str("dispellable", "yes");
  if (dispel != "yes" && dispel != "no" && dispel != "yes_strong") fail("dispellable '" + dispel + "' is unknown");
  out_.dispellable = dispel == "no" ? Dispellable::No : dispel == "yes" ? Dispellable::Yes : Dispellable::Strong;
  out_.pierces_immunity = ability_.str("spell_immunity") == "enemies_yes" ||
                          list_holds(ability_.find("target_flags"), "magic_immune_enemies");
  out_.fixed_level = static_cast<int>(ability_.num("base_level", 1));
  const Node* effects = ability_.find("effects");
  if (!effects || part_of_the_rules(name_)) return out_;
  if (!effects->is(Node::Type::List)) fail("'effects' is not a list");
  for (const Node& n : effects->list)
    if (n.is(Node::Type::Object) && n.str("p") == "stack_gain") stack_ = n.str("stack", name_);
  std::uint16_t count = 0;
  const std::uint16_t first = children(*effects, &count);
  share_modifiers(first, count);
  for (std::uint16_t i = 0; i < count; ++i)
    out_.roots.push_back(static_cast<std::uint16_t>(first + i));
  for (std::uint16_t i = 0; i < count; ++i) {
    EffectNode& n = out_.nodes[first + i];
    n.passive = passive_at_root(n, passive_behavior_);
    root_ = first + i;
    if (n.prim == Prim::Proc && !n.passive) {
      // It goes with the modifier before it, for as long.
      const EffectNode* before = i > 0 ? &out_.nodes[first + i - 1] : nullptr;
      const Value* dur = before ? before->value(Role::Dur) : nullptr;
      if (dur)
        set(n, Role::Dur, *dur);
      else
        missing("proc of a timed modifier");
    }
    if (n.passive && incomplete_.count(root_)) out_.passive_missing = true;
    if (n.passive && n.on == Trigger::Cast) n.on = Trigger::Passive;
    out_.triggers |= 1u << static_cast<int>(n.on);
    const auto index = static_cast<std::int16_t>(first + i);
    if (n.prim == Prim::Charges) out_.charges = index;
    if (n.prim == Prim::NextAttackMod) out_.next_attack = index;
    if (n.prim == Prim::AttackModifier) out_.orb = index;
    if (n.prim == Prim::CastWhileDisabled) out_.while_disabled = index;
    if (n.given(Role::OnePerTarget)) out_.single_link = index;
    if (n.per_target) out_.per_target = index;
    if (n.given(Role::LevelUpPerUse)) out_.levels_with_use = true;
  }
  return std::move(out_);
}

// What a talent puts in place of another node renews that node's modifier: both are never on a unit at once.
void ProgramCompiler::share_modifiers(std::uint16_t first, std::uint16_t count) {
  const auto end = out_.nodes.begin() + first + count;
  std::set<std::int16_t> taken;
  for (auto n = out_.nodes.begin() + first; n != end; ++n) {
    if (n->talent.empty() || n->unless_talent || n->modifier < 0) continue;
    const auto other = std::find_if(out_.nodes.begin() + first, end, [&](const EffectNode& x) {
      return x.unless_talent && x.talent == n->talent && x.prim == n->prim && x.modifier >= 0 &&
             !taken.count(x.modifier);
    });
    if (other == end) continue;
    n->modifier = other->modifier;
    taken.insert(other->modifier);
  }
}

std::uint16_t ProgramCompiler::children(const Node& list, std::uint16_t* count) {
  const auto first = static_cast<std::uint16_t>(out_.nodes.size());
  out_.nodes.resize(out_.nodes.size() + list.list.size());
  *count = static_cast<std::uint16_t>(list.list.size());
  const bool roots = &list == ability_.find("effects");
  for (std::size_t i = 0; i < list.list.size(); ++i) {
    if (roots) root_ = first + i;
    fill(static_cast<std::uint16_t>(first + i), list.list[i], roots);
    // A proc inside another effect lasts as long as what stands before it.
    EffectNode& n = out_.nodes[first + i];
    if (roots || n.prim != Prim::Proc || n.given(Role::Dur)) continue;
    const Value* dur = i > 0 ? out_.nodes[first + i - 1].value(Role::Dur) : nullptr;
    if (!dur) fail("a proc within another effect needs one with a duration before it");
    const Value lasts = *dur;
    set(n, Role::Dur, lasts);
  }
  return first;
}

void ProgramCompiler::fill(std::uint16_t index, const Node& node, bool root) {
  if (!node.is(Node::Type::Object)) fail("an effect is not an object");
  EffectNode n;
  const std::string p = node.str("p");
  if (!parse_primitive(p, n.prim)) fail("primitive '" + p + "' is unknown");
  const PrimitiveSpec* spec = primitive_spec(n.prim);
  if (!root) n.on = Trigger::Then;
  if (!spec) {
    missing(p);
    out_.nodes[index] = std::move(n);
    return;
  }
  n.status = spec->status;
  n.type = DamageType::Magical;
  for (const auto& [k, v] : node.object) {
    if (k == "p" || k == "uncertain" || ignored(spec->ignores, k)) continue;
    if (word(n, k, v)) continue;
    if (!has_word(spec->reads, k)) {
      Role r;
      if (!parse_role(k, r) && !has_word(kOtherKeys, k)) fail("key '" + k + "' of " + p + " is unknown");
      missing(p + "." + k);
      continue;
    }
    key(n, k, v, node);
  }
  check_trigger(n, *spec, root);
  const bool sees_around = n.prim == Prim::TrueSight && n.shape == Shape::None && n.given(Role::R);
  if (sees_around) n.status = 0;  // its bearer sees, and is not seen by it
  if (n.given(Role::RevealsTargetWhileCasting)) n.status |= kRevealed;
  if (n.prim == Prim::StackGain && n.stack < 0) n.stack = intern_modifier(tables_, "stack_" + stack_);
  if (leaves_modifier(n))
    n.modifier =
        n.prim == Prim::StackGain ? n.stack : intern_modifier(tables_, name_ + "#" + std::to_string(index));
  for (const char* k : {"then", "enemies", "allies"}) {
    const Node* list = node.find(k);
    if (!list || !list->is(Node::Type::List)) continue;
    std::uint16_t count = 0;
    const std::uint16_t first = children(*list, &count);
    (std::strcmp(k, "allies") ? n.then_first : n.alt_first) = first;
    (std::strcmp(k, "allies") ? n.then_count : n.alt_count) = count;
  }
  out_.nodes[index] = std::move(n);
}

Program compile_program(const Node& ability, const std::string& name, Tables& tables) {
  return ProgramCompiler(ability, name, tables).compile();
}

Program::Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

}  // namespace dota
