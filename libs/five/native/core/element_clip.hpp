// Clip of each element of a gradient by its running second moment.
#pragma once

#include <cstddef>

namespace five {

// Clips gradient [n] to ± sqrt(v * scale), where v [n] is the second moment; an element whose bound is 0 is not
// clipped. Then v = v * decay + share * gradient^2 of the unclipped gradient. Returns the number of clipped
// elements.
std::size_t clip_elements(float* gradient, float* v, std::size_t n, float scale, float decay, float share);

}  // namespace five
