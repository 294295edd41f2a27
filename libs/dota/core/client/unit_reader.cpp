#include "client/unit_reader.hpp"

#include "client/world_state_reader.hpp"

namespace dota {
namespace {

ClientUnitType unit_type(std::uint32_t number) {
  return number < static_cast<std::uint32_t>(ClientUnitType::Count) ? static_cast<ClientUnitType>(number)
                                                                    : ClientUnitType::Invalid;
}

void read_ability(MessageReader& r, std::string_view bytes, ClientAbility& a) {
  constexpr const char* kName = "Ability";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, a.handle);
      case 2:
        return r.number(kName, f, a.ability_id);
      case 3:
        return r.number(kName, f, a.slot);
      case 6:
        return r.number(kName, f, a.level);
      case 10:
        return r.number(kName, f, a.cast_range);
      case 11:
        return r.number(kName, f, a.channel_time);
      case 12:
        return r.number(kName, f, a.cooldown_remaining);
      case 21:
        return r.number(kName, f, a.is_toggled);
      case 22:
        return r.number(kName, f, a.is_in_ability_phase);
      case 23:
        return r.number(kName, f, a.is_channeling);
      case 25:
        return r.number(kName, f, a.is_fully_castable);
      case 30:
        return r.number(kName, f, a.charges);
      case 50:
        return r.number(kName, f, a.power_treads_stat);
      default:
        return r.skip(f.number, {5, 20, 24, 31, 40});
    }
  });
}

void read_modifier(MessageReader& r, std::string_view bytes, ClientModifier& m) {
  constexpr const char* kName = "Modifier";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.text(kName, f, m.name);
      case 2:
        return r.number(kName, f, m.stack_count);
      case 4:
        return r.number(kName, f, m.ability_id);
      case 5:
        return r.number(kName, f, m.remaining_duration);
      default:
        return r.skip(f.number, {3, 6, 7});
    }
  });
}

void read_projectile(MessageReader& r, std::string_view bytes, ClientTrackingProjectile& p) {
  constexpr const char* kName = "TrackingProjectile";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, p.caster_handle);
      case 4:
        return r.number(kName, f, p.ability_id);
      case 5:
        return read_vector(r, f, p.location);
      case 6:
        return r.number(kName, f, p.velocity);
      case 8:
        return r.number(kName, f, p.is_attack);
      case 9:
        return r.number(kName, f, p.caster_unit_type);
      default:
        return r.skip(f.number, {2, 3, 7, 10});
    }
  });
}

template <class T>
void append(MessageReader& r, const WireField& f, std::vector<T>& list, ListRange& range,
            void (*read)(MessageReader&, std::string_view, T&)) {
  if (!r.is_message("Unit", f) || !r.fits("Unit", f, list, kMaxClientList)) return;
  ++range.count;
  read(r, f.bytes, list.emplace_back());
}

// Number, target.
template <class T>
struct Entry {
  std::uint32_t number;
  T ClientUnit::* value;
};
constexpr Entry<float> kFloats[] = {
    {10, &ClientUnit::bounding_radius},
    {11, &ClientUnit::facing},
    {12, &ClientUnit::ground_height},
    {15, &ClientUnit::vision_day},
    {16, &ClientUnit::vision_night},
    {20, &ClientUnit::health},
    {21, &ClientUnit::health_max},
    {22, &ClientUnit::health_regen},
    {25, &ClientUnit::mana},
    {26, &ClientUnit::mana_max},
    {27, &ClientUnit::mana_regen},
    {30, &ClientUnit::base_movement_speed},
    {31, &ClientUnit::movement_speed},
    {36, &ClientUnit::anim_cycle},
    {40, &ClientUnit::base_damage},
    {41, &ClientUnit::base_damage_variance},
    {42, &ClientUnit::bonus_damage},
    {43, &ClientUnit::attack_damage},
    {44, &ClientUnit::attack_range},
    {45, &ClientUnit::attack_speed},
    {46, &ClientUnit::attack_anim_point},
    {48, &ClientUnit::attack_projectile_speed},
    {51, &ClientUnit::last_attack_time},
    {112, &ClientUnit::respawn_time},
    {113, &ClientUnit::buyback_cost},
    {114, &ClientUnit::buyback_cooldown},
    {115, &ClientUnit::spell_amplification},
    {116, &ClientUnit::armor},
    {117, &ClientUnit::magic_resist},
    {118, &ClientUnit::evasion},
    {122, &ClientUnit::reliable_gold},
    {123, &ClientUnit::unreliable_gold},
    {127, &ClientUnit::strength},
    {128, &ClientUnit::agility},
    {129, &ClientUnit::intelligence},
    {130, &ClientUnit::remaining_lifespan},
    {150, &ClientUnit::shrine_cooldown},
};
constexpr Entry<bool> kFlags[] = {
    {7, &ClientUnit::is_alive},
    {65, &ClientUnit::is_channeling},
    {70, &ClientUnit::is_attack_immune},
    {71, &ClientUnit::is_blind},
    {73, &ClientUnit::is_disarmed},
    {76, &ClientUnit::is_hexed},
    {77, &ClientUnit::is_invisible},
    {78, &ClientUnit::is_invulnerable},
    {79, &ClientUnit::is_magic_immune},
    {80, &ClientUnit::is_muted},
    {83, &ClientUnit::is_rooted},
    {84, &ClientUnit::is_silenced},
    {85, &ClientUnit::is_specially_deniable},
    {86, &ClientUnit::is_stunned},
    {88, &ClientUnit::has_scepter},
    {102, &ClientUnit::is_using_ability},
    {111, &ClientUnit::is_illusion},
    {151, &ClientUnit::is_shrine_healing},
};
constexpr Entry<std::uint32_t> kCounts[] = {
    {1, &ClientUnit::handle},
    {4, &ClientUnit::team_id},
    {5, &ClientUnit::level},
    {49, &ClientUnit::attack_target_handle},
    {66, &ClientUnit::active_ability_handle},
    {120, &ClientUnit::xp_needed_to_level},
    {121, &ClientUnit::ability_points},
    {124, &ClientUnit::last_hits},
    {125, &ClientUnit::denies},
    {126, &ClientUnit::net_worth},
};

template <class T, std::size_t N>
bool read_listed(MessageReader& r, const WireField& f, const Entry<T> (&entries)[N], ClientUnit& u) {
  for (const Entry<T>& e : entries)
    if (e.number == f.number) {
      r.number("Unit", f, u.*e.value);
      return true;
    }
  return false;
}

}  // namespace

void read_vector(MessageReader& r, const WireField& field, ClientVector& out) {
  constexpr const char* kName = "Vector";
  if (!r.is_message(kName, field)) return;
  r.each(kName, field.bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, out.x);
      case 2:
        return r.number(kName, f, out.y);
      case 3:
        return r.number(kName, f, out.z);
      default:
        return r.skip(f.number, {});
    }
  });
}

void read_unit(MessageReader& r, std::string_view bytes, WorldState& out) {
  constexpr const char* kName = "Unit";
  ClientUnit u;
  const auto starting_at = [](const auto& list) { return ListRange{static_cast<std::uint32_t>(list.size()), 0}; };
  u.abilities = starting_at(out.abilities);
  u.items = starting_at(out.items);
  u.modifiers = starting_at(out.modifiers);
  u.projectiles = starting_at(out.projectiles);
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 2: {
        std::uint32_t type = 0;
        r.number(kName, f, type);
        u.unit_type = unit_type(type);
        return;
      }
      case 3:
        return r.text(kName, f, u.name);
      case 6:
        return read_vector(r, f, u.location);
      case 8:
        return r.number(kName, f, u.player_id);
      case 35:
        return r.number(kName, f, u.anim_activity);
      case 90:
        return append(r, f, out.abilities, u.abilities, read_ability);
      case 91:
        return append(r, f, out.items, u.items, read_ability);
      case 92:
        return append(r, f, out.modifiers, u.modifiers, read_modifier);
      case 93:
        return append(r, f, out.projectiles, u.projectiles, read_projectile);
      default:
        if (read_listed(r, f, kFloats, u) || read_listed(r, f, kFlags, u) || read_listed(r, f, kCounts, u)) return;
        return r.skip(f.number, {47, 50, 52, 60, 61, 62, 72, 74, 75, 82, 87, 94, 100, 101, 103, 110, 140});
    }
  });
  if (r.ok() && (u.handle == 0 || u.handle == kNoClientHandle)) r.refuse(kName, 1, "a unit has no handle");
  out.units.push_back(u);
}

}  // namespace dota
