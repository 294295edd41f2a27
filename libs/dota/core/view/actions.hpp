// Which primary actions a hero can take now, and decoding the one that was chosen.
#pragma once

#include <array>
#include <cstdint>

#include "rules/actions.hpp"
#include "view/layout.hpp"
#include "world/world.hpp"

namespace dota {

struct TeamView;
struct SlotTable;

using Available = std::array<std::array<std::uint16_t, kMaxAvailable>, 5>;  // action ids of each hero, 0: none

// What one team may do now: per hero up to 30 action ids (0 = none), and per class the valid unit slots.
struct Choices {
  Available available{};
  std::array<std::array<std::array<std::uint8_t, kMaxSlots>, kMaskClasses>, 5> mask{};
};
// What a policy is bound to. `windups`: a hero that has just chosen an attack or a cast, or winds one up, is
// offered noop only. `moves`: a hero that chose to move or follow is offered neither in so many choices.
// `consumables`: a hero is offered an item that restores health or mana only below kNeededBelow of it, and not
// while another of the kind restores it.
struct Commitments {
  bool windups = false;
  int moves = 0;
  bool consumables = false;
  bool any() const { return windups || moves > 0 || consumables; }
};
constexpr float kNeededBelow = 0.75f;
inline Commitments commitments(const GameSettings& s) {
  return {s.commit_windups, s.commit_moves, s.save_consumables};
}
// Fills both from what the team sees. An action that takes a unit is offered only if its class has a valid unit in
// a slot. `slots` maps unit slots to units of the view.
void find_choices(const TeamView& view, const SlotTable& slots, const Commitments& commit, Choices& out);
// The same without commitments, where `held` is what it found with them: only who is held is looked at again.
void find_free_choices(const TeamView& view, const SlotTable& slots, const Commitments& commit,
                       const Choices& held, Choices& out);

// Whether the ability may be aimed at the unit, as far as the team can tell; the rules decide again when it is
// cast.
bool may_target(const TeamView& view, const AbilityDef& ability, int caster, int unit);
bool may_attack(const TeamView& view, int attacker, int unit);

// One hero's row of an action array, int16 [6], against what it was offered. Every number may be out of range:
// what cannot be done becomes noop. `slot_out` receives the unit slot that was named, or -1.
Command decode_action(const std::int16_t* row, const ActionVocabulary& vocabulary,
                      const std::array<std::uint16_t, kMaxAvailable>& available, const SlotTable& slots,
                      bool mirrored, int* slot_out);

}  // namespace dota
