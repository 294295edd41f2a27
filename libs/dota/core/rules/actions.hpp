// Primary actions: the vocabulary, and what a chosen one does to its hero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace dota {

// One action of the vocabulary as Python passes it: its name, TargetType and MaskClass.
struct ActionRow {
  std::string name;
  int target = 0, mask = 0;
};

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
constexpr int kMaskClasses = 4;

// How far beyond its range an action's target may be for the action to be offered: the hero walks up to it. The
// paper's filters are not published ("valid target nearby?", Berner et al. 2019, section 2.1).
constexpr float kWalkMargin = 600.0f;
// How near an enemy must be for an untargeted hostile ability without a cast range to be offered.
constexpr float kNoTargetReach = 1200.0f;

// Bits of the items whose modifier restores health or mana for some seconds.
enum Restoring : std::uint8_t { kByTango = 1, kByFlask = 2, kByBottle = 4, kByClarity = 8 };

struct ActionDef {
  std::string name;
  TargetType target = TargetType::None;
  MaskClass mask = MaskClass::Attack;
  int ability = -1;      // Tables::abilities, items' actives included; -1: built in, or not of this patch
  bool hostile = false;  // acts on enemies around the caster only: pointless while none is near
  bool tree = false;     // takes the nearest tree
  bool restores_health = false, restores_mana = false;  // an item that does nothing else
  std::uint8_t pointless_under = 0;                     // Restoring: modifiers under which it adds nothing
};

// The vocabulary of all patches, in the order of dota.spaces.vocabulary; what a patch lacks is never offered in
// it.
struct ActionVocabulary {
  std::vector<ActionDef> defs;
  std::vector<std::int16_t> of_ability;  // per Tables::abilities: its action, 0 when it has none
  std::vector<std::uint8_t> restoring;   // per Tables::modifiers: Restoring
  bool scripted_buyback = false, scripted_glyph = false, scripted_shrine = false;  // not offered to the policy

  // `casts`, per action: the ability or item of the tables that it casts, '' for built-in ones and those of other
  // patches. Throws std::runtime_error when the tables have no such name.
  ActionVocabulary(const std::vector<ActionRow>& actions, const std::vector<std::string>& casts,
                   const Tables& tables);
  int find(const std::string& name) const;  // -1: not in it
};

// Carries out a command; an impossible one does nothing.
void apply_command(Context& c, HeroState& h, const Command& cmd);

}  // namespace dota
