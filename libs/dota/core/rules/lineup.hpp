// What of a line-up can be played, and what of its builds is bought (lineup.cpp).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace dota {

// Why the line-up cannot be played ("" when it can): a hero whose programs have primitives that are not built.
std::string check_lineup(const Tables& t, const std::array<int, kMaxHeroes>& lineup);
// Whether the scripted buyer buys the item: false when its own or a component's program has missing primitives.
bool item_supported(const Tables& t, int item);
// Items of the line-up's builds that are skipped for that reason, by name.
std::vector<std::string> items_not_bought(const Tables& t, const std::array<int, kMaxHeroes>& lineup);
// Items of its builds that are bought for their stats although what they can be used for is not built.
std::vector<std::string> items_without_use(const Tables& t, const std::array<int, kMaxHeroes>& lineup);

}  // namespace dota
