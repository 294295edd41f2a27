// What the phases of a timestep cost: counted in a core that is compiled with FIVE_PHASES (a compiler option; on
// x86), of which nothing is in any other.
#pragma once

#if defined(FIVE_PHASES)

#include <cstdint>
#include <cstdio>
#include <vector>

namespace dota {

// Ticks of the processor's clock that a phase took, its parts included, and how often it was run.
struct Phase {
  const char* name;
  std::uint64_t ticks = 0, times = 0;
  explicit Phase(const char* of) : name(of) { all().push_back(this); }
  static std::vector<Phase*>& all() {
    static std::vector<Phase*> phases;
    return phases;
  }
};
class PhaseTimer {
 public:
  explicit PhaseTimer(Phase& p) : phase_(p) {}
  ~PhaseTimer() {
    phase_.ticks += __builtin_ia32_rdtsc() - from_;
    ++phase_.times;
  }

 private:
  Phase& phase_;
  std::uint64_t from_ = __builtin_ia32_rdtsc();
};
inline void reset_phases() {
  for (Phase* p : Phase::all())
    p->ticks = p->times = 0;
}
// Ticks and runs a timestep, on the standard error output.
inline void print_phases(double timesteps) {
  for (const Phase* p : Phase::all())
    if (p->times)
      std::fprintf(stderr, "%-20s %9.0f ticks %8.2f times\n", p->name, static_cast<double>(p->ticks) / timesteps,
                   static_cast<double>(p->times) / timesteps);
}

}  // namespace dota

#define PHASED(name, ...)                  \
  do {                                     \
    static ::dota::Phase phase{name};      \
    const ::dota::PhaseTimer timer{phase}; \
    __VA_ARGS__;                           \
  } while (0)

#else

namespace dota {
inline void reset_phases() {}
inline void print_phases(double) {}
}  // namespace dota
#define PHASED(name, ...) __VA_ARGS__

#endif
