#include "lstm.hpp"

#include "elementary.hpp"
#include "layer.hpp"

namespace five {

namespace {

template <class T>
struct StepRow {
  const T *from_input, *product;
  float *gates, *cell_tanh, *output;
  const float* cell;
  float* next_cell;
  T* next_state;
};

template <class T>
FIVE_INLINE void step_of(const StepRow<T>& row, std::size_t d, float keep) {
  const T* __restrict input = row.from_input, * __restrict product = row.product;
  float* __restrict gates = row.gates, * __restrict tanh = row.cell_tanh, * __restrict output = row.output;
  float* __restrict next_cell = row.next_cell;
  const float* __restrict cell = row.cell;
  T* __restrict next_state = row.next_state;
#pragma GCC ivdep
  for (std::size_t i = 0; i < d; ++i) {
    const auto gate = [&](std::size_t at) { return to_float(input[at]) + to_float(product[at]); };
    const float enter = sigmoid_of(gate(i)), forget = sigmoid_of(gate(d + i)), fresh = tanh_of(gate(2 * d + i)),
                out = sigmoid_of(gate(3 * d + i));
    const float now = enter * fresh + forget * cell[i], curved = tanh_of(now);
    gates[i] = enter, gates[d + i] = forget, gates[2 * d + i] = fresh, gates[3 * d + i] = out;
    tanh[i] = curved;
    output[i] = out * curved;
    next_cell[i] = now * keep;
    round_to(out * curved * keep, next_state[i]);
  }
}

template <class T>
struct GradientRow {
  const float *gates, *cell, *cell_tanh, *of_output;
  const T* product;
  T* of_gates;
  float* of_cell;
};

// `next` and `here` are the keep of the next step and of this one.
template <class T>
FIVE_INLINE void gradient_of(const GradientRow<T>& row, std::size_t d, float next, float here) {
  const float* __restrict gates = row.gates, * __restrict cell = row.cell, * __restrict tanh = row.cell_tanh;
  const float* __restrict of_output = row.of_output;
  const T* __restrict product = row.product;
  T* __restrict of_gates = row.of_gates;
  float* __restrict of_cell = row.of_cell;
#pragma GCC ivdep
  for (std::size_t i = 0; i < d; ++i) {
    const float enter = gates[i], forget = gates[d + i], fresh = gates[2 * d + i], out = gates[3 * d + i];
    const float dh = to_float(product[i]) * next + of_output[i];
    const float dc = of_cell[i] + dh * out * (1.0f - tanh[i] * tanh[i]);
    round_to(dc * fresh * enter * (1.0f - enter), of_gates[i]);
    round_to(dc * cell[i] * forget * (1.0f - forget), of_gates[d + i]);
    round_to(dc * enter * (1.0f - fresh * fresh), of_gates[2 * d + i]);
    round_to(dh * tanh[i] * out * (1.0f - out), of_gates[3 * d + i]);
    of_cell[i] = dc * forget * here;
  }
}

// The functions of a row compiled for one instruction set.
#define FIVE_LSTM_ROWS(name, attributes)                                                                     \
  template <class T>                                                                                         \
  struct name {                                                                                              \
    attributes static void step(const StepRow<T>& row, std::size_t d, float keep) { step_of(row, d, keep); } \
    attributes static void gradient(const GradientRow<T>& row, std::size_t d, float next, float here) {      \
      gradient_of(row, d, next, here);                                                                       \
    }                                                                                                        \
  };

FIVE_LSTM_ROWS(Portable, )
#if defined(__x86_64__) && defined(__GNUC__)
FIVE_LSTM_ROWS(Avx2, __attribute__((target("avx2,fma"))))
bool has_avx2() { return best_instruction_set() != InstructionSet::kPortable; }
#else
template <class T>
using Avx2 = Portable<T>;
bool has_avx2() { return false; }
#endif

}  // namespace

template <class T>
void lstm_step(const LstmSequence<T>& of, std::size_t t) {
  const auto step = has_avx2() ? Avx2<T>::step : Portable<T>::step;
  const bool last = t + 1 == of.steps;
  for (std::size_t r = 0; r < of.rows; ++r) {
    const std::size_t here = t * of.rows + r, next = here + of.rows, d = of.width;
    step({of.from_input + here * 4 * d, of.product + r * 4 * d, of.gates + here * 4 * d, of.cell_tanh + here * d,
          of.outputs + here * d, of.cells + here * d, of.cells + next * d, of.before + next * d},
         d, last || of.keep == nullptr ? 1.0f : of.keep[next]);
  }
}

template <class T>
void lstm_step_gradient(const LstmGradient<T>& of, std::size_t t) {
  const auto gradient = has_avx2() ? Avx2<T>::gradient : Portable<T>::gradient;
  for (std::size_t r = 0; r < of.rows; ++r) {
    const std::size_t here = t * of.rows + r, d = of.width;
    const bool last = t + 1 == of.steps;
    gradient({of.gates + here * 4 * d, of.cells + here * d, of.cell_tanh + here * d, of.of_outputs + here * d,
              of.product + r * d, of.of_gates + here * 4 * d, of.of_cell + r * d},
             d, last || of.keep == nullptr ? 1.0f : of.keep[here + of.rows],
             of.keep == nullptr ? 1.0f : of.keep[here]);
  }
}

template void lstm_step(const LstmSequence<float>&, std::size_t);
template void lstm_step(const LstmSequence<Bfloat16>&, std::size_t);
template void lstm_step_gradient(const LstmGradient<float>&, std::size_t);
template void lstm_step_gradient(const LstmGradient<Bfloat16>&, std::size_t);

}  // namespace five
