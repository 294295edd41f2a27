// Queries of units near a position.
#pragma once

#include <array>
#include <span>

#include "world/world.hpp"

namespace dota {

// Units that a query found, by ascending slot: `for (Unit& u : units_near(c, p, r))`. A unit that dies meanwhile
// stays in the list.
template <class AnyUnit>
class BasicUnitList {
 public:
  class Iterator {
   public:
    Iterator(AnyUnit* units, const std::int16_t* slot) : units_(units), slot_(slot) {}
    AnyUnit& operator*() const { return units_[*slot_]; }
    Iterator& operator++() {
      ++slot_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return slot_ == other.slot_; }

   private:
    AnyUnit* units_;
    const std::int16_t* slot_;
  };

  // `units`: World::units.
  explicit BasicUnitList(std::span<AnyUnit, kMaxUnits> units) : units_(units.data()) {}
  void add(int slot) { slots_[n_++] = static_cast<std::int16_t>(slot); }
  int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  AnyUnit& operator[](int i) const { return units_[slots_[i]]; }
  Iterator begin() const { return {units_, slots_.data()}; }
  Iterator end() const { return {units_, slots_.data() + n_}; }
  std::span<const std::int16_t> slots() const { return std::span(slots_).first(n_); }

 private:
  AnyUnit* units_;
  std::array<std::int16_t, kMaxUnits> slots_;  // set up to n_
  int n_ = 0;
};
using UnitList = BasicUnitList<Unit>;

void build_spatial(Context& c);  // also brings Nav up to trees and buildings; start_game calls it first
void place_unit(World& w, Unit& u, Vec2 p);  // sets pos and lists the unit there: every jump that is not a walk
void unlist_unit(World& w, const Unit& u);   // takes a freed slot out of the hash
void renew_bodies(World& w);                 // finds Nav::bodies again
void touch_unit(World& w, int unit);         // it died, or has a velocity: the next build_spatial() looks at it
// Returns the living units whose centres are within `radius` of p, hulls not counted.
UnitList units_near(const Context& c, Vec2 p, float radius);
BasicUnitList<const Unit> units_near(const World& w, Vec2 p, float radius);
// False: units_near() finds none of the team's there. Much cheaper, for those who look around and see nobody.
bool team_near(const World& w, int team, Vec2 p, float radius);
bool others_near(const World& w, int team, Vec2 p, float radius);  // the same of all other teams

}  // namespace dota
