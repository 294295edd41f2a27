// Primary actions: the vocabulary, which of them a hero can take now, and what a chosen one does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "view/layout.hpp"
#include "world/world.hpp"

namespace dota {

struct TeamView;
struct SlotTable;

// Ids of the built-in actions, as in dota.spaces.BUILT_IN.
enum BuiltIn : std::int16_t {
  kNoAction,
  kNoop,
  kMove,
  kAttack,
  kFollow,
  kGlyph,
  kShrine,
  kBuyback,
  kPickup,
  kBuiltIns
};

// Rows of target_mask, as in dota.spaces.MaskClass.
enum class MaskClass : std::uint8_t { Attack, Enemy, Ally, Teleport };

// How far beyond its range an action's target may be for the action to be offered: the hero walks up to it. The
// paper's filters are not published ("valid target nearby?", Berner et al. 2019, section 2.1).
constexpr float kWalkMargin = 600.0f;
// How near an enemy must be for an untargeted hostile ability without a cast range to be offered.
constexpr float kNoTargetReach = 1200.0f;

struct ActionDef {
  std::string name;
  TargetType target = TargetType::None;
  MaskClass mask = MaskClass::Attack;
  int ability = -1;      // Tables::abilities, items' actives included; -1: built in, or not of this patch
  bool hostile = false;  // acts on enemies around the caster only: pointless while none is near
  bool tree = false;     // takes the nearest tree
};

// The vocabulary of all patches, in the order of dota.spaces.vocabulary; what a patch lacks is never offered in
// it.
struct ActionVocabulary {
  std::vector<ActionDef> defs;
  std::vector<std::int16_t> of_ability;  // per Tables::abilities: its action, 0 when it has none
  bool scripted_buyback = false, scripted_glyph = false, scripted_shrine = false;  // not offered to the policy

  // `casts`, per action: the ability or item of the tables that it casts, '' for built-in ones and those of other
  // patches. Throws std::runtime_error when the tables have no such name.
  ActionVocabulary(const std::vector<LayoutTable::Action>& actions, const std::vector<std::string>& casts,
                   const Tables& tables);
  int find(const std::string& name) const;  // -1: not in it
};

using Available = std::array<std::array<std::uint16_t, kMaxAvailable>, 5>;  // action ids of each hero, 0: none

// What one team may do now: per hero up to 30 action ids (0 = none), and per class the valid unit slots.
struct Choices {
  Available available{};
  std::array<std::array<std::array<std::uint8_t, kMaxSlots>, kMaskClasses>, 5> mask{};
};
// Fills both from what the team sees. An action that takes a unit is offered only if its class has a valid unit in
// a slot. `slots` maps unit slots to units of the view.
// `commit`: a hero that has just chosen an attack or a cast, or winds one up, is offered noop only.
void find_choices(const TeamView& view, const SlotTable& slots, bool commit, Choices& out);
// The same without `commit`, where `held` is what it found with it: only who is held is looked at again.
void find_free_choices(const TeamView& view, const SlotTable& slots, const Choices& held, Choices& out);

// Whether the ability may be aimed at the unit, as far as the team can tell; the rules decide again when it is
// cast.
bool may_target(const TeamView& view, const AbilityDef& ability, int caster, int unit);
bool may_attack(const TeamView& view, int attacker, int unit);

// One hero's row of an action array, int16 [6], against what it was offered. Every number may be out of range:
// what cannot be done becomes noop. `slot_out` receives the unit slot that was named, or -1.
Command decode_action(const std::int16_t* row, const ActionVocabulary& vocabulary,
                      const std::array<std::uint16_t, kMaxAvailable>& available, const SlotTable& slots,
                      bool mirrored, int* slot_out);

// An impossible command is a no-op.
void apply_command(Context& c, HeroState& h, const Command& cmd);

}  // namespace dota
